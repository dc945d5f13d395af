/* lora_rig.c -- see lora_rig.h. Everything is loops over floats: what the engine does is not used
 * here. */
#include "tests/lora_rig.h"

#include "base/pcg.h"
#include "kernels/formats/half.h"
#include "models/gguf_write.h"
#include "tests/support.h"

static struct diag dg;

static void name_of(char out[256], const struct gguf_tensor *t, const char *suffix)
{
    snprintf(out, 256, "%.*s%s", (int)t->name.length, t->name.data, suffix);
}

static bool ends(const struct gguf_tensor *t, const char *suffix)
{
    size_t n = strlen(suffix);
    return t->name.length > n && !memcmp(t->name.data + t->name.length - n, suffix, n);
}

bool lora_pick_all(const struct gguf_tensor *t)
{
    return t->dims > 1 && ends(t, ".weight") && !gguf_text_is(t->name, "token_embd.weight");
}

/* Each picked tensor as a pair, by way of `each`. */
static void declare(struct gguf_write *w, const struct gguf_tensor *t, uint64_t rank)
{
    char name[256];
    name_of(name, t, ".lora_a");
    gguf_write_tensor(w, name, quant_find("f32"), t->dims,
                      (uint64_t[]){t->extent[0], rank, t->extent[2]});
    name_of(name, t, ".lora_b");
    gguf_write_tensor(w, name, quant_find("f32"), t->dims,
                      (uint64_t[]){rank, t->extent[1], t->extent[2]});
}

static void write_random(struct gguf_write *w, uint64_t count, float amplitude, struct pcg *p)
{
    float *x = malloc(count * sizeof *x);
    assert_non_null(x);
    for (uint64_t i = 0; i < count; i++)
        x[i] = amplitude * ((float)pcg_below(p, 2001) / 1000.0f - 1.0f);
    assert_ok(gguf_write_data(w, x, count * sizeof *x, &dg));
    free(x);
}

void lora_write(const char *path, const char *model, lora_pick_fn *pick, uint64_t rank, float alpha,
                float amplitude, uint64_t seed)
{
    struct gguf *g;
    struct gguf_write *w;
    struct gguf_text text;
    struct pcg p;
    char architecture[64];
    pcg_seed(&p, seed, 1);
    assert_ok(gguf_open(&g, model, &dg));
    assert_ok(gguf_write_new(&w, &dg));
    assert_true(gguf_get_text(g, "general.architecture", &text));
    snprintf(architecture, sizeof architecture, "%.*s", (int)text.length, text.data);
    gguf_write_text(w, "general.type", "adapter");
    gguf_write_text(w, "general.architecture", architecture);
    gguf_write_text(w, "adapter.type", "lora");
    gguf_write_f32(w, "adapter.lora.alpha", alpha);
    for (size_t i = 0; i < gguf_tensor_count(g); i++)
        if (pick(gguf_tensor_at(g, i)))
            declare(w, gguf_tensor_at(g, i), rank);
    assert_ok(gguf_write_open(w, path, &dg));
    for (size_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        if (!pick(t))
            continue;
        write_random(w, t->extent[0] * rank * t->extent[2], amplitude, &p);
        write_random(w, t->extent[1] * rank * t->extent[2], amplitude, &p);
    }
    assert_ok(gguf_write_commit(w, &dg));
    gguf_close(g);
}

static void add_product(char *weights, const struct gguf_tensor *t, const float *a, const float *b,
                        uint64_t rank, float scale)
{
    bool half = t->format == quant_find("f16");
    uint64_t cols = t->extent[0], rows = t->extent[1];
    for (uint64_t i = 0; i < t->weights; i++) {
        uint64_t c = i % cols, r = i / cols % rows, e = i / cols / rows;
        float add = 0, old;
        for (uint64_t k = 0; k < rank; k++)
            add += a[(e * rank + k) * cols + c] * b[(e * rows + r) * rank + k];
        uint16_t bits;
        memcpy(half ? (void *)&bits : (void *)&old, weights + i * (half ? 2 : 4), half ? 2 : 4);
        float new = (half ? half_to_float(bits) : old) + scale *add;
        bits = half_of_float(new);
        memcpy(weights + i * (half ? 2 : 4), half ? (void *)&bits : (void *)&new, half ? 2 : 4);
    }
}

void lora_merge(const char *path, const char *model, const char *const *adapters, size_t n)
{
    struct gguf *base;
    size_t bytes, lora_bytes;
    char *file = read_whole(model, &bytes);
    assert_ok(gguf_open(&base, model, &dg));
    for (size_t k = 0; k < n; k++) {
        struct gguf *g;
        double alpha;
        char *lora = read_whole(adapters[k], &lora_bytes);
        assert_ok(gguf_open(&g, adapters[k], &dg));
        assert_true(gguf_double(g, "adapter.lora.alpha", &alpha));
        for (size_t i = 0; i < gguf_tensor_count(base); i++) {
            const struct gguf_tensor *t = gguf_tensor_at(base, i);
            char name[256];
            name_of(name, t, ".lora_a");
            const struct gguf_tensor *a = gguf_tensor_find(g, name);
            name_of(name, t, ".lora_b");
            if (a)
                add_product(file + t->offset, t, (const float *)(const void *)(lora + a->offset),
                            (const float *)(const void *)(lora + gguf_tensor_find(g, name)->offset),
                            a->extent[1],
                            alpha != 0 ? (float)(alpha / (double)a->extent[1]) : 1.0f);
        }
        gguf_close(g);
        free(lora);
    }
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(file, 1, bytes, out), bytes);
    assert_int_equal(fclose(out), 0);
    gguf_close(base);
    free(file);
}
