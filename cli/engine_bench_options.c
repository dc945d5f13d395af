/* engine_bench_options.c -- see engine_bench_options.h. */
#include "cli/engine_bench_options.h"

#include "base/nearest.h"
#include "base/quantity.h"

#include <inttypes.h>
#include <string.h>

#define SHAPE_MAX (UINT64_C(1) << 20)

const char *const layout_names[LAYOUT_COUNT + 1] = {
    [LAYOUT_BLOCKS] = "blocks", [LAYOUT_PACKED] = "packed"};

/* The pieces of a list and an array of as many elements. */
static enum status open_list(struct args *a, const char *option, size_t element_bytes,
                             const char *const **pieces, size_t *count, void **array,
                             struct diag *dg)
{
    *pieces = args_split(a, args_text(a, option), count);
    *array = *pieces ? args_memory(a, *count * element_bytes) : NULL;
    return *array ? ST_OK : diag_no_memory(dg);
}

static enum status read_number(uint64_t *out, const char *text, const char *option, uint64_t min,
                               uint64_t max, struct diag *dg)
{
    struct diag why;
    if (quantity_parse(out, DIM_COUNT, text, QUANTITY_BARE_ALLOWED, &why) != ST_OK)
        return diag_set(dg, ST_USAGE, "--%s: %s", option, why.text);
    if (*out < min || *out > max)
        return diag_set(dg, ST_USAGE,
                        "--%s: expected numbers from %" PRIu64 " to %" PRIu64 ", not %s", option,
                        min, max, text);
    return ST_OK;
}

enum status number_list_read(struct number_list *out, struct args *a, const char *option,
                             uint64_t min, uint64_t max, struct diag *dg)
{
    const char *const *piece;
    enum status st =
        open_list(a, option, sizeof *out->value, &piece, &out->count, (void **)&out->value, dg);
    for (size_t i = 0; st == ST_OK && i < out->count; i++)
        st = read_number(&out->value[i], piece[i], option, min, max, dg);
    return st;
}

enum status shape_list_read(struct shape_list *out, struct args *a, const char *option,
                            struct diag *dg)
{
    const char *const *piece;
    enum status st =
        open_list(a, option, sizeof *out->shape, &piece, &out->count, (void **)&out->shape, dg);
    for (size_t i = 0; st == ST_OK && i < out->count; i++) {
        char rows[24];
        uint64_t number[2];
        size_t n = strcspn(piece[i], "x");
        if (piece[i][n] != 'x' || n >= sizeof rows)
            return diag_set(dg, ST_USAGE, "--%s: expected ROWSxCOLS, not '%s'", option, piece[i]);
        memcpy(rows, piece[i], n);
        rows[n] = 0;
        st = read_number(&number[0], rows, option, 1, SHAPE_MAX, dg);
        if (st == ST_OK)
            st = read_number(&number[1], piece[i] + n + 1, option, 1, SHAPE_MAX, dg);
        if (st == ST_OK)
            out->shape[i] = (struct bench_shape){number[0], number[1]};
    }
    return st;
}

static enum status read_size(uint64_t *out, const char *text, const char *option, uint64_t unit,
                             uint64_t max, struct diag *dg)
{
    struct diag why;
    if (quantity_parse(out, DIM_SIZE, text, QUANTITY_BARE_ALLOWED, &why) != ST_OK)
        return diag_set(dg, ST_USAGE, "--%s: %s", option, why.text);
    if (*out == 0 || *out % unit != 0 || *out > max)
        return diag_set(dg, ST_USAGE,
                        "--%s: expected multiples of %" PRIu64 " bytes up to %" PRIu64 ", not %s",
                        option, unit, max, text);
    return ST_OK;
}

enum status range_list_read(struct range_list *out, struct args *a, const char *option,
                            uint64_t unit, uint64_t max, struct diag *dg)
{
    const char *const *piece;
    enum status st =
        open_list(a, option, sizeof *out->range, &piece, &out->count, (void **)&out->range, dg);
    for (size_t i = 0; st == ST_OK && i < out->count; i++) {
        char first[40];
        struct byte_range *r = &out->range[i];
        size_t n = strcspn(piece[i], "-");
        bool range = piece[i][n] == '-';
        if (n >= sizeof first)
            return diag_set(dg, ST_USAGE, "--%s: expected a size, not '%s'", option, piece[i]);
        memcpy(first, piece[i], n);
        first[n] = 0;
        st = read_size(&r->min, first, option, unit, max, dg);
        r->max = r->min;
        if (st == ST_OK && range)
            st = read_size(&r->max, piece[i] + n + 1, option, unit, max, dg);
        if (st == ST_OK && r->max < r->min)
            return diag_set(dg, ST_USAGE, "--%s: %s goes down", option, piece[i]);
    }
    return st;
}

static enum status unknown_name(const char *option, const char *name, const char *const *names,
                                size_t count, struct diag *dg)
{
    const char *near = nearest_name(name, names, count);
    return near ? diag_set(dg, ST_USAGE, "--%s: unknown name '%s' (did you mean '%s'?)", option,
                           name, near)
                : diag_set(dg, ST_USAGE, "--%s: unknown name '%s'", option, name);
}

static const char *const *format_names(const char *names[FORMAT_COUNT])
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        names[i] = block_format((enum format_id)i)->name;
    return names;
}

enum status format_list_read(struct format_list *out, struct args *a, const char *option,
                             struct diag *dg)
{
    const char *text = args_text(a, option), *names[FORMAT_COUNT];
    bool all = strcmp(text, "all") == 0;
    size_t n = FORMAT_COUNT;
    format_names(names);
    const char *const *piece = all ? names : args_split(a, text, &n);
    if (!piece)
        return diag_no_memory(dg);
    if (n > FORMAT_COUNT)
        return diag_set(dg, ST_USAGE, "--%s: too many formats", option);
    out->count = n;
    for (size_t i = 0; i < n; i++) {
        out->format[i] = block_format_find(piece[i]);
        if (!out->format[i])
            return unknown_name(option, piece[i], names, FORMAT_COUNT, dg);
    }
    return ST_OK;
}

enum status layout_list_read(struct layout_list *out, struct args *a, const char *option,
                             struct diag *dg)
{
    size_t n;
    const char *const *piece = args_split(a, args_text(a, option), &n);
    if (!piece)
        return diag_no_memory(dg);
    if (n > LAYOUT_COUNT)
        return diag_set(dg, ST_USAGE, "--%s: too many layouts", option);
    out->count = n;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < LAYOUT_COUNT && strcmp(piece[i], layout_names[k]) != 0)
            k++;
        if (k == LAYOUT_COUNT)
            return unknown_name(option, piece[i], layout_names, LAYOUT_COUNT, dg);
        out->layout[i] = (enum weight_layout)k;
    }
    return ST_OK;
}
