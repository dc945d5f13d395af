/* engine_rig.h -- an engine on a GGUF file with all that it needs, for tests: set the choices, open, run. */
#ifndef TESTS_ENGINE_RIG_H
#define TESTS_ENGINE_RIG_H

#include "kernels/graph/graph.h"

struct engine_rig {
    /* choices; zero is: one thread, best ISA, 8-bit activations, io_uring, direct, overlap, lru */
    const char *path, *pack, *isa;
    size_t threads, chunk, context;
    bool activations_f32, serial, buffered;
    enum loader_backend_kind backend;
    struct decide_setup decide; /* budget 0: all experts */
    bool prefetch_timed;
    const char *decisions; /* path of a decision log */
    size_t predict_distance;
    graph_predict_fn *predict; /* NULL: the target's norm and router, run early */
    void *predict_self;
    bool trace; /* keep a routing trace */
    const struct loader_ops *ops;
    struct route route;
    size_t prompt, steps; /* how the run will be, for what knows the future */
    /* what is opened */
    struct graph_weights *weights;
    struct workers *workers;
    struct record record;
    struct experts *experts;
    struct graph *graph;
};

enum status engine_rig_open(struct engine_rig *r, struct diag *dg);
void engine_rig_close(struct engine_rig *r);
/* All tokens in passes as large as they may be; `logits`, n x vocab, may be NULL. */
enum status engine_rig_prompt(struct engine_rig *r, const uint32_t *tokens, size_t n, float *logits,
                              struct diag *dg);
/* `n` greedy tokens after the last of `last`, one a pass. */
enum status engine_rig_greedy(struct engine_rig *r, uint32_t last, uint32_t *out, size_t n,
                              struct diag *dg);

/* The prompt of the golden models: 48 ids. */
#define GOLDEN_TOKENS 48
#define GOLDEN_VOCAB  320
void golden_prompt(uint32_t tokens[GOLDEN_TOKENS]);

#endif
