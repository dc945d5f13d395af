/* quantity.h -- sizes, rates, times and the other physical numbers, exact and with their units.
 *
 * A quantity is a uint64_t in the base unit of its dimension. Text is converted by integer
 * arithmetic, so "1.6 GB/s" is 1600000000 B/s to the last digit, and a text whose value is not a
 * whole number of base units ("0.3 ns") is an error rather than a rounding. Binary prefixes (KiB,
 * MiB, GiB, TiB) and decimal ones (kB, MB, GB, TB) are both accepted, never confused.
 */
#ifndef BASE_QUANTITY_H
#define BASE_QUANTITY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum dimension {
    DIM_COUNT,       /* a plain whole number, no unit */
    DIM_SIZE,        /* bytes:      B kB MB GB TB, KiB MiB GiB TiB, also bit counts are not sizes */
    DIM_RATE,        /* bytes/s:    B/s kB/s MB/s GB/s TB/s, KiB/s MiB/s GiB/s TiB/s */
    DIM_TIME,        /* ns:         ns us ms s min h */
    DIM_FREQUENCY,   /* events/s:   Hz kHz MHz GHz, IOPS kIOPS MIOPS, /s */
    DIM_COMPUTE,     /* operations/s: FLOP/s GFLOP/s TFLOP/s PFLOP/s, OP/s GOP/s TOP/s POP/s */
    DIM_POWER,       /* microwatts: uW mW W kW */
    DIM_ENERGY,      /* picojoules: pJ nJ uJ mJ J, Wh */
    DIM_TEMPERATURE, /* millikelvin above 0 degrees Celsius: mC C */
    DIM_RATIO,       /* parts in 10^9: a plain decimal (0.71) or a percentage (71 %) */
    DIM_TOKEN_RATE   /* microtokens/s: tok/s, tok/min */
};

/* How strict: description files must name a unit, the command line may leave it out for bytes. */
enum quantity_rule { QUANTITY_UNIT_REQUIRED, QUANTITY_BARE_ALLOWED };

/* Parses the whole of `text` ("4GiB", "1.6 GB/s", "80us"). A sign, an unknown or missing unit, a
 * value that overflows or is no whole number of base units is ST_RANGE or ST_PARSE with a reason
 * that starts with `text`; the caller prefixes file and line. */
MUST_CHECK enum status quantity_parse(uint64_t *out, enum dimension dim, const char *text,
                                      enum quantity_rule rule, struct diag *dg);

#define QUANTITY_TEXT_MAX 40

/* Prints exactly: quantity_parse of the result gives `value` again. Chooses the largest unit that
 * needs at most three decimals, for sizes binary before decimal when both are equally short. */
const char *quantity_print(char buffer[QUANTITY_TEXT_MAX], uint64_t value, enum dimension dim);

/* For people: three significant digits in decimal units ("18.6 GB", "2.26 GB/s", "220 us"). */
const char *quantity_round(char buffer[QUANTITY_TEXT_MAX], uint64_t value, enum dimension dim);

const char *dimension_name(enum dimension dim);

#endif
