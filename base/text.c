/* text.c -- see text.h. */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static void PRINTF_LIKE(3, 0) append_v(char *out, size_t size, const char *format, va_list args)
{
    size_t used = strlen(out);
    vsnprintf(out + used, size - used, format, args);
}

void text_append(char *out, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append_v(out, size, format, args);
    va_end(args);
}

void text_list_v(char *out, size_t size, const char *separator, const char *format, va_list args)
{
    size_t used = strlen(out), more = strlen(separator);
    if (used > 0 && used + more < size)
        memcpy(out + used, separator, more + 1);
    append_v(out, size, format, args);
}

void text_list(char *out, size_t size, const char *separator, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_list_v(out, size, separator, format, args);
    va_end(args);
}

bool text_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}
