/* state.c -- see state.h. A cache is counted in elements first and in bytes last, so that formats of
 * fractional bits stay exact and no sum rounds twice. */
#include "models/state.h"

#include <assert.h>
#include <strings.h>

/* Elements times tokens times sixteenths of a bit outgrow 64 bits. */
typedef unsigned __int128 wide;

#define LINEAR_STATE_BITS   (32u * 16u)
#define CONV_STATE_BITS     (16u * 16u)
#define SIXTEENTHS_PER_BYTE 128u

static uint64_t narrow(wide n)
{
    return n > UINT64_MAX ? UINT64_MAX : (uint64_t)n;
}

static uint64_t to_bytes(wide elements, uint32_t bits)
{
    assert(bits > 16); /* a caller that means 16 bits writes STATE_BITS_F16 */
    return narrow(elements * bits / SIXTEENTHS_PER_BYTE);
}

static uint64_t at_most(uint64_t n, uint64_t limit)
{
    return limit && n > limit ? limit : n;
}

uint32_t state_bits_find(const char *name)
{
    static const struct {
        const char *name;
        uint32_t bits;
    } formats[] = {
        {"f32", 512},
        {"f16", STATE_BITS_F16},
        {"bf16", STATE_BITS_F16},
        {"fp8", 128},
        {"int8", 128},
        {"q8_0", 136},
        {"q5_1", 96},
        {"q5_0", 88},
        {"q4_1", 80},
        {"q4_0", 72},
        {"mxfp4", 68},
        {"fp4", 68},
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcasecmp(formats[i].name, name) == 0)
            return formats[i].bits;
    return 0;
}

static bool owns_index(const struct attention *a)
{
    return a->index_heads > 0 && !a->index_borrowed;
}

/* Elements of one entry of the main cache, index keys apart. */
static uint64_t entry_elements(const struct attention *a)
{
    uint64_t values = a->v_head_dim ? a->v_head_dim : a->head_dim;
    switch (a->family) {
    case ATTENTION_GQA:
        return a->kv_heads * (a->head_dim + (a->keys_are_values ? 0 : values));
    case ATTENTION_MLA:
        return a->kv_lora_rank + a->rope_head_dim;
    case ATTENTION_COMPRESSED:
        return a->head_dim;
    case ATTENTION_NONE:
    case ATTENTION_LINEAR:
    case ATTENTION_CONV:
        break;
    }
    return 0;
}

/* Elements that every `*tokens` further tokens add for good, index keys included; 0: none. */
static uint64_t growing_elements(const struct attention *a, uint64_t *tokens)
{
    uint64_t index = owns_index(a) ? a->index_dim : 0;
    *tokens = 1;
    if (a->borrows_cache)
        return 0;
    if (a->family == ATTENTION_COMPRESSED) {
        *tokens = a->compress_ratio ? a->compress_ratio : 1;
        return a->compress_ratio ? entry_elements(a) + index : 0;
    }
    return a->window ? 0 : entry_elements(a) + index;
}

/* A window is owned even by a compressed layer that borrows the rest. */
static uint64_t window_elements(const struct attention *a)
{
    bool owned = a->family == ATTENTION_COMPRESSED || !a->borrows_cache;
    return a->window && owned ? entry_elements(a) : 0;
}

static uint64_t recurrent_bytes(const struct attention *a)
{
    if (a->family == ATTENTION_LINEAR)
        return to_bytes((wide)a->linear_value_heads * a->linear_key_dim * a->linear_value_dim,
                        LINEAR_STATE_BITS);
    if (a->family == ATTENTION_CONV)
        return to_bytes((wide)a->conv_channels * a->conv_kernel, CONV_STATE_BITS);
    return 0;
}

