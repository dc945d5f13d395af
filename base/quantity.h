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
    DIM_SIZE,        /* bytes:      B kB MB GB TB, KiB MiB GiB TiB; bits (Gb) are refused */
    DIM_RATE,        /* bytes/s:    B/s kB/s MB/s GB/s TB/s, KiB/s MiB/s GiB/s TiB/s */
    DIM_TIME,        /* ns:         ns us ms s min h */
    DIM_FREQUENCY,   /* events/s:   IOPS kIOPS MIOPS, /s, Hz kHz MHz GHz; printed as IOPS */
    DIM_COMPUTE,     /* operations/s: OP/s MOP/s GOP/s TOP/s POP/s, FLOP/s ... PFLOP/s */
    DIM_POWER,       /* microwatts: uW mW W kW */
    DIM_ENERGY,      /* picojoules: pJ nJ uJ mJ J, Wh */
    DIM_TEMPERATURE, /* millikelvin above 0 degrees Celsius: mC C */
    DIM_RATIO,       /* parts in 10^9: a plain decimal (0.71) or a percentage (71 %) */
    DIM_TOKEN_RATE   /* microtokens/s: tok/s, tok/min */
};

/* How strict: description files must name a unit; on the command line a bare number is bytes where a
 * size is expected, and of no other dimension. */
enum quantity_rule { QUANTITY_UNIT_REQUIRED, QUANTITY_BARE_ALLOWED };

/* Parses the whole of `text` ("4GiB", "1.6 GB/s", "80us", "71 %"): digits, perhaps one decimal point
 * with digits on both sides, perhaps blanks, the unit. Micro is u or the Greek letter, kB may be KB.
 * ST_PARSE: no number, unknown or missing unit (the allowed ones are named), bits for bytes,
 * something behind the unit. ST_RANGE: a sign, 2^64 base units or more, not a whole number of base
 * units. The reason starts with the quoted text; the caller prefixes file, line and key. */
MUST_CHECK enum status quantity_parse(uint64_t *out, enum dimension dim, const char *text,
                                      enum quantity_rule rule, struct diag *dg);

#define QUANTITY_TEXT_MAX 40

/* Prints exactly: quantity_parse of the result gives `value` again. Takes the largest unit that is not
 * above the value and needs at most three decimals; a binary prefix if that is shorter, for sizes
 * also if it is as short. Times end at seconds. Returns `buffer`. */
const char *quantity_print(char buffer[QUANTITY_TEXT_MAX], uint64_t value, enum dimension dim);

/* For people: three significant digits in decimal units ("18.6 GB", "2.26 GB/s", "220 us"), halves
 * up; base units and thousands of the largest unit are whole numbers. Returns `buffer`. */
const char *quantity_round(char buffer[QUANTITY_TEXT_MAX], uint64_t value, enum dimension dim);

const char *dimension_name(enum dimension dim);

#endif
