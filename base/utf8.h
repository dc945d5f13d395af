/* utf8.h -- walking over text that claims to be UTF-8. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>

/* Bytes of the character that `text` starts with, 1 to 4, or 0: no overlong form, no surrogate, nothing
 * above U+10FFFF (Unicode 15, table 3-7). Reads no further than a terminating NUL. */
int utf8_length(const char *text);

/* The character of `length` bytes, as utf8_length found it, is a control character: below U+0020 or
 * U+007F to U+009F. These move a terminal's cursor or break a line. */
bool utf8_is_control(const char *text, int length);

#endif
