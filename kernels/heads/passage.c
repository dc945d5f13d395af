/* passage.c -- see passage.h. */
#include "kernels/heads/passage.h"

enum status passage_run(struct engine *e, const uint32_t *tokens, size_t count, size_t window,
                        graph_progress_fn *progress, void *progress_self, struct diag *dg)
{
    enum status st = ST_OK;
    for (size_t at = 0; st == ST_OK && at < count; at += window) {
        size_t n = count - at < window ? count - at : window;
        graph_restart(engine_graph(e));
        st = engine_prompt(e, tokens + at, n, NULL, NULL, dg);
        if (st == ST_OK && progress)
            progress(progress_self, at + n, count);
    }
    return st;
}
