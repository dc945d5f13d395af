#include "sim/plan/planner.h"

#include "base/fixed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one evaluation ------------------------------------------------------------------------ */

void plan_base_case(struct plan_case *c, const struct plan *p)
{
    *c = (struct plan_case){.machine = p->machine,
                            .decode = &p->decode,
                            .route = p->route,
                            .cache = p->place.cache,
                            .pieces = p->request.pieces,
                            .expert_factor = RATIO_ONE,
                            .miss_factor = RATIO_ONE,
                            .stream_trunk = p->place.stream_trunk,
                            .stream_bytes = p->place.stream_bytes,
                            .profile = p->request.profile};
}

static uint64_t part(uint64_t amount, uint64_t ratio)
{
    return fixed_mul_div(amount, ratio, RATIO_ONE);
}

/* That nothing hits below the token cycle is no estimate: there a draw changes nothing. */
static uint64_t with_misses(uint64_t hit_ratio, uint64_t miss_factor)
{
    if (hit_ratio == 0)
        return 0;
    uint64_t miss = part(RATIO_ONE - hit_ratio, miss_factor);
    return miss < RATIO_ONE ? RATIO_ONE - miss : 0;
}

uint64_t plan_hit_ratio(const struct plan *p, const struct plan_case *c)
{
    uint64_t cycle = part(p->cycle, c->expert_factor);
    uint64_t all = part(p->place.experts, c->expert_factor);
    if (all == 0)
        return RATIO_ONE;
    return with_misses(hit_curve_ratio(&c->route->curve, c->cache, cycle, p->moe_layers, all),
                       c->miss_factor);
}

void plan_regime(struct regime *out, const struct plan *p, const struct plan_case *c)
{
    *out = (struct regime){.profile = c->profile,
                           .hit_ratio = plan_hit_ratio(p, c),
                           .lanes = p->request.lanes,
                           .pieces = c->pieces,
                           .copies = p->request.copies,
                           .stream_trunk = c->stream_trunk,
                           .stream_bytes = c->stream_bytes,
                           .experts_on_unit = p->place.experts_on_unit};
}

void plan_token(struct timing *out, const struct plan *p, const struct plan_case *c)
{
    struct regime r;
    plan_regime(&r, p, c);
    estimate_timing(out, c->decode, &c->machine, &r);
}

/* Of the experts a chunk looks up, those that the last `window` tokens used as well: by inclusion and
 * exclusion u(chunk) + u(window) - u(chunk + window). A window shorter than a chunk holds nothing by the
 * time the cycle over the layers comes round. */
static uint64_t chunk_hit_ratio(const struct plan *p, const struct plan_case *c, uint64_t seen)
{
    const struct hit_curve *curve = &c->route->curve;
    uint64_t chunk = c->route->chunk;
    if (c->cache >= p->place.experts || p->place.experts == 0)
        return RATIO_ONE;
    uint64_t held = fixed_mul_div(c->cache, curve->top_k * 1000000, p->cycle);
    uint64_t window = hit_curve_window_e6(curve, held) / 1000000;
    if (window < chunk || seen == 0)
        return 0;
    window = window < seen ? window : seen;
    uint64_t own = hit_curve_distinct_e3(curve, chunk);
    uint64_t before = hit_curve_distinct_e3(curve, window);
    uint64_t both = hit_curve_distinct_e3(curve, window + chunk);
    return own && own + before > both ? fixed_mul_div(own + before - both, RATIO_ONE, own) : 0;
}

uint64_t plan_first_ns(const struct plan *p, const struct plan_case *c)
{
    uint64_t sum = 0;
    struct regime r;
    plan_regime(&r, p, c);
    for (size_t i = 0; i < c->route->part_count; i++) {
        const struct prompt_part *part = &c->route->part[i];
        struct timing t;
        r.hit_ratio = with_misses(chunk_hit_ratio(p, c, part->before), c->miss_factor);
        estimate_timing(&t, &part->chunk, &c->machine, &r);
        sum += fixed_mul(t.total_ns, part->chunks);
    }
    return sum;
}

/* ---- setting up ---------------------------------------------------------------------------- */

static enum status add_route(struct plan *p, const char *preset, struct diag *dg)
{
    const struct route_request r = {.presets = p->request.presets,
                                    .prompt = p->request.prompt,
                                    .cache = p->place.cache,
                                    .state_bits = p->request.place.state_bits};
    return route_init(&p->route[p->route_count++], p->model, preset, &r, dg);
}

/* The one asked for, or the model's own, or NULL. */
static const char *known_routing(const struct plan *p)
{
    const char *preset = p->request.preset ? p->request.preset : p->model->router;
    return !preset && model_experts(p->model) == 0 ? "uniform" : preset;
}

static enum status set_first_route(struct plan *p, struct diag *dg)
{
    const char *known = known_routing(p);
    return add_route(p, known ? known : route_presets[0], dg);
}

static enum status set_other_routes(struct plan *p, struct diag *dg)
{
    enum status st = ST_OK;
    while (st == ST_OK && !known_routing(p) && route_presets[p->route_count])
        st = add_route(p, route_presets[p->route_count], dg);
    return st;
}

