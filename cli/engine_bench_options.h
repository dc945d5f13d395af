/* engine_bench_options.h -- lists on the command line of `engine bench`: counts, shapes, formats, layouts. */
#ifndef CLI_ENGINE_BENCH_OPTIONS_H
#define CLI_ENGINE_BENCH_OPTIONS_H

#include "cli/args.h"
#include "kernels/isa/isa.h"

extern const char *const layout_names[LAYOUT_COUNT + 1]; /* by enum weight_layout; ends with NULL */

struct number_list {
    uint64_t *value; /* lives as long as the arguments */
    size_t count;
};
/* "1,2,32"; each within min..max. */
MUST_CHECK enum status number_list_read(struct number_list *out, struct args *a, const char *option,
                                        uint64_t min, uint64_t max, struct diag *dg);

struct shape_list {
    struct bench_shape {
        size_t rows, cols;
    } * shape;
    size_t count;
};
/* "2048x2048,768x2048"; each of the two within 1..2^20. */
MUST_CHECK enum status shape_list_read(struct shape_list *out, struct args *a, const char *option,
                                       struct diag *dg);

struct format_list {
    const struct block_format *format[FORMAT_COUNT];
    size_t count;
};
/* Names, or `all`. A misspelt one gets the nearest as a hint. */
MUST_CHECK enum status format_list_read(struct format_list *out, struct args *a, const char *option,
                                        struct diag *dg);

struct range_list {
    struct byte_range {
        uint64_t min, max;
    } * range;
    size_t count;
};
/* "1MiB,256KiB-8MiB": sizes and ranges of sizes; whole multiples of `unit`, up to `max`. */
MUST_CHECK enum status range_list_read(struct range_list *out, struct args *a, const char *option,
                                       uint64_t unit, uint64_t max, struct diag *dg);

struct layout_list {
    enum weight_layout layout[LAYOUT_COUNT];
    size_t count;
};
MUST_CHECK enum status layout_list_read(struct layout_list *out, struct args *a, const char *option,
                                        struct diag *dg);

#endif
