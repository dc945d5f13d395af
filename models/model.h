/* model.h -- what a model is: layers of attention and feed-forward shapes, and the bytes they weigh.
 *
 * A struct model is the one place where shapes become parameters and bytes: roofline, simulator,
 * planner and engine all ask it (through work.h and state.h) and compute nothing of their own. It is
 * filled from a catalogue description (models/desc/NAME.yaml), a Hugging Face config.json or a GGUF
 * header; after that nobody can tell which, except by `origin`.
 */
#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include "base/arena.h"
#include "base/status.h"
#include "models/quant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum attention_family {
    ATTENTION_NONE,
    ATTENTION_GQA,        /* also MHA (kv_heads = heads) and MQA (kv_heads = 1); window > 0: SWA */
    ATTENTION_MLA,        /* one latent a token: kv_lora_rank + rope_head_dim */
    ATTENTION_COMPRESSED, /* DeepSeek-V4: shared latent, compressed `ratio`:1, window beside it */
    ATTENTION_LINEAR, /* gated delta net, KDA, Mamba: a fixed state, read and written every token */
    ATTENTION_CONV    /* short convolution (LFM2): a state of kernel-1 columns */
};

/* What an ATTENTION_LINEAR layer projects; the state is heads * key dim * value dim for all of them. */
enum linear_kind {
    LINEAR_DELTA_NET, /* gated delta net: q, k, v, output gate, two rates a head */
    LINEAR_KDA,       /* Kimi delta attention: q, k, v, decay of rank key dim, output gate */
    LINEAR_MAMBA      /* Mamba-2: key heads = groups, key dim = state size, one rate a head */
};

/* Shapes as in a config.json. A member that does not apply is 0. */
struct attention {
    enum attention_family family;
    uint64_t heads, kv_heads, head_dim, v_head_dim;
    uint64_t window;      /* last `window` tokens only; 0: all */
    bool keys_are_values; /* K = V: one vector stored instead of two */
    bool qkv_bias, output_bias, output_gate, qk_norm, sinks;
    bool borrows_cache; /* cross-layer sharing: reads another layer's cache, owns none */
    uint64_t q_lora_rank, kv_lora_rank, nope_head_dim, rope_head_dim;
    uint64_t o_lora_rank, o_groups;               /* DeepSeek-V4's grouped low-rank output */
    uint64_t compress_ratio;                      /* ATTENTION_COMPRESSED: 1, 2, 4, 128 */
    uint64_t index_heads, index_dim, index_top_k; /* DSA/CSA indexer; 0 heads: none */
    bool index_borrowed;                          /* uses another layer's index keys and choice */
    bool index_untotalled; /* weights stored, but outside the published totals */
    enum linear_kind linear_kind;
    uint64_t linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim;
    uint64_t linear_gate_rank; /* KDA: rank of the output gate; 0: full */
    uint64_t conv_kernel;      /* columns of the short convolution */
    uint64_t conv_channels;    /* ATTENTION_CONV: its width */
};

struct ffn {
    uint64_t dense_width;                  /* a dense FFN of this width; 0: none */
    uint64_t matrices;                     /* 3 gated, 2 plain */
    uint64_t experts, top_k, expert_width; /* experts 0: no routed experts in this layer */
    uint64_t expert_io_width; /* width an expert reads and writes; hidden, or a latent width */
    uint64_t shared_experts, shared_width; /* shared_width is the total over shared experts */
    bool shared_gate, router_bias, expert_bias;
};

/* Weights are kept by group, because groups differ in format, in tier and in who re-reads them. */
enum tensor_group {
    GROUP_EMBEDDING,
    GROUP_HEAD,
    GROUP_ATTENTION,
    GROUP_INDEXER,
    GROUP_ROUTER,
    GROUP_DENSE_FFN, /* and the projections to and from the latent width of the experts */
    GROUP_SHARED_EXPERT,
    GROUP_EXPERT,
    GROUP_OTHER, /* norms, biases and other vectors */
    GROUP_MAX
};
const char *tensor_group_name(enum tensor_group g);

