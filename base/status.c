/* status.c -- see status.h. */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A reason that does not fit is mostly a long name with the reason behind it: what goes is its middle. */
static void shorten(char text[], size_t room, const char *whole, size_t length)
{
    static const char gap[] = " ... ";
    size_t head = room / 2, tail = room - head - sizeof gap;
    while (head > 0 && (whole[head] & 0xc0) == 0x80)
        head--;
    while (tail > 0 && (whole[length - tail] & 0xc0) == 0x80)
        tail--;
    snprintf(text + head, room - head, "%s%s", gap, whole + length - tail);
}

enum status diag_set(struct diag *dg, enum status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(dg->text, sizeof dg->text, format, args);
    va_end(args);
    if (length >= (int)sizeof dg->text) {
        char *whole;
        va_start(args, format);
        if (vasprintf(&whole, format, args) >= 0) {
            shorten(dg->text, sizeof dg->text, whole, (size_t)length);
            free(whole);
        }
        va_end(args);
    }
    for (char *c = dg->text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    dg->status = status;
    return status;
}

enum status diag_no_memory(struct diag *dg)
{
    return diag_set(dg, ST_NO_MEMORY, "out of memory");
}

enum status diag_errno(struct diag *dg, const char *path, const char *what)
{
    int error = errno;
    return diag_set(dg, ST_IO, "%s: %s: %s", path, what, strerror(error));
}
