/* synth_shape.h -- the architectures whose files can be made up, and which of them a model fits.
 *
 * A file of an architecture holds certain tensors under certain names and nothing else, so a model fits
 * only if it has exactly the parts that the architecture has: an attention output gate, say, has no
 * place in qwen3moe. What fits is written without loss: the importer (models/gguf_model.h) gives the same
 * shapes, parameters and bytes back.
 */
#ifndef KERNELS_SYNTH_SYNTH_SHAPE_H
#define KERNELS_SYNTH_SYNTH_SHAPE_H

#include "models/model.h"

struct synth_architecture {
    const char *name;        /* general.architecture */
    const char *only_called; /* chosen by itself only for models whose name holds this; NULL: any */
    const char *ffn_norm;    /* name of the second norm */
    const char *router_bias; /* tensor of the router's bias */
    enum attention_family family;
    bool qk_norm, qk_norm_wide; /* of each head, or of all heads together */
    bool qkv_bias, output_bias, sinks, expert_bias, shared_gate;
    bool shared;           /* may have a shared expert; with shared_gate it must */
    bool router_bias_must; /* else router_bias may be there only if router_bias is named */
    bool dense_first;      /* the first layers may be dense */
    bool dense_only;       /* a model without experts is fine too */
    unsigned window_period;
    float rope_base, epsilon; /* as usual in its models */
};

size_t synth_architecture_count(void);
const struct synth_architecture *synth_architecture_at(size_t i);
/* ST_MISSING names those that there are. */
MUST_CHECK enum status synth_architecture_named(const struct synth_architecture **out,
                                                const char *name, struct diag *dg);

/* NULL if the model fits; else what does not, "layer 3 has ...", in `text`. */
#define SYNTH_REASON_MAX 128
const char *synth_misfit(char text[SYNTH_REASON_MAX], const struct synth_architecture *a,
                         const struct model *m);
/* The architecture a model is written as: the one called `name`, or if NULL the first that fits. ST_MISSING: there is
 * no such one; ST_UNSUPPORTED: the model does not fit, with the reason. */
MUST_CHECK enum status synth_architecture_pick(const struct synth_architecture **out,
                                               const struct model *m, const char *name,
                                               struct diag *dg);

/* Figures of a shape; 0 leaves what the model has. */
struct synth_figures {
    uint64_t layers; /* of a model: its first ones */
    uint64_t hidden, experts, top_k, expert_width, shared_width, heads, kv_heads, head_dim, window,
        vocab, context;
};
/* A model of an architecture from figures alone. Needed: layers, hidden, heads, vocab, experts, top_k,
 * expert_width. Else: kv_heads = heads, head_dim = hidden / heads, context 4096, window 128 (gpt-oss),
 * shared_width = expert_width where a shared expert must be. deepseek2 takes DeepSeek-V2's proportions: keys of head_dim
 * and half as much rotated, a latent of 4 head_dim, no dense layers. ST_USAGE names the figure that is
 * missing; ST_RANGE as model.h. */
MUST_CHECK enum status synth_model_new(struct model **out, const struct synth_architecture *a,
                                       const struct synth_figures *f, struct diag *dg);
/* Changes a loaded model. */
MUST_CHECK enum status synth_model_change(struct model *m, const struct synth_figures *f,
                                          struct diag *dg);
/* Its weights in `quant` (NULL: as published); vectors and routers F32, as files of that kind have them. ST_UNSUPPORTED: a
 * format that GGUF has not, or that no block of which can be made here, named. */
MUST_CHECK enum status synth_model_quantise(struct model *m, const char *quant, struct diag *dg);

#endif