bool plan_routing_unknown(const struct plan *p)
{
    return p->route_count > 1 && plan_streams(p);
}

bool plan_streams(const struct plan *p)
{
    return p->tally.flash_bytes > 0;
}

static void set_spreads(struct plan *p)
{
    bool unknown = p->route_count > 1, uniform = strcmp(p->route->preset, "uniform") == 0;
    p->misses = (struct value){.kind = unknown || uniform ? KIND_ASSUMED : KIND_FITTED,
                               .spread = 150000000,
                               .spread_given = !uniform,
                               .dim = DIM_RATIO,
                               .amount = RATIO_ONE,
                               .given = true,
                               .source = unknown   ? "unknown: each draw takes one of the presets"
                                         : uniform ? "independent uniform routing"
                                                   : "routing preset, fitted to public traces"};
    p->residual =
        (struct value){.kind = KIND_DERIVED,
                       .spread = 200000000,
                       .spread_given = true,
                       .dim = DIM_RATIO,
                       .amount = RATIO_ONE,
                       .given = true,
                       .source = "serial runs of one phone, predicted at 0.95 to 1.25 of the "
                                 "rate; its own repeats differ by 16 %"};
}

struct smaller {
    const char *format, *experts, *weights, *key;
};
static const struct smaller smaller_formats[] = {
    {"q8_0", "8-bit experts", "8-bit weights", "bits_8"},
    {"q4_k", "4-bit experts", "4-bit weights", "bits_4"},
    {"q3_k", "3-bit experts", "3-bit weights", "bits_3"},
    {"q2_k", "2-bit experts", "2-bit weights", "bits_2"},
};

/* The next format that saves at least 15 %. */
static void set_smaller(struct plan *p)
{
    uint64_t bytes = p->place.experts, params = 0;
    bool dense = bytes == 0;
    for (size_t i = 0; i < p->model->layer_count; i++)
        params += p->model->layers[i].params[GROUP_EXPERT];
    if (dense) {
        bytes = p->place.weights;
        params = model_params_total(p->model);
    }
    for (size_t i = 0; params && i < sizeof smaller_formats / sizeof *smaller_formats; i++) {
        const struct quant_format *f = quant_find(smaller_formats[i].format);
        uint64_t then = f ? fixed_mul_div(params, quant_bits_e4(f), 80000) : bytes;
        p->fewer_factor = fixed_mul_div(then, RATIO_ONE, bytes);
        if (p->fewer_factor > RATIO_ONE * 85 / 100)
            continue;
        p->fewer_name = dense ? smaller_formats[i].weights : smaller_formats[i].experts;
        p->fewer_key = smaller_formats[i].key;
        workload_scale_experts(&p->fewer_bits, p->fewer_factor);
        if (dense)
            workload_scale_trunk(&p->fewer_bits, p->fewer_factor);
        return;
    }
}

static enum status set_workloads(struct plan *p, struct diag *dg)
{
    struct workload_request r =
        route_pass(p->route, 1, p->request.place.context, p->request.place.state_bits);
    enum status st = workload_init(&p->decode, p->model, &r, dg);
    if (st == ST_OK)
        st = workload_init(&p->fewer_bits, p->model, &r, dg);
    if (st != ST_OK)
        return st;
    set_smaller(p);
    return ST_OK;
}

/* Units of a plan: `host` computes the experts, or is NULL. */
struct site {
    const char *unit, *host;
};

static enum status set_machine(struct plan *p, const struct site *site, struct diag *dg)
{
    const struct model *m = p->model;
    uint64_t bytes = model_weight_bytes(m), params = model_params_total(m);
    struct machine_choice choice = {.unit = site->unit,
                                    .host = site->host,
                                    .cards = 1,
                                    .need_bytes = bytes,
                                    .rates = RATES_REACHED,
                                    .eight_bit = bytes / 10 < params / 8};
    enum status st = machine_init(&p->machine, p->device, &choice, dg);
    if (st == ST_OK)
        st = placement_find(&p->place, m, p->device, &p->machine, &p->request.place, dg);
    bool all =
        p->place.cache == p->place.experts && !p->place.stream_trunk && !p->place.stream_bytes;
    if (st == ST_OK && !all && !p->machine.flash_given)
        return diag_set(dg, ST_MISSING,
                        "%s: storage.0.bandwidth is needed: what does not fit streams from there",
                        p->device->origin);
    return st;
}

static void set_middle(struct plan *p)
{
    struct plan_case c;
    struct regime r;
    plan_base_case(&c, p);
    plan_regime(&r, p, &c);
    p->hit_ratio = r.hit_ratio;
    estimate_tally(&p->tally, &p->decode, &p->machine, &r);
    estimate_timing(&p->timing, &p->decode, &p->machine, &r);
    estimate_bounds(&p->bounds, &p->decode, &p->machine, &r);
}

/* Five sizes in powers of two of 1 GB around the cache there is, from above the cliff; none larger
 * than all experts but the last. */
