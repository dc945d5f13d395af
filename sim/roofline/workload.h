/* workload.h -- what one pass asks for: operations and bytes, summed over classes of equal layers.
 *
 * All figures come from models/work.h; this module only groups them by who is waited for: the fixed
 * part of a layer, its routed experts, the ends. A model of 48 equal layers is one class, so an
 * estimate costs the same for 5 layers and for 93.
 */
#ifndef SIM_ROOFLINE_WORKLOAD_H
#define SIM_ROOFLINE_WORKLOAD_H

#include "models/work.h"

/* Layers that ask for the same. Bytes are of weights and state that the kernels read. */
struct layer_class {
    uint64_t layers;
    struct work work;
    uint64_t unique_e3;                     /* experts looked up, parts per 1000 */
    uint64_t expert_size;                   /* one expert as stored */
    uint64_t rows_e3;                       /* tokens of the pass an expert sees, parts per 1000 */
    uint64_t expert_ops, expert_read_bytes; /* routed experts */
    uint64_t fixed_ops, fixed_bytes;        /* everything else, state included */
    uint64_t trunk_bytes;                   /* fixed weights alone */
    uint64_t calls;                         /* kernels started */
};

struct workload {
    uint64_t tokens; /* in the pass, all sequences together */
    size_t class_count;
    struct layer_class *classes;
    struct work total; /* all layers and the ends */
    struct work ends;  /* embedding rows, last norm, head */
    uint64_t ends_ops, ends_bytes;
};

struct workload_request {
    uint64_t sequences;  /* decode: one token each; each reads its own state */
    uint64_t tokens;     /* of one sequence: 1, or a prefill chunk (then sequences is 1) */
    uint64_t context;    /* tokens of state that exist before the pass */
    uint64_t logits;     /* rows the head computes */
    uint32_t state_bits; /* in 1/16 bit, as state_bits_find() */
    /* Distinct experts of `tokens` tokens, parts per 1000; NULL: independent uniform routing. */
    uint64_t (*distinct_e3)(const void *self, uint64_t experts, uint64_t top_k, uint64_t tokens);
    const void *distinct_self;
};

MUST_CHECK enum status workload_init(struct workload *out, const struct model *m,
                                     const struct workload_request *request, struct diag *dg);
void workload_free(struct workload *l);
/* Every other weight likewise. */
void workload_scale_trunk(struct workload *l, uint64_t factor);
/* Experts stored at another width: expert bytes times `factor` parts in 10^9. */
void workload_scale_experts(struct workload *l, uint64_t factor);
uint64_t workload_expert_bytes(const struct workload *l); /* of all experts looked up in the pass */
uint64_t
workload_trunk_bytes(const struct workload *l); /* fixed weights the pass reads, ends included */
uint64_t workload_ops(const struct workload *l);
uint64_t workload_expert_ops(const struct workload *l);

#endif
