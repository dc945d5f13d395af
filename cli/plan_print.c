#include "cli/plan_print.h"

#include "base/fixed.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LABEL "  %-12s "

/* ---- small text ---------------------------------------------------------------------------- */

struct text {
    char at[QUANTITY_TEXT_MAX];
};

static struct text size_text(uint64_t bytes)
{
    struct text t;
    quantity_round(t.at, bytes, DIM_SIZE);
    return t;
}

static struct text time_text(uint64_t ns)
{
    struct text t;
    quantity_round(t.at, ns, DIM_TIME);
    return t;
}

/* Three digits of 10^9/ns tokens a second, without the unit. */
static struct text rate_text(uint64_t ns)
{
    struct text t;
    quantity_round(t.at, ns ? UINT64_C(1000000000000000) / ns : 0, DIM_TOKEN_RATE);
    char *unit = strstr(t.at, " tok/s");
    if (unit)
        *unit = 0;
    return t;
}

static unsigned per_cent(uint64_t share, uint64_t of)
{
    return of ? (unsigned)fixed_mul_div(share, 100, of) : 0;
}

static unsigned per_cent_rounded(uint64_t ratio)
{
    return (unsigned)((ratio + RATIO_ONE / 200) / (RATIO_ONE / 100));
}

/* Hundredths of a factor. */
static unsigned hundredths(uint64_t factor)
{
    return (unsigned)((factor + RATIO_ONE / 200) / (RATIO_ONE / 100));
}

static void append(char *out, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);
static void append(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, size - used, format, args);
    va_end(args);
}

/* ---- facts about a plan -------------------------------------------------------------------- */

struct share {
    const char *name;
    uint64_t ns;
};

static void shares_of(struct share s[5], const struct plan *p)
{
    const struct timing *t = &p->timing;
    s[0] = (struct share){"flash", t->flash_ns};
    s[1] = (struct share){"link", t->link_ns};
    s[2] = (struct share){"compute", t->compute_ns};
    s[3] = (struct share){p->machine.own_memory ? "memory" : "DRAM", t->memory_ns};
    s[4] = (struct share){"overhead", t->overhead_ns};
}

const char *plan_binds(const struct plan *p)
{
    struct share s[5];
    shares_of(s, p);
    size_t best = 0;
    for (size_t i = 1; i < 5; i++)
        best = s[i].ns > s[best].ns ? i : best;
    return s[best].name;
}

/* An input that changes nothing here is not worth owning up to. */
static bool used(const struct plan *p, size_t i)
{
    if (!p->machine.input[i].value.given)
        return false;
    if (i <= INPUT_FLASH_IOPS)
        return p->tally.flash_bytes > 0;
    if (i == INPUT_PEAK || i == INPUT_CALL) /* part of what the share of the peak was found from */
        return p->machine.input[INPUT_EFFICIENCY].value.kind == KIND_ASSUMED;
    if (i == INPUT_UNIT_DRAM || i == INPUT_LINK)
        return p->machine.own_memory;
    return i != INPUT_DRAM || !p->machine.own_memory || p->tally.dram_bytes > 0;
}

void plan_assumed(char *out, size_t size, const struct plan *p)
{
    *out = 0;
    for (size_t i = 0; i < INPUT_COUNT; i++) {
        const struct machine_input *in = &p->machine.input[i];
        if (used(p, i) && in->value.kind == KIND_ASSUMED)
            append(out, size, "%s%s", *out ? "; " : "", in->what);
    }
    const struct value *reserve = &p->device->reserve;
    if (p->place.reserve && (p->place.reserve_by_rule || reserve->kind == KIND_ASSUMED))
        append(out, size, "%smemory kept by the system", *out ? "; " : "");
    if (p->tally.flash_bytes && p->request.profile != PROFILE_SERIAL &&
        strcmp(p->machine.unit, "cpu") == 0)
        append(out, size, "%sreads take no time from the cores", *out ? "; " : "");
    if (plan_routing_unknown(p))
        append(out, size, "%srouting unknown, taken as preset %s", *out ? "; " : "",
               p->route->preset);
    else if (p->place.experts && !p->place.fits)
        append(out, size, "%srouting like preset %s", *out ? "; " : "", p->route->preset);
}

