/* synth_file.c -- see synth_file.h. */
#include "tests/synth_file.h"

const struct synth_figures small_figures = {.layers = 5,
                                            .hidden = 256,
                                            .experts = 4,
                                            .top_k = 2,
                                            .expert_width = 256,
                                            .shared_width = 256,
                                            .heads = 4,
                                            .kv_heads = 2,
                                            .vocab = 300};

void write_synth(struct model *m, const char *architecture, const char *quant, uint64_t seed,
                 const char *path)
{
    struct diag dg;
    struct synth *s;
    struct synth_options o = {.seed = seed};
    assert_ok(synth_architecture_pick(&o.architecture, m, architecture, &dg));
    assert_ok(synth_model_quantise(m, quant, &dg));
    assert_ok(synth_new(&s, m, &o, path, &dg));
    uint64_t bytes;
    while (synth_left(s))
        assert_ok(synth_step(s, &bytes, &dg));
    assert_ok(synth_commit(s, &dg));
}

const char *small_synth(const char *name, const char *architecture, const char *quant,
                        uint64_t seed)
{
    struct diag dg;
    const struct synth_architecture *a;
    struct model *m;
    struct synth_figures figures = small_figures;
    assert_ok(synth_architecture_named(&a, architecture, &dg));
    figures.shared_width = a->shared ? figures.shared_width : 0;
    assert_ok(synth_model_new(&m, a, &figures, &dg));
    const char *path = temp_path(name);
    write_synth(m, architecture, quant, seed, path);
    model_free(m);
    return path;
}

struct opened open_gguf(const char *path)
{
    struct diag dg;
    struct opened o;
    assert_ok(gguf_open(&o.g, path, &dg));
    assert_ok(gguf_model_import(&o.m, o.g, &dg));
    return o;
}

void close_gguf(struct opened *o)
{
    model_free(o->m);
    gguf_close(o->g);
}
