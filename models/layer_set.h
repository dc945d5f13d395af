/* layer_set.h -- which layers a group of a description speaks of: "0-2", "every 4 from 3", "all".
 *
 *   set   = item { "," item }
 *   item  = "all"                                 every layer
 *         | "rest"                                those that no earlier group named
 *         | N | A "-" B                           layers count from 0, both ends included
 *         | "every" K "from" A [ "to" B ]         A, A+K, A+2K ... up to B or the last layer
 */
#ifndef MODELS_LAYER_SET_H
#define MODELS_LAYER_SET_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Sets out[i] for each of `count` layers that `text` names. `taken` marks the layers of earlier groups
 * and gives "rest" its meaning. A layer past the last, a set that names none, or any other text is
 * ST_PARSE or ST_RANGE with a reason that the caller prefixes with file and line. */
MUST_CHECK enum status layer_set_parse(bool *out, size_t count, const char *text, const bool *taken,
                                       struct diag *dg);

/* Writes a short text without "rest" that layer_set_parse reads back as `in`. False if it does
 * not fit into `capacity` bytes with its NUL. At least one layer must be set. */
bool layer_set_print(char *out, size_t capacity, const bool *in, size_t count);

#endif
