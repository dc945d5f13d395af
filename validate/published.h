/* published.h -- measured runs of other people: one row a figure, with every input that its source gives.
 *
 * The file is CSV with the columns that validate/data/README.md lists; columns that are missing count as
 * empty, except for those without which a row says nothing (id, metric, unit, value). A row is run in one
 * or more classes, by what it may read:
 *
 *     blind   model, machine, engine and memory only
 *     hits    also the hit ratio, or the bytes that a token reads
 *     given   also the compute seconds of a token and, where reads and kernels do not overlap, its I/O seconds
 *
 * published_mask() blanks what a class may not read; everything that runs a row works on the masked copy,
 * so a class cannot see more than that. */
#ifndef VALIDATE_PUBLISHED_H
#define VALIDATE_PUBLISHED_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum published_class { PUBLISHED_BLIND, PUBLISHED_HITS, PUBLISHED_GIVEN, PUBLISHED_CLASSES };
extern const char *const published_class_names[]; /* ends with NULL */

/* A number of the file, or nothing. */
struct published_number {
    double value;
    bool given;
};

/* Texts are never NULL; "" where the field is empty. Units as in the column's name; ratios 0 to 1. */
struct published_row {
    size_t line;
    const char *id, *engine, *metric, *unit, *grade;
    const char *model, *device, *profile; /* names in the catalogues */
    const char *quant, *expert_quant;
    const char *cache_policy, *io_mode, *overlap, *prefetch, *flash_kind, *rule;
    struct published_number value, value_low,
        value_high; /* low, high: where a range was published */
    struct published_number tolerance_percent;
    struct published_number top_k, layers_moe, experts, expert_bytes, dense_bytes;
    struct published_number flash_Bps, flash_lanes, dram_bytes, cache_bytes, cache_experts;
    struct published_number draft, acceptance;
    struct published_number hit_ratio, bytes_per_token, recall;
    struct published_number compute_s, io_s;
    struct published_number prefill_tokens, context_tokens;
    struct published_number gen_tokens; /* all that the run decoded, counted from its first */
};

struct published {
    struct arena arena; /* owns every text and the rows */
    const char *path;
    struct published_row *rows;
    size_t count;
};

/* ST_PARSE, with file:line, for a number that is none or lies out of its column's range, and for a rule that is
 * unknown. Whether top_k suits the model is for published_check_models(). */
MUST_CHECK enum status published_load(struct published *out, const char *path, struct diag *dg);
void published_free(struct published *p);

/* True if the row has what the class adds to the one below it. Every row can be blind. */
bool published_allows(const struct published_row *row, enum published_class class_of);
/* The row without what `class_of` may not read: `value` and the tolerance too, which no class may. */
struct published_row published_mask(const struct published_row *row, enum published_class class_of);

#endif
