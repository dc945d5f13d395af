/* csv_field.c -- what a single field means: conversions on reading, quotes on writing.
 *
 * Fields are not NUL-terminated, so nothing here calls strtoull, and strtod sees a copy. It also sees
 * only what is_decimal let through, under the C locale: a trace must read the same everywhere.
 */
#include "base/csv.h"

#include <csv.h>

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_LENGTH_MAX 127

bool csv_u64(struct csv_field f, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < f.length; i++) {
        unsigned digit = (unsigned char)f.text[i] - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    if (f.length == 0)
        return false;
    *out = value;
    return true;
}

/* [+-] digits with at most one point [e [+-] digits]: what strtod accepts without hexadecimal,
 * infinity, NaN, leading spaces and the locale. */
static bool is_decimal(const char *c)
{
    size_t digits = 0, exponent_digits = 0;
    c += *c == '+' || *c == '-';
    for (; *c >= '0' && *c <= '9'; c++)
        digits++;
    c += *c == '.';
    for (; *c >= '0' && *c <= '9'; c++)
        digits++;
    if (digits == 0 || (*c != 'e' && *c != 'E'))
        return digits > 0 && *c == '\0';
    c++;
    c += *c == '+' || *c == '-';
    for (; *c >= '0' && *c <= '9'; c++)
        exponent_digits++;
    return exponent_digits > 0 && *c == '\0';
}

bool csv_double(struct csv_field f, double *out)
{
    char text[NUMBER_LENGTH_MAX + 1];
    if (f.length > NUMBER_LENGTH_MAX || memchr(f.text, '\0', f.length))
        return false;
    memcpy(text, f.text, f.length);
    text[f.length] = '\0';
    if (!is_decimal(text))
        return false;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return false;
    double value = strtod_l(text, NULL, plain);
    freelocale(plain);
    if (isinf(value))
        return false;
    *out = value;
    return true;
}

bool csv_equal(struct csv_field f, const char *text)
{
    return strlen(text) == f.length && memcmp(f.text, text, f.length) == 0;
}

void csv_write_field(FILE *stream, const char *text)
{
    if (*text != '#' && !strpbrk(text, ",\"\r\n"))
        fputs(text, stream);
    else
        csv_fwrite(stream, text, strlen(text));
}