uint64_t state_millibytes_per_token(const struct model *m, uint32_t state_bits)
{
    assert(state_bits > 16);
    wide sum = 0;
    for (size_t i = 0; i < m->layer_count; i++) {
        uint64_t tokens;
        uint64_t elements = growing_elements(&m->layers[i].attention, &tokens);
        sum += (wide)elements * state_bits * 1000 / SIXTEENTHS_PER_BYTE / tokens;
    }
    return narrow(sum);
}

uint64_t state_fixed_bytes(const struct model *m, uint32_t state_bits)
{
    wide sum = 0;
    for (size_t i = 0; i < m->layer_count; i++) {
        const struct attention *a = &m->layers[i].attention;
        sum += to_bytes((wide)window_elements(a) * a->window, state_bits);
        sum += recurrent_bytes(a);
    }
    return narrow(sum);
}

uint64_t state_layer_bytes(const struct attention *a, uint64_t context, uint32_t state_bits)
{
    uint64_t tokens;
    uint64_t growing = growing_elements(a, &tokens);
    wide elements = (wide)growing * (context / tokens);
    elements += (wide)window_elements(a) * at_most(context, a->window);
    return narrow((wide)to_bytes(elements, state_bits) + recurrent_bytes(a));
}

uint64_t state_bytes(const struct model *m, uint64_t context, uint32_t state_bits)
{
    wide sum = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        sum += state_layer_bytes(&m->layers[i].attention, context, state_bits);
    return narrow(sum);
}

/* Stored entries that a pass reads, given what one of its tokens may choose at most (0: all). */
static uint64_t chosen(uint64_t stored, uint64_t each, uint64_t tokens)
{
    uint64_t most;
    if (each == 0 || __builtin_mul_overflow(each, tokens, &most))
        return stored;
    return stored < most ? stored : most;
}

uint64_t state_layer_pass_read_bytes(const struct attention *a, uint64_t context, uint64_t tokens,
                                     uint32_t state_bits)
{
    if (tokens == 0)
        return 0;
    uint64_t visible = context + tokens - 1; /* the last token's own entry is still at hand */
    uint64_t in_window = at_most(visible, a->window ? a->window + tokens - 1 : 0);
    wide elements = 0;
    switch (a->family) {
    case ATTENTION_NONE:
        return 0;
    case ATTENTION_LINEAR:
        return narrow((wide)recurrent_bytes(a) * tokens);
    case ATTENTION_CONV:
        return recurrent_bytes(a);
    case ATTENTION_GQA:
        elements = (wide)entry_elements(a) * chosen(in_window, a->index_top_k, tokens);
        break;
    case ATTENTION_MLA:
        elements = (wide)entry_elements(a) * chosen(visible, a->index_top_k, tokens);
        if (owns_index(a))
            elements += (wide)a->index_dim * visible;
        break;
    case ATTENTION_COMPRESSED: {
        uint64_t stored = a->compress_ratio ? visible / a->compress_ratio : 0;
        uint64_t latents = chosen(stored, a->index_top_k, tokens) + in_window;
        elements = (wide)entry_elements(a) * latents;
        if (owns_index(a))
            elements += (wide)a->index_dim * stored;
        break;
    }
    }
    return to_bytes(elements, state_bits);
}

uint64_t state_layer_read_bytes(const struct attention *a, uint64_t context, uint32_t state_bits)
{
    return state_layer_pass_read_bytes(a, context, 1, state_bits);
}

uint64_t state_layer_write_bytes(const struct attention *a, uint64_t tokens, uint32_t state_bits)
{
    uint64_t every;
    uint64_t growing = growing_elements(a, &every);
    wide elements = (wide)growing * tokens / every + (wide)window_elements(a) * tokens;
    uint64_t bytes = to_bytes(elements, state_bits);
    if (a->family == ATTENTION_LINEAR)
        bytes = narrow((wide)recurrent_bytes(a) * tokens);
    if (a->family == ATTENTION_CONV)
        bytes = to_bytes((wide)a->conv_channels * tokens, CONV_STATE_BITS);
    return bytes;
}
