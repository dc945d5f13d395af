/* text.h -- texts that grow in a buffer of fixed size: what does not fit is cut off. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Adds to the NUL-terminated text in out[size]. */
void text_append(char *out, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);
/* Adds an item to a list: `separator` goes before all but the first, where there is room for more than it. */
void text_list(char *out, size_t size, const char *separator, const char *format, ...)
    PRINTF_LIKE(4, 5);
void text_list_v(char *out, size_t size, const char *separator, const char *format, va_list args)
    PRINTF_LIKE(4, 0);

bool text_ends_with(const char *text, const char *end);

#endif
