/* use_counts.h -- keys by use count, then by last use: what LFU and its aged form share. Counts outlive
 * a stay in the cache ("perfect" LFU), so an expert that returns is known again. */
#ifndef SIM_POLICY_USE_COUNTS_H
#define SIM_POLICY_USE_COUNTS_H

#include "sim/policy/key_heap.h"

struct use_counts {
    struct key_heap members; /* the least used on top, among equals the one not used for longest */
    uint32_t *count;         /* by key */
    uint64_t *used_at;       /* by key, in uses */
    uint64_t uses;
    uint32_t keys;
};

size_t use_counts_bytes(uint32_t keys);
/* In `memory` of use_counts_bytes(keys), zeroed and aligned for uint64_t. */
void use_counts_start(struct use_counts *u, void *memory, uint32_t keys);
void use_counts_add(struct use_counts *u, uint32_t key);   /* one more use; a member from now on */
void use_counts_again(struct use_counts *u, uint32_t key); /* the same use again: recency only */
uint32_t use_counts_take(struct use_counts *u, const struct guard *g);
void use_counts_halve(struct use_counts *u); /* every count, members and others */

#endif
