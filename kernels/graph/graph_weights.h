/* graph_weights.h -- the weights of a GGUF model as the graph uses them: dense ones resident, experts
 * as places in files.
 *
 * Dense matrices are read once, and repacked on the way into the layout that kernels like (packed.h),
 * into one arena of huge pages; the embedding keeps its rows. Routed experts stay in the file: the
 * model's layers say where each slice lies (struct expert_extent), their biases are resident.
 *
 * Every tensor of the file must be one that the recipe uses, with the shape that the model's figures
 * ask for: a tensor that is ignored would change what is computed without a word. ST_UNSUPPORTED names an unknown one,
 * ST_PARSE one that is missing or of the wrong shape.
 */
#ifndef KERNELS_GRAPH_GRAPH_WEIGHTS_H
#define KERNELS_GRAPH_GRAPH_WEIGHTS_H

#include "kernels/graph/matrix.h"
#include "kernels/graph/recipe.h"
#include "kernels/isa/rope.h"
#include "models/model.h"

/* Members that a layer lacks are NULL, or matrices of 0 rows. */
struct layer_weights {
    const float *attn_norm, *ffn_norm;            /* hidden */
    const float *q_norm, *k_norm;                 /* a head, or all heads */
    const float *q_a_norm, *kv_a_norm;            /* MLA: q_lora_rank, kv_lora_rank */
    const float *sinks;                           /* heads */
    const float *select_bias;                     /* experts: added for the choice only */
    const float *gate_bias, *up_bias, *down_bias; /* experts x width, .. x hidden */
    struct matrix q, k, v, out;                   /* attention; out: hidden rows */
    struct matrix q_a, q_b, kv_a, kv_b, k_b, v_b; /* MLA */
    struct matrix router, gate, up, down;         /* dense feed-forward */
    struct matrix shared_gate, shared_up, shared_down, shared_router;
    /* By enum expert_part: an adapter for each routed expert (rank 0: none), or NULL (adapter.h). */
    const struct low_rank *expert_adapter[PART_MAX];
};

/* Figures that the graph needs and struct model does not keep. */
struct graph_numbers {
    float epsilon; /* of the norms */
    enum gating gating;
    bool normalised;
    float weights_scale;          /* of the routed experts' sum */
    uint32_t groups, groups_used; /* of experts, for the choice; 1: all */
    size_t rope_dims;             /* rotated elements of a head */
    struct rope_scaling rope;
    float rope_magnitude;  /* on cosine and sine */
    float attention_scale; /* on 1/sqrt(head): MLA's with YaRN */
};

struct graph_weights {
    struct gguf *file;
    struct model *model;
    const struct recipe *recipe;
    struct graph_numbers numbers;
    struct matrix embedding; /* GGUF rows: vocab x hidden */
    struct matrix head;
    const float *final_norm;
    struct layer_weights *layers; /* model->layer_count */
    size_t dense_bytes;           /* of the arena: what is resident */
    void *arena;
    size_t arena_bytes;
};

/* Opens and reads the model. `progress` may be NULL: it is told bytes read so far and in all. */
typedef void graph_progress_fn(void *self, uint64_t done, uint64_t all);
MUST_CHECK enum status graph_weights_load(struct graph_weights **out, const char *path,
                                          graph_progress_fn *progress, void *self, struct diag *dg);
void graph_weights_free(struct graph_weights *w); /* NULL is fine */

#endif
