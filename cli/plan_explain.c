/* plan_explain.c -- `memwall plan --explain`: each figure with its formula, each input with its source. */
#include "cli/plan_print.h"

#include "base/fixed.h"

#include <inttypes.h>
#include <stdio.h>

static void line(const char *name, const char *formula, uint64_t value, enum dimension dim)
{
    char text[QUANTITY_TEXT_MAX];
    printf("  %-22s %-12s %s\n", name, quantity_round(text, value, dim), formula);
}

static void explain_memory(const struct plan *p)
{
    const struct placement *w = &p->place;
    printf("\nmemory\n");
    line("given", "--dram, or capacity less what the system keeps", w->given, DIM_SIZE);
    line("weights", "sum over tensors of whole blocks (models/quant.h)", w->weights, DIM_SIZE);
    line("dense", "weights less all routed experts", w->dense, DIM_SIZE);
    line("state", "by attention family at this context (SYSTEMS 1.8)", w->state, DIM_SIZE);
    line("buffers", "lanes * read + chunk * hidden * 16 B + vocabulary * 4 B", w->buffers,
         DIM_SIZE);
    line("cache", "given - dense - state - buffers, or --cache", w->cache, DIM_SIZE);
    line("minimum", "dense + state + buffers + top_k experts of the largest layer", w->minimum,
         DIM_SIZE);
}

static void explain_bytes(const struct plan *p)
{
    const struct tally *y = &p->tally;
    printf("\nbytes and operations of a token\n");
    line("experts", "T = sum over layers of top_k * expert bytes", y->expert_bytes, DIM_SIZE);
    line("from flash", "T * (1 - h) + dense weights read again", y->flash_bytes, DIM_SIZE);
    line("through memory", "weights + state + flash * (1 + 2 * copies)", y->memory_bytes, DIM_SIZE);
    line("over the link", "what crosses to memory of the unit's own", y->link_bytes, DIM_SIZE);
    printf("  %-22s %-12" PRIu64 " 2 * parameters used + attention over the state\n", "operations",
           y->ops);
    printf("  %-22s %-12" PRIu64 " misses * pieces\n", "reads", y->reads);
}

static void explain_hits(const struct plan *p)
{
    if (!p->place.experts)
        return;
    printf("\nhit ratio: h = 1 - (u(g+1) - u(g))/K, u(g) distinct experts of g tokens filling the "
           "cache\n");
    printf(
        "  u(1) %.2f  u(2) %.2f  u(4) %.2f  u(16) %.2f  u(64) %.2f  of %" PRIu64 " (routing %s)\n",
        (double)p->route->curve.distinct_e6[1] / 1e6, (double)p->route->curve.distinct_e6[2] / 1e6,
        (double)p->route->curve.distinct_e6[4] / 1e6, (double)p->route->curve.distinct_e6[16] / 1e6,
        (double)p->route->curve.distinct_e6[64] / 1e6, p->route->curve.experts, p->route->preset);
    printf("  h %.4f; exactly 0 up to T less one layer's share\n", (double)p->hit_ratio / 1e9);
}

static void explain_time(const struct plan *p)
{
    const struct timing *t = &p->timing;
    printf("\ntime of a token = flash + link + compute + memory + overhead, layer by layer\n");
    line("flash", "E over misses of max(ceil(n/q)(t0 + c/B1), t0 + n*c/B_max), what is not hidden",
         t->flash_ns, DIM_TIME);
    line("link", "link bytes / link rate, what is not hidden", t->link_ns, DIM_TIME);
    line("compute", "operations / (peak * share), where that exceeds bytes / rate", t->compute_ns,
         DIM_TIME);
    line("memory", "bytes / rate, where that exceeds the operations", t->memory_ns, DIM_TIME);
    if (p->machine.host)
        line("DRAM", "the same of the experts on the host", t->host_memory_ns, DIM_TIME);
    line("overhead", "kernel calls * cost of a call", t->overhead_ns, DIM_TIME);
    line("sum", "", t->total_ns, DIM_TIME);
    line("lower bound", "max over resources of amount/rate", p->bounds.lower_ns, DIM_TIME);
    line("upper bound", "sum over resources, nothing overlapped", p->bounds.upper_ns, DIM_TIME);
    line("first token", "sum over chunks of the prompt, cache empty at first", p->first_ns.mid,
         DIM_TIME);
    if (p->route->chunk)
        printf("  chunks of at most %" PRIu64 " tokens, whose experts of a layer fit the cache\n",
               p->route->chunk);
}

static void explain_ratio(const char *path, const struct value *v)
{
    printf("  %-26s %-13s %-9s %4.1f %%  %s\n", path, "1", value_kind_name(v->kind),
           (double)value_spread(v) / 1e7, v->source);
}

static void explain_inputs(const struct plan *p)
{
    printf("\ninputs (value, kind, half width of the 90 %% interval, source)\n");
    for (size_t i = 0; i < INPUT_COUNT; i++) {
        const struct machine_input *in = &p->machine.input[i];
        char text[QUANTITY_TEXT_MAX];
        if (!in->value.given)
            continue;
        printf("  %-26s %-13s %-9s %4.1f %%  %s\n", in->path,
               quantity_round(text, in->value.amount, in->value.dim),
               value_kind_name(in->value.kind), (double)value_spread(&in->value) / 1e7,
               in->value.source ? in->value.source : "");
    }
    explain_ratio("routing/misses", &p->misses);
    explain_ratio("residual", &p->residual);
    printf("\nintervals: 5th and 95th of %d draws of these inputs, seed %" PRIu64
           "; the spread of the\npeak is that of its share. Factors (5th .. 95th) from the same "
           "draws:\n",
           PLAN_DRAWS, p->request.seed);
    for (size_t i = 0; i < p->what_if_count; i++)
        printf("  %-22s %.3f  [%.3f .. %.3f]\n", p->what_if[i].name,
               (double)p->what_if[i].factor.mid / 1e9, (double)p->what_if[i].factor.low / 1e9,
               (double)p->what_if[i].factor.high / 1e9);
}

void plan_print_explain(const struct plan_page *page)
{
    const struct plan *p = page->plan;
    printf("\nmodel: %s (%s, grade %s); device: %s; unit: %s\n", p->model->origin,
           p->model->source ? p->model->source : "", p->model->grade ? p->model->grade : "-",
           p->device->origin, p->site->name);
    explain_memory(p);
    explain_bytes(p);
    explain_hits(p);
    explain_time(p);
    explain_inputs(p);
    for (size_t i = 0; i < page->run_count; i++)
        printf("%s  %s: %s tok/s, %s, %s\n", i ? "" : "\nmeasured runs\n", page->run[i].id,
               page->run[i].tok_per_s, page->run[i].engine, page->run[i].source);
}
