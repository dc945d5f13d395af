/* utf8.c -- see utf8.h. */
#include "base/utf8.h"

int utf8_length(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    unsigned char low = 0x80, high = 0xbf; /* limits of the second byte */
    int length = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    if (c[0] > 0xf4 || length == 0)
        return 0;
    if (c[0] == 0xe0)
        low = 0xa0;
    else if (c[0] == 0xed)
        high = 0x9f;
    else if (c[0] == 0xf0)
        low = 0x90;
    else if (c[0] == 0xf4)
        high = 0x8f;
    if (length > 1 && (c[1] < low || c[1] > high))
        return 0;
    for (int i = 2; i < length; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

bool utf8_is_control(const char *text, int length)
{
    const unsigned char *c = (const unsigned char *)text;
    if (length == 1)
        return c[0] < 0x20 || c[0] == 0x7f;
    return length == 2 && c[0] == 0xc2 && c[1] < 0xa0;
}
