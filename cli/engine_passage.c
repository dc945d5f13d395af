/* engine_passage.c -- see engine_passage.h. */
#include "cli/engine_passage.h"

#include "base/progress.h"
#include "cli/command.h"
#include "cli/engine_run_text.h"
#include "models/gguf_model.h"

#define WINDOW_USUAL 512

enum status passage_read(struct token_list *out, struct args *a, const char *model,
                         const char *path, struct diag *dg)
{
    struct engine_text t = {0};
    size_t most = args_count(a, "tokens-max");
    enum status st = path ? engine_text_open(&t, model, dg) : engine_text_ids(out, a, dg);
    if (st == ST_OK && path)
        st = engine_text_file(out, &t, path, dg);
    if (st == ST_OK && out->count > most) {
        say("of %zu tokens the first %zu are read: --tokens-max takes more", out->count, most);
        out->count = most;
    }
    engine_text_close(&t);
    return st;
}

void passage_setup(struct engine_setup *s, const struct args *a, const char *model)
{
    *s = (struct engine_setup){
        .model = model,
        .isa = args_text(a, "isa"),
        .threads = args_count(a, "threads"),
        .overlap = true,
        .direct = true,
        .decide = {.policy = cache_policy_find("lru"), .budget_bytes = args_count(a, "cache")},
        .loader = {.backend = LOADER_URING, .depth = 16},
    };
    s->decide.prefetch_distance = 1;
}

enum status passage_window(size_t *window, struct engine_setup *s, const struct args *a,
                           struct diag *dg)
{
    struct gguf *g;
    struct model *m = NULL;
    enum status st = gguf_open(&g, s->model, dg);
    if (st == ST_OK) {
        st = gguf_model_import(&m, g, dg);
        gguf_close(g);
    }
    if (st != ST_OK)
        return st;
    uint64_t most = m->max_context ? m->max_context : WINDOW_USUAL;
    *window = args_given(a, "window") ? args_count(a, "window")
              : most < WINDOW_USUAL   ? most
                                      : WINDOW_USUAL;
    s->context = *window;
    if (*window > most)
        st = diag_set(dg, ST_RANGE, "--window: the model's context has %zu tokens", (size_t)most);
    model_free(m);
    return st;
}

void passage_progress(void *self, uint64_t done, uint64_t all)
{
    struct progress *bar = self;
    if (bar->total != all)
        progress_start(bar, bar->label, all);
    progress_add(bar, done - bar->done);
}
