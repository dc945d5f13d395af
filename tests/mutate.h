/* mutate.h -- small damage to a text file, for tests that a reader survives any input. */
#ifndef TESTS_MUTATE_H
#define TESTS_MUTATE_H

#include "base/pcg.h"

#include <stddef.h>

#define MUTATE_ROOM 4

/* Replaces, removes or doubles up to four bytes of the NUL-terminated `text`, which needs room for
 * MUTATE_ROOM bytes behind its end. */
void mutate(char *text, struct pcg *p);

/* Replaces one to three bytes of text[bytes] by any of `marks`. */
void mutate_marks(char *text, size_t bytes, const char *marks, struct pcg *p);

#endif
