#include "cli/plan_print.h"
#include "cli/plan_text.h"

#include "base/fixed.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LABEL PLAN_LABEL

/* ---- small text ---------------------------------------------------------------------------- */

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

/* ---- facts about a plan -------------------------------------------------------------------- */

struct share {
    const char *name;
    uint64_t ns;
};

#define SHARES 6

static void shares_of(struct share s[SHARES], const struct plan *p)
{
    const struct timing *t = &p->timing;
    s[0] = (struct share){"flash", t->flash_ns};
    s[1] = (struct share){"link", t->link_ns};
    s[2] = (struct share){"compute", t->compute_ns};
    s[3] = (struct share){p->machine.own_memory ? "memory" : "DRAM", t->memory_ns};
    s[4] = (struct share){"overhead", t->overhead_ns};
    s[5] = (struct share){"DRAM", t->host_memory_ns};
}

const char *plan_binds(const struct plan *p)
{
    struct share s[SHARES];
    shares_of(s, p);
    size_t best = 0;
    for (size_t i = 1; i < SHARES; i++)
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
    if (i == INPUT_GEMM)
        return p->request.prompt > 1 && p->machine.gemm_ops > p->machine.reached_ops;
    if (i == INPUT_LINK)
        return p->tally.link_bytes > 0;
    if (i == INPUT_UNIT_DRAM)
        return p->machine.own_memory;
    return i != INPUT_DRAM || !p->machine.own_memory || p->tally.dram_bytes > 0;
}

void plan_assumed(char *out, size_t size, const struct plan *p)
{
    *out = 0;
    for (size_t i = 0; i < INPUT_COUNT; i++) {
        const struct machine_input *in = &p->machine.input[i];
        if (used(p, i) && in->value.kind == KIND_ASSUMED)
            text_list(out, size, "; ", "%s", in->what);
    }
    const struct value *reserve = &p->device->reserve;
    if (p->place.reserve && (p->place.reserve_by_rule || reserve->kind == KIND_ASSUMED))
        text_list(out, size, "; ", "memory kept by the system");
    if (p->tally.flash_bytes && p->request.profile != PROFILE_SERIAL &&
        strcmp(p->machine.unit, "cpu") == 0)
        text_list(out, size, "; ", "reads take no time from the cores");
    if (plan_routing_unknown(p))
        text_list(out, size, "; ", "routing unknown, taken as preset %s", p->route->preset);
    else if (p->place.experts && plan_streams(p))
        text_list(out, size, "; ", "routing like preset %s", p->route->preset);
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
    if (p->place.experts && plan_streams(p) && held > longest)
        snprintf(notes[n++].text, room, "cache remembers more than the %d tokens counted",
                 HIT_CURVE_TOKENS);
    if (p->tally.flash_bytes && !p->machine.flash.lane_bandwidth.given)
        snprintf(notes[n++].text, room, "the drive states no rate of a single read");
    return n;
}

/* ---- the screen ---------------------------------------------------------------------------- */

void plan_print_title(const struct plan_page *page)
{
    const struct plan *p = page->plan;
    const struct model *m = p->model;
    printf("%s, %s, %s, %zu layers", m->title ? m->title : m->name,
           m->quant.name ? m->quant.name : "as stored", text_size(p->place.weights).at,
           m->layer_count);
    if (p->place.experts)
        printf(" x %" PRIu64 " experts, top %" PRIu64, model_experts(m), model_top_k(m));
    printf("     %s\n", p->device->title ? p->device->title : p->device->name);
    for (size_t i = 0; i < page->override_count; i++)
        printf("%s%s%s", i ? ", " : "with ", page->override[i],
               i + 1 < page->override_count ? "" : "\n");
    printf("\n");
}

/* Dense weights and state beside the unit, experts in DRAM? */
static bool apart(const struct plan *p)
{
    return p->machine.own_memory && p->place.cache && !p->place.experts_on_unit;
}

static void print_fit(const struct plan *p)
{
    const struct placement *w = &p->place;
    printf(LABEL "%s: %s of weights, ", "fits", plan_streams(p) ? "no" : "yes",
           text_size(w->weights).at);
    if (apart(p))
        printf("%s on %s and ", text_size(p->machine.memory_bytes).at, p->machine.unit);
    printf("%s%s given", text_size(w->given).at, apart(p) ? " of DRAM" : "");
    if (!plan_streams(p))
        printf(" -> nothing streams\n");
    else if (w->stream_trunk || w->stream_bytes)
        printf(" -> %s of dense weights are read again for every token\n",
               text_size(p->tally.streamed_bytes).at);
    else
        printf(" -> experts stream from flash\n");
}