size_t plan_outside(struct plan_note notes[PLAN_NOTES], const struct plan_page *page)
{
    const struct plan *p = page->plan;
    const struct model *m = p->model;
    const size_t room = sizeof notes->text;
    uint64_t longest = p->route->curve.distinct_e6[HIT_CURVE_TOKENS];
    uint64_t held =
        p->cycle ? fixed_mul_div(p->place.cache, p->route->curve.top_k * 1000000, p->cycle) : 0;
    size_t n = 0;
    if (m->max_context && p->request.place.context > m->max_context)
        snprintf(notes[n++].text, room, "context beyond the %" PRIu64 " tokens of the model",
                 m->max_context);
    if (page->changed_top_k)
        snprintf(notes[n++].text, room, "top %" PRIu64 ": not what the model was trained for",
                 model_top_k(m));
    if (p->place.experts && !p->place.fits && held > longest)
        snprintf(notes[n++].text, room, "cache remembers more than the %d tokens counted",
                 HIT_CURVE_TOKENS);
    if (p->tally.flash_bytes && !p->machine.flash.lane_bandwidth.given)
        snprintf(notes[n++].text, room, "the drive states no rate of a single read");
    return n;
}

/* ---- the screen ---------------------------------------------------------------------------- */

static void print_title(const struct plan *p)
{
    const struct model *m = p->model;
    printf("%s, %s, %s, %zu layers", m->title ? m->title : m->name,
           m->quant.name ? m->quant.name : "as stored", size_text(p->place.weights).at,
           m->layer_count);
    if (p->place.experts)
        printf(" x %" PRIu64 " experts, top %" PRIu64, model_experts(m), model_top_k(m));
    printf("     %s\n\n", p->device->title ? p->device->title : p->device->name);
}

static void print_fit(const struct plan *p)
{
    const struct placement *w = &p->place;
    const char *apart = p->machine.own_memory && !w->fits ? " of DRAM" : "";
    printf(LABEL, "fits");
    printf("%s: %s of weights, %s%s given", w->fits ? "yes" : "no", size_text(w->weights).at,
           size_text(w->given).at, apart);
    if (w->fits)
        printf(" -> nothing streams\n");
    else if (w->stream_trunk || w->stream_bytes)
        printf(" -> %s of dense weights are read again for every token\n",
               size_text(p->tally.streamed_bytes).at);
    else
        printf(" -> experts stream from flash\n");
    printf(LABEL "dense %s", "where", size_text(w->dense_resident).at);
    if (w->experts)
        printf(" | expert cache %s (%u %% of experts)", size_text(w->cache).at,
               per_cent(w->cache, w->experts));
    printf(" | state at %" PRIu64 " %s | buffers %s", p->request.place.context,
           size_text(w->state).at, size_text(w->buffers).at);
    if (w->reserve)
        printf(" | system %s", size_text(w->reserve).at);
    if (w->spare)
        printf(" | spare %s", size_text(w->spare).at);
    printf("\n");
}

static void print_rate(const struct plan *p)
{
    printf(LABEL "%s tok/s  [%s .. %s]%s", "decode", rate_text(p->token_ns.mid).at,
           rate_text(p->token_ns.high).at, rate_text(p->token_ns.low).at,
           plan_routing_unknown(p) ? "  routing unknown" : "");
    if (p->request.prompt)
        printf("      first token after %" PRIu64 ": %s  [%s .. %s]", p->request.prompt,
               time_text(p->first_ns.mid).at, time_text(p->first_ns.low).at,
               time_text(p->first_ns.high).at);
    printf("\n");
}

static void print_bound(const struct plan *p)
{
    struct share s[5];
    const char *join = "";
    shares_of(s, p);
    printf(LABEL, "bound by");
    for (int pass = 0; pass < 5; pass++) { /* largest first */
        size_t best = 0;
        for (size_t i = 1; i < 5; i++)
            best = s[i].ns > s[best].ns ? i : best;
        if (s[best].ns * 200 >= p->timing.total_ns) {
            printf("%s%s %u %%", join, s[best].name,
                   per_cent(s[best].ns + p->timing.total_ns / 200, p->timing.total_ns));
            join = " | ";
        }
        s[best].ns = 0;
    }
    printf("\n");
}

static void print_bytes(const struct plan *p)
{
    const struct tally *y = &p->tally;
    printf(LABEL, "per token");
    if (p->place.experts)
        printf("%s of experts, %u %% from cache, %s from flash", size_text(y->expert_bytes).at,
               per_cent_rounded(p->hit_ratio), size_text(y->flash_bytes).at);
    else
        printf("%s of weights, %s from flash", size_text(workload_trunk_bytes(&p->decode)).at,
               size_text(y->flash_bytes).at);
    if (y->link_bytes)
        printf(", %s over the link", size_text(y->link_bytes).at);
    printf(", %s through memory\n", size_text(y->memory_bytes).at);
    if (y->streamed_bytes)
        printf(LABEL "%s of dense weights again for every token: %s of its %s\n", "",
               size_text(y->streamed_bytes).at,
               time_text(time_for(y->streamed_bytes, p->machine.flash.bandwidth.amount)).at,
               time_text(p->timing.total_ns).at);
}