/* Where one expert's gate, up and down slices lie in a GGUF file; only after a GGUF import. */
enum expert_part { PART_GATE, PART_UP, PART_DOWN, PART_MAX };
struct expert_extent {
    uint64_t offset;       /* of expert 0, from the start of file `file` */
    uint64_t stride_bytes; /* from one expert to the next */
    uint64_t bytes;        /* of one expert's slice */
    uint32_t file;         /* index of the split */
    uint32_t type;         /* GGUF tensor type number */
};

struct layer {
    struct attention attention;
    struct ffn ffn;
    uint64_t params[GROUP_MAX];       /* GROUP_EXPERT: all experts of the layer */
    uint64_t weight_bytes[GROUP_MAX]; /* as stored */
    uint64_t expert_params;           /* one expert */
    uint64_t expert_bytes;            /* one expert, as stored */
    uint64_t expert_bias_params;      /* one expert's biases: part of GROUP_OTHER */
    uint64_t expert_bias_bytes;
    struct expert_extent extent[PART_MAX];
};

struct model {
    struct arena arena; /* owns every text and array below */
    const char *name;   /* slug: qwen3-30b-a3b */
    const char *title;  /* Qwen3-30B-A3B */
    const char *origin; /* path of the description, config or GGUF header */
    const char *source; /* who published the shapes */
    const char *grade;  /* A config.json, B code or mirror, C partly from memory, D guessed */
    const char *note;   /* assumptions behind the shapes, or NULL */
    const char *router; /* routing preset that resembles it (sim/trace/presets), or NULL */
    uint64_t hidden, vocab, max_context;
    uint64_t positions; /* rows of a learned position table (OPT), part of the embedding */
    bool tied_embeddings;
    size_t layer_count;
    struct layer *layers;
    uint64_t params_embedding, params_head,
        params_final; /* params_final: last norm; head 0 if tied */
    uint64_t bytes_embedding, bytes_head, bytes_final;
    struct quant_mix quant;  /* what the weights are stored as */
    struct quant_mix native; /* what they were published as */
    bool bytes_exact;        /* from a GGUF header, not from a format table */
    uint64_t file_bytes;     /* GGUF only: sum of the files */
};

/* MODEL is a catalogue name, or a path that ends in .yaml, .gguf or .json. `catalogue` is the folder
 * with desc files (may be NULL if MODEL is a path). `overrides` are PATH=VALUE texts for .yaml. */
MUST_CHECK enum status model_load(struct model **out, const char *model, const char *catalogue,
                                  const char *const *overrides, size_t override_count,
                                  struct diag *dg);
void model_free(struct model *m);

/* The names of a catalogue folder, sorted; free with model_catalogue_free. */
MUST_CHECK enum status model_catalogue(char ***names, size_t *count, const char *catalogue,
                                       struct diag *dg);
void model_catalogue_free(char **names, size_t count);

/* Re-derives every byte figure for another format or mix ("q4_k_m", "mxfp4", "native"). Not for a
 * GGUF import, whose bytes are exact: ST_UNSUPPORTED. */
MUST_CHECK enum status model_requantise(struct model *m, const char *quant, struct diag *dg);
/* The routed experts alone, in a format of their own; everything else stays. Of a model without routed
 * experts nothing changes but the name of its mix. */
MUST_CHECK enum status model_requantise_experts(struct model *m, const char *format,
                                                struct diag *dg);

/* Text part only, without MTP layers. Active = all but the routed experts not chosen and an untied
 * input embedding. Indexers marked index_untotalled (GLM-5, DeepSeek-V4.1) weigh bytes but stay out
 * of both, as in the published figures. */
uint64_t model_params_total(const struct model *m);
uint64_t model_params_active(const struct model *m);
uint64_t model_weight_bytes(const struct model *m);
uint64_t model_expert_bytes_max(const struct model *m); /* largest single expert; 0 if none */
uint64_t model_experts_bytes(const struct model *m);    /* all routed experts of all layers */
uint64_t
model_token_cycle_bytes(const struct model *m); /* T = sum over layers of top_k * expert_bytes */
uint64_t model_moe_layers(const struct model *m);
uint64_t model_experts(const struct model *m); /* largest of any layer */
uint64_t model_top_k(const struct model *m);   /* largest of any layer */

#endif