static void print_place(const struct plan *p)
{
    const struct placement *w = &p->place;
    char on[48] = "";
    if (p->machine.own_memory)
        snprintf(on, sizeof on, " on %s", p->machine.unit);
    printf(LABEL "dense %s%s", "where", text_size(w->dense_resident).at, on);
    if (w->experts)
        printf(" | expert cache %s%s (%u %% of experts)", text_size(w->cache).at,
               apart(p) ? " in DRAM" : on, per_cent(w->cache, w->experts));
    printf(" | state at %" PRIu64 " %s | buffers %s", p->request.place.context,
           text_size(w->state).at, text_size(w->buffers).at);
    if (w->reserve)
        printf(" | system %s", text_size(w->reserve).at);
    if (w->spare)
        printf(" | spare %s", text_size(w->spare).at);
    printf("\n");
}

static void print_rate(const struct plan *p)
{
    printf(LABEL "%s tok/s  [%s .. %s]%s", "decode", text_rate(p->token_ns.mid).at,
           text_rate(p->token_ns.high).at, text_rate(p->token_ns.low).at,
           plan_routing_unknown(p) ? "  routing unknown" : "");
    if (p->request.prompt)
        printf("      first token after %" PRIu64 ": %s  [%s .. %s]", p->request.prompt,
               text_time(p->first_ns.mid).at, text_time(p->first_ns.low).at,
               text_time(p->first_ns.high).at);
    if (p->request.prompt && p->route->chunk == 1 && p->request.prompt > 1)
        printf("  in chunks of one token, no more fit the cache");
    else if (p->request.prompt && p->route->chunk < p->request.prompt)
        printf("  in chunks of %" PRIu64, p->route->chunk);
    printf("\n");
}

static void print_bound(const struct plan *p)
{
    struct share s[SHARES];
    const char *join = "";
    shares_of(s, p);
    printf(LABEL, "bound by");
    for (int pass = 0; pass < SHARES; pass++) { /* largest first */
        size_t best = 0;
        for (size_t i = 1; i < SHARES; i++)
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
        printf("%s of experts, %u %% from cache, %s from flash", text_size(y->expert_bytes).at,
               per_cent_rounded(p->hit_ratio), text_size(y->flash_bytes).at);
    else
        printf("%s of weights, %s from flash", text_size(workload_trunk_bytes(&p->decode)).at,
               text_size(y->flash_bytes).at);
    if (y->link_bytes)
        printf(", %s over the link", text_size(y->link_bytes).at);
    printf(", %s through memory\n", text_size(y->memory_bytes).at);
    if (y->streamed_bytes)
        printf(LABEL "%s of dense weights again for every token: %s of its %s\n", "",
               text_size(y->streamed_bytes).at,
               text_time(time_for(y->streamed_bytes, p->machine.flash.bandwidth.amount)).at,
               text_time(p->timing.total_ns).at);
}

static void print_sizes(const struct plan *p)
{
    if (!p->size_count || !plan_streams(p))
        return;
    printf(LABEL, "cache size");
    for (size_t i = 0; i < p->size_count; i++)
        printf("%s%s %s", i ? " | " : "", text_size(p->size[i].cache).at,
               text_rate(p->size[i].token_ns).at);
    printf(" tok/s     up to %s LRU hits nothing\n", text_size(p->cliff).at);
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

static void print_notes(const struct plan_page *page)
{
    char assumed[512];
    struct plan_note notes[PLAN_NOTES];
    const struct plan *p = page->plan;
    plan_assumed(assumed, sizeof assumed, p);
    printf("\n" LABEL "%s, %s reads, %" PRIu64 " in flight, %" PRIu64 " an expert; cold device\n",
           "run as", p->site->name, p->request.profile == PROFILE_SERIAL ? "serial" : "overlapped",
           p->request.lanes, p->request.pieces);
    for (size_t i = 1; i < p->site_count; i++)
        printf("%s%s %s%s", i == 1 ? "               instead: " : " | ", p->site[i].name,
               text_rate(p->site[i].token_ns).at, i + 1 < p->site_count ? "" : " tok/s\n");
    printf(LABEL "%s\n", "assumed", *assumed ? assumed : "nothing");
    size_t count = plan_outside(notes, page);
    for (size_t i = 0; i < count; i++)
        printf(LABEL "%s\n", i ? "" : "outside", notes[i].text);
}

void plan_print_screen(const struct plan_page *page)
{
    const struct plan *p = page->plan;
    plan_print_title(page);
    print_fit(p);
    print_place(p);
    print_rate(p);
    print_bound(p);
    print_bytes(p);
    printf("\n");
    print_sizes(p);
    print_help(p);
    plan_print_runs(page);
    print_notes(page);
}
