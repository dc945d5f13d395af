/* nearest.h -- the hint behind every "unknown name": which known name was probably meant. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

/* The name nearest to `wanted`, or NULL if none is near. Near means: few insertions, deletions,
 * replacements and swaps of neighbours (one, or a third of the letters of `wanted`; case is
 * ignored), or a name that begins with the at least three letters of `wanted`. Of equally near
 * names the first is taken. */
const char *nearest_name(const char *wanted, const char *const *names, size_t count);

#endif
