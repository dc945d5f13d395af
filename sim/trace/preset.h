/* preset.h -- routing presets: parameters of the latent-state router under a name, with their sources.
 *
 * A preset (sim/trace/presets/NAME.yaml) fits any number of layers, experts and top_k. It says where
 * each parameter comes from, what real trace or published figure it was fitted to, in which setting, and
 * how near it comes, so that the fit can be checked again. The text is as in the files:
 *     dimension: [64, fitted, "..."]            one line a member of struct generate_params
 *     setting: {layers: 48, experts: 128, top_k: 6, turns: 1, prompt: 28, tokens: 128}
 *     targets:
 *       - {measure: overlap_lag1, value: [38.0 %, measured, "..."], tolerance: 3 %}
 * With `dimension` 0 there is no latent state, and only `router_seed` may stand beside it.
 */
#ifndef SIM_TRACE_PRESET_H
#define SIM_TRACE_PRESET_H

#include "base/arena.h"
#include "base/value.h"
#include "sim/trace/generate.h"

enum preset_value {
    PRESET_ROUTER_SEED,
    PRESET_DIMENSION,
    PRESET_CONTEXT_SHARE,
    PRESET_SEQUENCE_SHARE,
    PRESET_DOMAIN_SHARE,
    PRESET_TOKEN_SHARE,
    PRESET_LAYER_SHARE,
    PRESET_CONTEXT_MEMORY,
    PRESET_DOMAINS,
    PRESET_DOMAIN_SWITCH,
    PRESET_TOKEN_CLASSES,
    PRESET_TOKEN_EXPONENT,
    PRESET_LAYER_MEMORY,
    PRESET_EXPERT_SPREAD,
    PRESET_SHARPNESS,
    PRESET_VALUES
};

/* Where the targets were measured: one turn of `prompt` + `tokens`, `turns` times. */
struct preset_setting {
    uint64_t layers, experts, top_k, turns, prompt, tokens;
    uint64_t expert_bytes; /* 0: no target is in bytes */
};

/* A figure the preset must reproduce. */
struct preset_target {
    const char *measure; /* of trace_measure.h; or, of decode hits, lru_NMiB: a global
                            LRU of that size, layer_lru_N: LRU of N slots a layer */
    struct value value;
    uint64_t tolerance; /* largest difference, parts in 10^9, as the value */
};

struct preset {
    struct arena arena; /* owns every text and list */
    const char *name;   /* the file's stem */
    const char *origin; /* its path */
    const char *title;
    const char *source; /* what it was fitted to, and which figures nobody published */
    struct value values[PRESET_VALUES];
    struct preset_setting setting;
    const struct preset_target *targets;
    size_t target_count;
    struct generate_params params; /* the values as the generator takes them */
};

/* PRESET is a name in `catalogue` or a path that ends in .yaml. `overrides` are PATH=VALUE texts. */
MUST_CHECK enum status preset_load(struct preset **out, const char *preset, const char *catalogue,
                                   const char *const *overrides, size_t override_count,
                                   struct diag *dg);
void preset_free(struct preset *p);

/* Taken where nothing is known of a model's router: at every size of a cache its hit ratio lies in the
 * middle of the public ones (docs/results/unknown-routing.md). Whoever falls back on it says so. */
#define PRESET_CUSTOMARY "gpt-oss"

/* The file's key of a parameter. */
const char *preset_value_key(enum preset_value v);

#endif
