/* value.h -- a physical value with where it came from.
 *
 * Written in a description file as `[7.0 GB/s, datasheet, "Vendor product sheet"]`, optionally with
 * a fourth element, the relative spread (`4 %`: half the width of a 90 % interval). A value without
 * a spread gets the customary one of its kind, which is what a prediction's interval is built from.
 */
#ifndef BASE_VALUE_H
#define BASE_VALUE_H

#include "base/quantity.h"

#include <stdbool.h>

enum value_kind {
    KIND_DATASHEET, /* a specification: usually a peak, reached in part */
    KIND_MEASURED,  /* somebody ran it */
    KIND_FITTED,    /* a parameter of a model, fitted to measurements */
    KIND_ASSUMED,   /* nobody published it: a guess that the result must own up to */
    KIND_DERIVED,   /* arithmetic on other values */
    KIND_MAX
};

struct value {
    uint64_t amount; /* in the base unit of `dim` */
    uint64_t spread; /* relative, parts in 10^9; see value_spread() */
    const char *source;
    enum value_kind kind;
    enum dimension dim;
    bool given; /* false: the description has no such key */
    bool spread_given;
};

const char *value_kind_name(enum value_kind kind);
MUST_CHECK enum status value_kind_parse(enum value_kind *out, const char *text, struct diag *dg);

/* Half the width of the 90 % interval, relative, parts in 10^9: the stated one, or by kind:
 * measured 5 %, fitted 7 %, derived 10 %, datasheet 12 %, assumed 30 %. */
uint64_t value_spread(const struct value *v);

#endif