static void set_sizes(struct plan *p)
{
    const uint64_t unit = 1000000000;
    uint64_t size = unit / 8;
    while (size * 8 <= p->place.cache || size <= p->cliff)
        size *= 2;
    for (size_t i = 0; i < PLAN_SIZES && p->place.experts && size; i++, size *= 2) {
        struct plan_case c;
        struct timing t;
        bool all = size >= p->place.experts;
        plan_base_case(&c, p);
        c.cache = all ? p->place.experts : size;
        plan_token(&t, p, &c);
        p->size[p->size_count++] = (struct cache_point){c.cache, plan_hit_ratio(p, &c), t.total_ns};
        if (all)
            break;
    }
}

/* The plan of one site, as far as choosing among them needs it. */
static enum status fill(struct plan *p, const struct site *site, struct diag *dg)
{
    enum status st = set_machine(p, site, dg);
    if (st == ST_OK)
        st = set_first_route(p, dg);
    p->cycle = model_token_cycle_bytes(p->model);
    p->moe_layers = model_moe_layers(p->model);
    p->cliff = p->moe_layers ? p->cycle - p->cycle / p->moe_layers : 0;
    if (st == ST_OK)
        st = set_workloads(p, dg);
    if (st == ST_OK)
        set_middle(p);
    return st;
}

static enum status new_site(struct plan **out, const struct plan *of, const struct site *site,
                            struct diag *dg)
{
    struct plan *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p)
        return diag_no_memory(dg);
    p->model = of->model;
    p->device = of->device;
    p->request = of->request;
    enum status st = fill(p, site, dg);
    if (st != ST_OK) {
        plan_free(p);
        return st;
    }
    snprintf(p->site[0].name, sizeof p->site[0].name, "%s%s%s", p->machine.unit,
             p->machine.host ? "+" : "", p->machine.host ? p->machine.host : "");
    p->site[0].token_ns = p->timing.total_ns;
    p->site_count = 1;
    *out = p;
    return ST_OK;
}

/* Keeps the faster plan and the times of both. */
static void keep_faster(struct plan **best, struct plan *other)
{
    struct plan *slower = *best;
    if (!slower || other->timing.total_ns < slower->timing.total_ns) {
        *best = other;
        if (slower)
            memcpy(&other->site[1], slower->site, slower->site_count * sizeof *slower->site);
        other->site_count = 1 + (slower ? slower->site_count : 0);
        plan_free(slower);
        return;
    }
    slower->site[slower->site_count++] = other->site[0];
    plan_free(other);
}

/* Beside the unit that machine.h chooses: each one with memory of its own, the experts copied to it or
 * computed out of DRAM by another. Sites that the model does not fit are no choice; `dg` keeps the reason
 * of the first where none is left. */
static enum status try_sites(struct plan **best, const struct plan *of, enum status first,
                             struct diag *dg)
{
    const struct device *d = of->device;
    for (size_t i = 0; i < d->compute_count * (d->compute_count + 1); i++) {
        const struct compute *c = &d->compute[i / (d->compute_count + 1)];
        size_t other = i % (d->compute_count + 1);
        const struct compute *host = other < d->compute_count ? &d->compute[other] : NULL;
        struct site site = {c->name, host ? host->name : NULL};
        struct plan *p;
        struct diag why;
        if (!c->memory.capacity.given || (host && host->memory.capacity.given) ||
            (*best && (*best)->site_count == PLAN_SITES))
            continue;
        enum status st = new_site(&p, of, &site, &why);
        if (st == ST_NO_MEMORY)
            return diag_no_memory(dg);
        if (st == ST_OK)
            keep_faster(best, p);
    }
    return *best ? ST_OK : first;
}

static enum status choose_site(struct plan **out, const struct plan *of, struct diag *dg)
{
    char room[MACHINE_UNITS_MAX];
    struct machine_choice named;
    machine_name_units(&named, of->request.unit, room);
    struct site asked = {.unit = named.unit, .host = named.host};
    enum status st = new_site(out, of, &asked, dg);
    bool at_best = st == ST_OK && (*out)->machine.own_memory && (*out)->place.fits;
    bool choice = !asked.unit && !at_best && (st == ST_OK || st == ST_MISFIT);
    return choice ? try_sites(out, of, st, dg) : st;
}

enum status plan_new(struct plan **out, const struct model *m, const struct device *d,
                     const struct plan_request *request, struct diag *dg)
{
    const struct plan of = {.model = m, .device = d, .request = *request};
    struct plan *p;
    *out = NULL;
    enum status st = choose_site(&p, &of, dg);
    if (st == ST_OK)
        st = set_other_routes(p, dg);
    if (st != ST_OK) {
        plan_free(p);
        return st;
    }
    set_spreads(p);
    set_sizes(p);
    plan_spread(p);
    *out = p;
    return ST_OK;
}

void plan_free(struct plan *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->route_count; i++)
        route_free(&p->route[i]);
    workload_free(&p->decode);
    workload_free(&p->fewer_bits);
    free(p);
}
