/* nearest.c -- see nearest.h. The distance is the optimal string alignment variant of
 * Damerau-Levenshtein, over three rows of its table. */
#include "base/nearest.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#define LENGTH_MAX 63

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][LENGTH_MAX + 1], length = strlen(b);
    for (size_t j = 0; j <= length; j++)
        rows[0][j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        const size_t *above = rows[(i - 1) % 3], *second = rows[(i + 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t change = lower(a[i - 1]) != lower(b[j - 1]);
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + change);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = least(row[j], second[j - 2] + 1);
        }
    }
    return rows[strlen(a) % 3][length];
}

const char *nearest_name(const char *wanted, const char *const *names, size_t count)
{
    size_t length = strlen(wanted);
    size_t limit = length / 3 > 1 ? length / 3 : 1, best = SIZE_MAX;
    const char *nearest = NULL;
    if (length == 0 || length > LENGTH_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) > LENGTH_MAX)
            continue;
        size_t distance = edit_distance(wanted, names[i]);
        if (length >= 3 && distance > limit && !strncasecmp(wanted, names[i], length))
            distance = limit;
        if (distance <= limit && distance < length && distance < best) {
            best = distance;
            nearest = names[i];
        }
    }
    return nearest;
}