static void print_sizes(const struct plan *p)
{
    if (!p->size_count || p->place.fits)
        return;
    printf(LABEL, "cache size");
    for (size_t i = 0; i < p->size_count; i++)
        printf("%s%s %s", i ? " | " : "", size_text(p->size[i].cache).at,
               rate_text(p->size[i].token_ns).at);
    printf(" tok/s     up to %s LRU hits nothing\n", size_text(p->cliff).at);
}

/* Largest factor first; what changes less than a percent is not help. */
static void print_help(const struct plan *p)
{
    bool told[PLAN_WHAT_IF_MAX] = {false};
    unsigned last = UINT32_MAX;
    const char *join = "";
    printf(LABEL, "would help");
    for (size_t round = 0; round < p->what_if_count; round++) {
        size_t best = PLAN_WHAT_IF_MAX;
        for (size_t i = 0; i < p->what_if_count; i++)
            if (!told[i] && (best == PLAN_WHAT_IF_MAX ||
                             p->what_if[i].factor.mid > p->what_if[best].factor.mid))
                best = i;
        told[best] = true;
        last = hundredths(p->what_if[best].factor.mid);
        if (last <= 100)
            break;
        printf("%s%s %u.%02ux", join, p->what_if[best].name, last / 100, last % 100);
        join = " | ";
    }
    printf("%s\n", *join ? "" : "nothing of what is asked here");
}

static void print_runs(const struct plan_page *page)
{
    for (size_t i = 0; i < page->run_count; i++) {
        const struct measured_run *r = &page->run[i];
        printf(LABEL, i ? "" : "measured");
        if (r->likeness == LIKE_BOTH)
            printf("%s, same device", r->id);
        else
            printf("%s, %s", r->id, r->likeness == LIKE_MODEL ? r->device : r->model);
        printf("%s%s, %s", *r->engine ? ", " : "", r->engine, r->quant);
        if (r->cache_given)
            printf(", cache %s", size_text(r->cache).at);
        if (r->top_k)
            printf(", top %" PRIu64, r->top_k);
        printf(", %s: %s tok/s\n", r->overlap, r->tok_per_s);
    }
}

static void print_notes(const struct plan_page *page)
{
    char assumed[512];
    struct plan_note notes[PLAN_NOTES];
    const struct plan *p = page->plan;
    plan_assumed(assumed, sizeof assumed, p);
    printf("\n" LABEL "%s reads, %" PRIu64 " in flight, %" PRIu64 " an expert; cold device\n",
           "run as", p->request.profile == PROFILE_SERIAL ? "serial" : "overlapped",
           p->request.lanes, p->request.pieces);
    printf(LABEL "%s\n", "assumed", *assumed ? assumed : "nothing");
    size_t count = plan_outside(notes, page);
    for (size_t i = 0; i < count; i++)
        printf(LABEL "%s\n", i ? "" : "outside", notes[i].text);
}

void plan_print_screen(const struct plan_page *page)
{
    const struct plan *p = page->plan;
    print_title(p);
    print_fit(p);
    print_rate(p);
    print_bound(p);
    print_bytes(p);
    printf("\n");
    print_sizes(p);
    print_help(p);
    print_runs(page);
    print_notes(page);
}

/* ---- the inverse --------------------------------------------------------------------------- */

void plan_print_want(const struct plan *p, const char *want,
                     const struct answer answers[WISH_COUNT])
{
    print_title(p);
    printf("  %s, each alone, everything else as it is (now %s tok/s):\n\n", want,
           rate_text(p->token_ns.mid).at);
    for (size_t i = 0; i < WISH_COUNT; i++) {
        const struct answer *a = &answers[i];
        char now[QUANTITY_TEXT_MAX], need[QUANTITY_TEXT_MAX];
        if (!a->now && !a->reachable)
            continue;
        printf("  %-18s now %-12s ", a->name, quantity_round(now, a->now, a->dim));
        if (!a->reachable)
            printf("not reachable by this alone\n");
        else if (a->need <= a->now)
            printf("enough: %s would do\n", quantity_round(need, a->need, a->dim));
        else
            printf("needs %s\n", quantity_round(need, a->need, a->dim));
    }
}
