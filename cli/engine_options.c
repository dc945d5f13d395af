/* engine_options.c -- see engine_options.h. */
#include "cli/engine_options.h"

const char *const io_names[] = {"uring", "threads", NULL}; /* enum loader_backend_kind */
const char *const direct_names[] = {"on", "off", NULL};
const char *const engine_overlap_names[] = {"serial", "expert", NULL};
const char *const activation_names[] = {"q8", "f32", NULL};

static enum status read_quantity(uint64_t *out, enum dimension dim, const struct args *a,
                                 const char *option, struct diag *dg)
{
    struct diag why;
    *out = 0;
    if (!args_given(a, option))
        return ST_OK;
    if (quantity_parse(out, dim, args_text(a, option), QUANTITY_UNIT_REQUIRED, &why) != ST_OK)
        return diag_set(dg, ST_USAGE, "--%s: %s", option, why.text);
    if (*out == 0)
        return diag_set(dg, ST_USAGE, "--%s: above 0 is expected, not '%s'", option,
                        args_text(a, option));
    return ST_OK;
}

static enum status read_policy(struct decide_setup *d, struct args *a, struct diag *dg)
{
    struct policy_list list;
    enum status st = policy_list_read(&list, a, dg);
    if (st == ST_OK && list.count != 1)
        return diag_set(dg, ST_USAGE, "--policy: one policy a run");
    if (st == ST_OK)
        d->policy = list.policy[0];
    if (st == ST_OK && d->policy->clairvoyant && !args_given(a, "route"))
        return diag_set(dg, ST_USAGE,
                        "--policy: %s knows the future, which only a run with --route has",
                        d->policy->name);
    if (st == ST_OK)
        st = prefetch_options_read(a, &d->prefetch, &d->prefetch_distance, &d->prefetch_experts_max,
                                   &d->prefetch_bytes_max, dg);
    if (st == ST_OK && d->prefetch && d->prefetch->needs_future && !args_given(a, "route"))
        return diag_set(dg, ST_USAGE,
                        "--prefetch: %s knows the future, which only a run with --route has",
                        d->prefetch->name);
    d->scope = (enum scope)args_count(a, "scope");
    d->evict = (enum evict_when)args_count(a, "evict");
    d->seed = args_count(a, "seed");
    d->budget_bytes = args_given(a, "cache") ? args_count(a, "cache") : 0;
    return st;
}

enum status engine_options_read(struct engine_setup *s, struct args *a, struct diag *dg)
{
    enum status st = read_policy(&s->decide, a, dg);
    if (st == ST_OK && args_given(a, "cache") && args_given(a, "memory"))
        return diag_set(dg, ST_USAGE, "--cache and --memory exclude each other");
    if (st == ST_OK)
        st = read_quantity(&s->loader.limit_rate_Bps, DIM_RATE, a, "limit-rate", dg);
    if (st == ST_OK)
        st = read_quantity(&s->loader.add_latency_ns, DIM_TIME, a, "add-latency", dg);
    if (st != ST_OK)
        return st;
    s->memory_bytes = args_given(a, "memory") ? args_count(a, "memory") : 0;
    s->loader.backend = (enum loader_backend_kind)args_count(a, "io");
    s->loader.depth = (uint32_t)args_count(a, "depth");
    s->direct = args_count(a, "direct") == 0;
    s->overlap = args_count(a, "overlap") == 1;
    s->threads = args_given(a, "threads") ? args_count(a, "threads") : 0;
    s->isa = args_text(a, "isa");
    s->activations_f32 = args_count(a, "activations") == 1;
    s->chunk = args_count(a, "chunk");
    s->context = args_given(a, "context") ? args_count(a, "context") : 0;
    s->pack = args_text(a, "pack");
    s->prefetch_timed = args_count(a, "prefetch-when") == 1;
    bool outside = s->decide.prefetch && s->decide.prefetch->from_outside;
    if (s->prefetch_timed && !outside)
        return diag_set(dg, ST_USAGE,
                        "--prefetch-when idle needs --prefetch gate, heads or oracle");
    if (outside && !s->decide.prefetch->needs_future)
        s->predict_distance = s->decide.prefetch_distance;
    return ST_OK;
}
