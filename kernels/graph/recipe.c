/* recipe.c -- see recipe.h. */
#include "kernels/graph/recipe.h"

#include "base/text.h"

static const struct recipe recipes[] = {
    {"qwen3moe", "ffn_norm.weight", ROPE_NEOX, NORM_HEAD, GATING_SOFTMAX, true, ACTIVATION_SWIGLU,
     false, false, 0},
    {"llama", "ffn_norm.weight", ROPE_ADJACENT, NORM_NONE, GATING_SOFTMAX, true, ACTIVATION_SWIGLU,
     false, false, 0},
    {"qwen2moe", "ffn_norm.weight", ROPE_NEOX, NORM_NONE, GATING_SOFTMAX, false, ACTIVATION_SWIGLU,
     false, false, MUST_QKV_BIAS | MUST_SHARED},
    {"olmoe", "ffn_norm.weight", ROPE_NEOX, NORM_ALL, GATING_SOFTMAX, false, ACTIVATION_SWIGLU,
     false, false, 0},
    {"gpt-oss", "post_attention_norm.weight", ROPE_NEOX, NORM_NONE, GATING_SOFTMAX_CHOSEN, true,
     ACTIVATION_SWIGLU_CLAMPED, false, true,
     MUST_QKV_BIAS | MUST_OUTPUT_BIAS | MUST_SINKS | MUST_ROUTER_BIAS | MUST_EXPERT_BIAS},
    {"deepseek2", "ffn_norm.weight", ROPE_ADJACENT, NORM_NONE, GATING_SOFTMAX, false,
     ACTIVATION_SWIGLU, true, false, 0},
};

enum status recipe_find(const struct recipe **out, const struct gguf *g, struct diag *dg)
{
    struct gguf_text name = {"", 0};
    char known[256] = "";
    gguf_get_text(g, "general.architecture", &name);
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        if (gguf_text_is(name, recipes[i].architecture)) {
            *out = &recipes[i];
            return ST_OK;
        }
        text_list(known, sizeof known, ", ", "%s", recipes[i].architecture);
    }
    return diag_set(dg, ST_UNSUPPORTED,
                    "%s: the engine runs architectures %s, not '%.*s'; plan and sim know more",
                    gguf_file_path(g, 0), known, (int)(name.length < 60 ? name.length : 60),
                    name.data);
}
