/* yaml_write.c -- texts for description files that the program writes. */
#include "base/utf8.h"
#include "base/yaml.h"

#include <string.h>

#define REPLACEMENT     "\xef\xbf\xbd" /* U+FFFD */
#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* not allowed within YAML, nor are U+FFFE and U+FFFF */

static bool is_allowed(const char *c, int length)
{
    return length > 0 &&
           !(length == 3 && (!memcmp(c, BYTE_ORDER_MARK, 3) || !memcmp(c, "\xef\xbf\xbe", 3) ||
                             !memcmp(c, "\xef\xbf\xbf", 3)));
}

void yaml_write_text(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const char *c = text; *c;) {
        int length = utf8_length(c);
        if (*c == '"' || *c == '\\')
            fprintf(stream, "\\%c", *c);
        else if (!is_allowed(c, length))
            fputs(REPLACEMENT, stream);
        else if (utf8_is_control(c, length))
            fputc(' ', stream);
        else
            fwrite(c, 1, (size_t)length, stream);
        c += length ? length : 1;
    }
    fputc('"', stream);
}
