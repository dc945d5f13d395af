/* test_plan.c -- the planner: hit curve against published replays, placement, laws of the answer, the
 * inverse, the facts beside it, and the command. */
#include "models/state.h"
#include "sim/plan/measured.h"
#include "sim/plan/planner.h"
#include "sim/plan/spread.h"
#include "sim/trace/trace.h"
#include "tests/cli_expect.h"
#include "tests/plan_bench.h"
#include "tests/support.h"

#include <unistd.h>

static struct diag dg;

#define MIB (UINT64_C(1) << 20)

/* ---- the hit curve ------------------------------------------------------------------------- */

/* Choices of `layers` layers, token by token, prompt and decoding. The last layer of these traces ran
 * for the last prompt token alone, so it is left out. */
static uint16_t *choices_of(const struct trace *t, size_t layers, size_t *tokens)
{
    size_t per_token = layers * t->top_k, most = t->row_count / t->top_k + 1;
    uint16_t *ids = calloc(most * per_token, sizeof *ids);
    size_t *seen = calloc(layers, sizeof *seen);
    assert_non_null(ids);
    assert_non_null(seen);
    for (size_t b = 0; b < t->batch_count; b++) {
        const struct trace_batch *batch = &t->batch[b];
        for (size_t i = 0; i < batch->row_count && batch->layer < layers; i++) {
            size_t n = seen[batch->layer]++;
            ids[n / t->top_k * per_token + batch->layer * t->top_k + n % t->top_k] =
                t->expert[batch->first_row + i];
        }
    }
    for (size_t l = 0; l < layers; l++)
        assert_int_equal(seen[l], seen[0]);
    *tokens = seen[0] / t->top_k;
    free(seen);
    return ids;
}

struct published_point {
    uint64_t mib;
    double hit_per_cent;
};

static void check_published(const char *path, const struct published_point *points, size_t count,
                            double points_off)
{
    struct trace *t;
    struct hit_curve c;
    size_t tokens;
    uint64_t cycle = 0, all = 0;
    assert_ok(trace_load(&t, path, &dg));
    uint16_t *ids = choices_of(t, t->layers - 1, &tokens);
    assert_ok(hit_curve_count(&c, ids, tokens, t->layers - 1, t->experts, t->top_k, &dg));
    for (uint32_t l = 0; l < t->layers; l++) {
        cycle += t->top_k * t->layer[l].expert_bytes;
        all += t->experts * t->layer[l].expert_bytes;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t h = hit_curve_ratio(&c, points[i].mib * MIB, cycle, t->layers, all);
        assert_close((double)h / 1e7, points[i].hit_per_cent, points_off);
        if (points[i].hit_per_cent == 0)
            assert_int_equal(h, 0);
    }
    free(ids);
    trace_free(t);
}

static void distinct_experts_alone_predict_the_published_lru_replays(void **state) /* F1 */
{
    (void)state;
    NEED_SHARED();
    static const struct published_point qwen[] = {
        {250, 0},       {500, 0},       {1000, 37.679}, {1500, 47.040}, {2000, 56.548},
        {2500, 65.107}, {3000, 70.614}, {4000, 80.287}, {6000, 92.133}, {8000, 95.966}};
    static const struct published_point gemma[] = {
        {250, 0},       {500, 0},       {1000, 36.076}, {1500, 51.081}, {2000, 62.157},
        {2500, 67.821}, {3000, 73.099}, {4000, 81.910}, {6000, 93.273}, {8000, 96.233}};
    check_published(SHARED "bmoe/qwen.route.csv", qwen, sizeof qwen / sizeof *qwen, 2.5);
    check_published(SHARED "bmoe/gemma.route.csv", gemma, sizeof gemma / sizeof *gemma, 2.5);
}

static void lru_hits_exactly_nothing_up_to_the_cycle_less_one_layer(void **state)
{
    (void)state;
    struct hit_curve c;
    uint64_t layers = 48, expert = 2857000, cycle = layers * 8 * expert,
             all = layers * 128 * expert;
    hit_curve_uniform(&c, 128, 8);
    assert_int_equal(hit_curve_ratio(&c, cycle - cycle / layers, cycle, layers, all), 0);
    assert_true(hit_curve_ratio(&c, cycle - cycle / layers + expert, cycle, layers, all) > 0);
    assert_int_equal(hit_curve_ratio(&c, all, cycle, layers, all), RATIO_ONE);
    assert_true(hit_curve_ratio(&c, all - 1, cycle, layers, all) <= RATIO_ONE);
}

static void hits_never_fall_as_the_cache_grows(void **state)
{
    (void)state;
    static const char *const presets[] = {"uniform", "deepseek-v2-lite", "gpt-oss"};
    for (size_t i = 0; i < 3; i++) {
        struct hit_curve c;
        uint64_t last = 0, all = 48 * 128 * 2857000ull, cycle = all / 16;
        assert_ok(hit_curve_preset(&c, "sim/trace/presets", presets[i], 128, 8, &dg));
        for (uint64_t cache = 0; cache <= all; cache += all / 1000) {
            uint64_t h = hit_curve_ratio(&c, cache, cycle, 48, all);
            assert_true(h >= last);
            last = h;
        }
    }
}

static void uniform_routing_of_a_long_run_hits_cache_over_all(void **state)
{
    (void)state;
    struct hit_curve c;
    uint64_t all = 48 * 128 * 2857000ull;
    hit_curve_uniform(&c, 128, 8);
    for (uint64_t share = 2; share <= 9; share++) {
        double h = (double)hit_curve_ratio(&c, all / 10 * share, all / 16, 48, all) / 1e9;
        assert_close(h, (double)share / 10, 0.035);
    }
}

static void the_union_of_a_uniform_chunk_is_the_closed_form(void **state) /* SYSTEMS 1.7 */
{
    (void)state;
    struct hit_curve c;
    hit_curve_uniform(&c, 384, 6);
    for (uint64_t tokens = 1; tokens <= 600; tokens += 37)
        assert_close((double)hit_curve_distinct_e3(&c, tokens) / 1000.0,
                     (double)work_unique_experts_e3(384, 6, tokens) / 1000.0, 0.5);
    assert_close((double)hit_curve_distinct_e3(&c, 512) / 384e3, 0.9997, 0.001); /* V4.1-Flash */
}

/* ---- placement ----------------------------------------------------------------------------- */

static uint64_t sum_of(const struct placement *w)
{
    return w->dense_resident + w->cache + w->state + w->buffers + w->spare;
}

static void every_byte_given_has_a_place_and_none_lives_twice(void **state)
{
    (void)state;
    struct bench b = bench_of("qwen3-30b-a3b", "oneplus-15r", "q4_k_m");
    for (uint64_t gib = 2; gib <= 11; gib++) {
        b.r.place.memory = gib << 30;
        struct plan *p = plan_of(&b);
        assert_int_equal(sum_of(&p->place), p->place.given);
        assert_int_equal(p->place.given, gib << 30);
        plan_free(p);
    }
    bench_free(&b);
}

static void the_minimum_named_is_enough_and_one_byte_less_is_refused(void **state)
{
    (void)state;
    struct bench b = bench_of("qwen3-30b-a3b", "oneplus-15r", "q4_k_m");
    b.r.place.memory = 4ull << 30;
    struct plan *p = plan_of(&b), *q;
    uint64_t minimum = p->place.minimum;
    plan_free(p);
    b.r.place.memory = minimum;
    p = plan_of(&b);
    assert_int_equal(p->place.cache, 8 * model_expert_bytes_max(b.m));
    plan_free(p);
    b.r.place.memory = minimum - 1;
    assert_int_equal(plan_new(&q, b.m, b.d, &b.r, &dg), ST_MISFIT);
    assert_null(q);
    assert_non_null(strstr(dg.text, "at least"));
    bench_free(&b);
}

static void dense_weights_that_do_not_fit_are_read_again_every_token(void **state)
{
    (void)state;
    struct bench b = bench_of("kimi-k3", "m5-pro-64gb", NULL);
    b.r.place.stream_dense = true;
    struct plan *p = plan_of(&b);
    assert_true(p->place.stream_trunk > 0);
    assert_true(p->tally.streamed_bytes > p->place.dense - p->place.given);
    assert_true(p->tally.streamed_bytes < p->place.dense);
    assert_true(sum_of(&p->place) <= p->place.given);
    plan_free(p);
    bench_free(&b);
}

static void a_model_that_fits_streams_nothing(void **state)
{
    (void)state;
    struct bench b = bench_of("qwen3-30b-a3b", "m5-max-128gb", "q4_k_m");
    struct plan *p = plan_of(&b);
    assert_true(p->place.fits);
    assert_int_equal(p->hit_ratio, RATIO_ONE);
    assert_int_equal(p->tally.flash_bytes, 0);
    assert_int_equal(p->timing.flash_ns, 0);
    plan_free(p);
    bench_free(&b);
}

/* ---- the answer ---------------------------------------------------------------------------- */

static const struct {
    const char *model, *device, *quant;
} cases[] = {{"qwen3-30b-a3b", "oneplus-15r", "q4_k_m"},
             {"gpt-oss-120b", "m5-24gb", "mxfp4"},
             {"qwen3.5-397b-a17b", "m3-max-48gb", "mlx4-g64"},
             {"qwen3-30b-a3b", "rtx-3060-pc", NULL},
             {"llama-3.1-8b", "raspberry-pi-5-8gb", "q4_k_m"}};
#define EACH_CASE(i) for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)

static void a_token_lies_between_its_bounds_and_inside_its_interval(void **state)
{
    (void)state;
    EACH_CASE(i)
    {
        struct bench b = bench_of(cases[i].model, cases[i].device, cases[i].quant);
        for (int profile = PROFILE_SERIAL; profile <= PROFILE_PERFECT; profile++) {
            b.r.profile = (enum profile)profile;
            struct plan *p = plan_of(&b);
            assert_true(p->bounds.lower_ns <= p->timing.total_ns);
            assert_true(p->timing.total_ns <= p->bounds.upper_ns);
            assert_true(p->token_ns.low < p->token_ns.mid && p->token_ns.mid < p->token_ns.high);
            assert_true(p->first_ns.low < p->first_ns.mid && p->first_ns.mid < p->first_ns.high);
            plan_free(p);
        }
        bench_free(&b);
    }
}

static void more_of_anything_never_slows_decoding(void **state)
{
    (void)state;
    EACH_CASE(i)
    {
        struct bench b = bench_of(cases[i].model, cases[i].device, cases[i].quant);
        struct plan *p = plan_of(&b);
        for (size_t q = 0; q < p->what_if_count; q++) {
            /* One piece uses fewer lanes: with few misses it can be the slower layout. */
            if (strcmp(p->what_if[q].key, "packed") != 0) {
                assert_true(p->what_if[q].factor.mid >= RATIO_ONE);
                assert_true(p->what_if[q].factor.low >= RATIO_ONE);
            }
            assert_true(p->what_if[q].factor.mid <= p->what_if[q].factor.high * 11 / 10);
        }
        for (size_t s = 1; s < p->size_count; s++) {
            assert_true(p->size[s].cache > p->size[s - 1].cache);
            assert_true(p->size[s].token_ns <= p->size[s - 1].token_ns);
        }
        plan_free(p);
        bench_free(&b);
    }
}

static void the_same_seed_gives_the_same_plan_and_another_seed_another_interval(void **state)
{
    (void)state;
    struct bench b = bench_of("qwen3-30b-a3b", "oneplus-15r", "q4_k_m");
    b.r.place.memory = 6ull << 30;
    struct plan *p = plan_of(&b), *q = plan_of(&b);
    assert_memory_equal(&p->token_ns, &q->token_ns, sizeof p->token_ns);
    assert_memory_equal(&p->first_ns, &q->first_ns, sizeof p->first_ns);
    for (size_t i = 0; i < p->what_if_count; i++)
        assert_memory_equal(&p->what_if[i].factor, &q->what_if[i].factor, sizeof(struct range));
    plan_free(q);
    b.r.seed = 2;
    q = plan_of(&b);
    assert_int_equal(p->token_ns.mid, q->token_ns.mid);
    assert_int_not_equal(p->token_ns.low, q->token_ns.low);
    plan_free(q);
    plan_free(p);
    bench_free(&b);
}

static void a_wider_input_widens_the_interval(void **state)
{
    (void)state;
    struct bench b = bench_of("qwen3-30b-a3b", "oneplus-15r", "q4_k_m");
    struct plan *p = plan_of(&b);
    b.d->storage[0].bandwidth.spread = 600000000;
    b.d->storage[0].bandwidth.spread_given = true;
    struct plan *q = plan_of(&b);
    assert_int_equal(p->token_ns.mid, q->token_ns.mid);
    assert_true(q->token_ns.high > p->token_ns.high);
    plan_free(q);
    plan_free(p);
    bench_free(&b);
}

static void the_inverse_gives_back_the_rate_to_the_last_unit(void **state)
{
    (void)state;
    struct bench b = bench_of("qwen3-30b-a3b", "oneplus-15r", "q4_k_m");
    struct answer a[WISH_COUNT];
    struct plan_case c;
    struct timing t;
    b.r.place.memory = 6ull << 30;
    struct plan *p = plan_of(&b), *q;
    uint64_t wanted = p->timing.total_ns / 10 * 8;
    plan_want(a, p, wanted);
    assert_true(a[WISH_FLASH].reachable && a[WISH_FLASH].need > a[WISH_FLASH].now);
    assert_true(a[WISH_CACHE].reachable && a[WISH_CACHE].need > a[WISH_CACHE].now);
    plan_base_case(&c, p);
    c.cache = a[WISH_CACHE].need;
    plan_token(&t, p, &c);
    assert_true(t.total_ns <= wanted);
    c.cache--;
    plan_token(&t, p, &c);
    assert_true(t.total_ns > wanted);
    assert_true(a[WISH_MEMORY].reachable);
    b.r.place.memory = a[WISH_MEMORY].need;
    b.r.place.hypothetical = true;
    q = plan_of(&b);
    assert_true(q->timing.total_ns <= wanted);
    plan_free(q);
    assert_false(a[WISH_DRAM_RATE].reachable); /* compute and flash bind here */
    plan_free(p);
    bench_free(&b);
}

static void what_is_had_already_is_named_as_enough(void **state)
{
    (void)state;
    struct bench b = bench_of("qwen3-30b-a3b", "oneplus-15r", "q4_k_m");
    struct answer a[WISH_COUNT];
    struct plan *p = plan_of(&b);
    plan_want(a, p, p->timing.total_ns * 2);
    for (size_t i = 0; i < WISH_COUNT; i++)
        assert_true(!a[i].best_ns || (a[i].reachable && a[i].need <= a[i].now));
    plan_free(p);
    bench_free(&b);
}

/* Routing of which nothing is known: the answer is that of the customary preset, the interval spans what
 * each of the presets answers, and an explicit preset is as narrow as before. */
static void unknown_routing_spans_from_uniform_to_the_most_skewed(void **state)
{
    (void)state;
    struct bench b = bench_of("glm-4.5-air", "m5-pro-64gb", NULL);
    b.r.preset = NULL;
    assert_null(b.m->router);
    struct plan *p = plan_of(&b), *q;
    assert_true(plan_routing_unknown(p));
    assert_int_equal(p->misses.kind, KIND_ASSUMED);
    for (const char *const *preset = route_presets; *preset; preset++) {
        b.r.preset = *preset;
        q = plan_of(&b);
        assert_false(plan_routing_unknown(q));
        assert_true(p->token_ns.low < q->timing.total_ns && q->timing.total_ns < p->token_ns.high);
        if (preset == route_presets) {
            assert_int_equal(p->timing.total_ns, q->timing.total_ns);
            assert_true(p->token_ns.high > q->token_ns.high && p->token_ns.low < q->token_ns.low);
        }
        plan_free(q);
    }
    plan_free(p);
    bench_free(&b);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* At small, middle and large caches: within 4 points of the median of the six public routers. */
static void the_customary_preset_lies_in_the_middle_of_the_public_routers(void **state)
{
    (void)state;
    const uint64_t all = 1000000000000ull, experts[] = {128, 256, 384};
    for (size_t e = 0; e < 3; e++)
        for (uint64_t share = 10; share <= 60; share += 10) {
            uint64_t h[6], cycle = all / experts[e] * 8, own = 0;
            size_t n = 0;
            for (const char *const *preset = route_presets; *preset; preset++) {
                struct hit_curve c;
                if (strcmp(*preset, "uniform") == 0)
                    continue;
                assert_ok(hit_curve_preset(&c, "sim/trace/presets", *preset, experts[e], 8, &dg));
                h[n++] = hit_curve_ratio(&c, all / 100 * share, cycle, 48, all);
                own = preset == route_presets ? h[0] : own;
            }
            assert_int_equal(n, 6);
            qsort(h, n, sizeof *h, by_size);
            assert_close((double)own / 1e7, (double)(h[2] + h[3]) / 2e7, 4.0);
        }
}

static void a_model_that_fits_does_not_care_how_it_routes(void **state)
{
    (void)state;
    struct bench b = bench_of("glm-4.5-air", "m3-ultra-512gb", NULL);
    b.r.preset = NULL;
    struct plan *p = plan_of(&b);
    assert_true(p->place.fits);
    assert_false(plan_routing_unknown(p));
    plan_free(p);
    bench_free(&b);
}

static void a_chunk_shrinks_until_its_experts_fit_the_cache(void **state)
{
    (void)state;
    struct bench b = bench_of("qwen3-30b-a3b", "oneplus-15r", "q4_k_m");
    b.r.place.memory = 11ull << 30;
    b.r.place.cache_given = true;
    b.r.place.cache = 100 * model_expert_bytes_max(b.m);
    struct plan *p = plan_of(&b);
    assert_true(p->route->chunk < 512);
    assert_true(hit_curve_distinct_e3(&p->route->curve, p->route->chunk) <= 100000);
    uint64_t chunks = 0;
    for (size_t i = 0; i < p->route->part_count; i++)
        chunks += p->route->part[i].chunks;
    assert_int_equal(chunks, (512 + p->route->chunk - 1) / p->route->chunk);
    plan_free(p);
    bench_free(&b);
}

static void a_prompt_read_in_chunks_that_forget_each_other_pays_for_every_union(void **state)
{
    (void)state;
    struct bench b = bench_of("qwen3-30b-a3b", "oneplus-15r", "q4_k_m");
    b.r.place.memory = 11ull << 30;
    b.r.place.cache_given = true;
    b.r.place.cache = 50 * model_expert_bytes_max(b.m);
    b.r.preset = NULL;
    struct plan *p = plan_of(&b);
    struct plan_case c;
    struct regime r;
    uint64_t cold = 0;
    plan_base_case(&c, p);
    plan_regime(&r, p, &c);
    r.hit_ratio = 0;
    assert_true(p->route->part_count > 1);
    for (uint64_t at = 0; at < 512; at += p->route->chunk) {
        struct workload chunk;
        struct timing t;
        struct workload_request w = {.sequences = 1,
                                     .tokens =
                                         512 - at < p->route->chunk ? 512 - at : p->route->chunk,
                                     .context = at,
                                     .logits = at + p->route->chunk >= 512,
                                     .state_bits = STATE_BITS_F16,
                                     .distinct_e3 = hit_curve_union_e3,
                                     .distinct_self = &p->route->curve};
        assert_ok(workload_init(&chunk, b.m, &w, &dg));
        estimate_timing(&t, &chunk, &p->machine, &r);
        cold += t.total_ns;
        workload_free(&chunk);
    }
    assert_close((double)plan_first_ns(p, &c) / (double)cold, 1.0, 0.001);
    c.cache =
        20 * p->place.cache; /* a few tokens' worth: the cycle over the layers still empties it */
    assert_close((double)plan_first_ns(p, &c) / (double)cold, 1.0, 0.001);
    c.cache = p->place.experts;
    assert_true(plan_first_ns(p, &c) < cold);
    plan_free(p);
    bench_free(&b);
}

#define MANY 20000

static void ninety_per_cent_of_the_draws_lie_within_the_stated_spread(void **state)
{
    (void)state;
    static uint64_t factor[MANY];
    struct value v = {
        .kind = KIND_MEASURED, .spread = 200000000, .spread_given = true, .given = true};
    spread_draw(factor, MANY, 1, "test", &v);
    assert_close((double)spread_quantile(factor, MANY, 5) / 1e9, 1 / 1.2, 0.005);
    assert_close((double)spread_quantile(factor, MANY, 50) / 1e9, 1.0, 0.005);
    assert_close((double)spread_quantile(factor, MANY, 95) / 1e9, 1.2, 0.006);
}

/* BigMoeOnEdge, serial reads, four lanes; nothing is fitted row by row. The device is one phone on some
 * days: two runs of one configuration (B5, B8) differ by 16 %. */
static void phone_runs_lie_within_30_per_cent_and_inside_the_interval(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        uint64_t cache_mib, top_k;
        double tok_per_s;
    } row[] = {{"B1", 0, 8, 1.71},
               {"B3", 2000, 8, 2.37},
               {"B5", 4000, 8, 3.47},
               {"B8", 4000, 8, 4.03},
               {"B9", 4000, 6, 5.01}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct bench b = bench_of("qwen3-30b-a3b", "oneplus-15r", "q4_k_m");
        for (size_t l = 0; l < b.m->layer_count; l++)
            b.m->layers[l].ffn.top_k = row[i].top_k;
        b.r.preset = NULL;
        b.r.prompt = 34;
        b.r.place.context = 128;
        b.r.place.memory = 9ull << 30;
        b.r.place.cache_given = true;
        b.r.place.cache = row[i].cache_mib * MIB;
        struct plan *p = plan_of(&b);
        assert_close(1e9 / (double)p->timing.total_ns / row[i].tok_per_s, 1.0, 0.30);
        double published_ns = 1e9 / row[i].tok_per_s;
        assert_true((double)p->token_ns.low < published_ns &&
                    published_ns < (double)p->token_ns.high);
        /* 34 tokens in 5.351 s without a cache (bmoe/bench/qwen_stream.log); with one the engine
         * spends some seconds more on touching it for the first time. */
        if (row[i].top_k == 8)
            assert_close((double)p->first_ns.mid / 5.351e9, 1.0, 0.25);
        plan_free(p);
        bench_free(&b);
    }
}

/* ---- measured runs ------------------------------------------------------------------------- */

static void the_nearest_public_run_comes_first(void **state)
{
    (void)state;
    struct measured_run runs[3];
    size_t count;
    struct measured_query q = {"qwen3-30b-a3b", "oneplus-15r", 2000 * MIB, 8, true};
    assert_ok(measured_nearest(runs, 3, &count, "sim/plan/measured.csv", &q, &dg));
    assert_int_equal(count, 3);
    assert_string_equal(runs[0].id, "B2");
    assert_string_equal(runs[1].id, "B3");
    assert_int_equal(runs[0].likeness, LIKE_BOTH);
    q.device = "h100-sxm";
    assert_ok(measured_nearest(runs, 3, &count, "sim/plan/measured.csv", &q, &dg));
    assert_int_equal(runs[0].likeness, LIKE_MODEL);
    q.model = "no-such-model";
    assert_ok(measured_nearest(runs, 3, &count, "sim/plan/measured.csv", &q, &dg));
    assert_int_equal(count, 0);
}

static void every_public_run_names_a_model_and_a_device_of_the_catalogue(void **state)
{
    (void)state;
    struct run r = run_shell("grep -v '^#' sim/plan/measured.csv | tail -n +2 | cut -d, -f2,3");
    char *save = NULL;
    size_t rows = 0;
    for (char *line = strtok_r(r.out, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save), rows++) {
        char path[256], *device = strchr(line, ',');
        assert_non_null(device);
        *device++ = 0;
        snprintf(path, sizeof path, "models/desc/%s.yaml", line);
        if (access(path, R_OK) != 0)
            fail_msg("no model %s", path);
        snprintf(path, sizeof path, "devices/desc/%s.yaml", device);
        if (access(path, R_OK) != 0)
            fail_msg("no device %s", path);
    }
    assert_true(rows > 50);
    run_free(&r);
}

/* ---- the command --------------------------------------------------------------------------- */

#define PHONE "plan qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --dram 6GiB"

static void the_screen_answers_every_question(void **state)
{
    (void)state;
    static const char *const labels[] = {"\n  fits ",       "\n  where ",      "\n  decode ",
                                         "\n  bound by ",   "\n  per token ",  "\n  cache size ",
                                         "\n  would help ", "\n  measured ",   "\n  assumed ",
                                         "first token",     "LRU hits nothing"};
    struct run r = run_memwall(PHONE);
    size_t lines = 0;
    assert_int_equal(r.exit_code, 0);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (!strstr(r.out, labels[i]))
            fail_msg("no '%s' in\n%s", labels[i], r.out);
    for (const char *c = r.out; *c; c++)
        lines += *c == '\n';
    assert_true(lines <= 24);
    run_free(&r);
}

static void the_row_has_its_columns_and_json_is_one_object(void **state)
{
    (void)state;
    expect_holds(PHONE " --format csv", 0,
                 "model,device,quant,profile,fits,decode_tok_per_s,decode_tok_per_s_low,"
                 "decode_tok_per_s_high,ttft_s,",
                 NULL);
    expect_holds(PHONE " --format json", 0,
                 "{\"model\": \"qwen3-30b-a3b\", \"device\": \"oneplus-15r\"", NULL);
    expect_holds(PHONE " --explain", 0, "storage.0.bandwidth", NULL);
    expect_holds(PHONE " --want 5tok/s --format csv", 0,
                 "resource,now,need,unit,need_low,need_high,most_tok_per_s\nflash rate,", NULL);
    expect_holds(PHONE " --want 5tok/s", 0, "each alone", NULL);
}

static void two_runs_print_the_same_bytes(void **state)
{
    (void)state;
    struct run a = run_memwall(PHONE " --explain --seed 7"),
               b = run_memwall(PHONE " --explain --seed 7");
    assert_int_equal(a.exit_code, 0);
    assert_string_equal(a.out, b.out);
    run_free(&a);
    run_free(&b);
}

static void what_does_not_fit_or_is_not_known_is_one_line(void **state)
{
    (void)state;
    expect_holds("plan qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --dram 1GiB", 1, NULL,
                 "needs at least");
    expect_holds("plan qwen3-30b-a3b --device oneplus-15r --dram 64GiB", 1, NULL, "the device has");
    expect_holds("plan qwen3-30b-a3b --device oneplus-15", 1, NULL, "oneplus-15r");
    expect_holds(PHONE " --want fast", 2, NULL, "--want");
    expect_holds(PHONE " --preset no-such-preset", 1, NULL, "no-such-preset");
    expect_holds(PHONE " --set storage.0.bandwith=4GB/s", 1, NULL, "bandwith");
    expect_holds(PHONE " --profile fast", 2, NULL, "serial");
}

static void an_override_reaches_the_description_it_belongs_to(void **state)
{
    (void)state;
    expect_holds(PHONE " --format csv --set device.storage.0.bandwidth=20GB/s", 0, "compute", NULL);
    expect_holds(PHONE " --set top_k=4", 0, "top 4", NULL);
    expect_holds(PHONE " --set model.title=Renamed", 0, "Renamed,", NULL);
}

static void unknown_routing_stands_beside_the_rate(void **state)
{
    (void)state;
    expect_holds("plan glm-4.5-air --device m5-pro-64gb", 0, "]  routing unknown", NULL);
    expect_holds("plan glm-4.5-air --device m5-pro-64gb --format csv", 0, ",unknown,", NULL);
    struct run r = run_memwall("plan glm-4.5-air --device m5-pro-64gb --preset qwen3");
    assert_int_equal(r.exit_code, 0);
    assert_null(strstr(r.out, "unknown"));
    run_free(&r);
    expect_holds("sim --model glm-4.5-air --device m5-pro-64gb --tokens 1 --prompt 1 --draws 0 "
                 "--format json",
                 0, " routing\"", "taken as gpt-oss");
    r = run_memwall("model import ../shared/data/hf-configs/Qwen--Qwen3-30B-A3B.json");
    assert_true(r.exit_code != 0 || strstr(r.out, "\n# router: gpt-oss "));
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distinct_experts_alone_predict_the_published_lru_replays),
        cmocka_unit_test(lru_hits_exactly_nothing_up_to_the_cycle_less_one_layer),
        cmocka_unit_test(hits_never_fall_as_the_cache_grows),
        cmocka_unit_test(uniform_routing_of_a_long_run_hits_cache_over_all),
        cmocka_unit_test(the_union_of_a_uniform_chunk_is_the_closed_form),
        cmocka_unit_test(every_byte_given_has_a_place_and_none_lives_twice),
        cmocka_unit_test(the_minimum_named_is_enough_and_one_byte_less_is_refused),
        cmocka_unit_test(dense_weights_that_do_not_fit_are_read_again_every_token),
        cmocka_unit_test(a_model_that_fits_streams_nothing),
        cmocka_unit_test(a_token_lies_between_its_bounds_and_inside_its_interval),
        cmocka_unit_test(more_of_anything_never_slows_decoding),
        cmocka_unit_test(the_same_seed_gives_the_same_plan_and_another_seed_another_interval),
        cmocka_unit_test(a_wider_input_widens_the_interval),
        cmocka_unit_test(the_inverse_gives_back_the_rate_to_the_last_unit),
        cmocka_unit_test(what_is_had_already_is_named_as_enough),
        cmocka_unit_test(unknown_routing_spans_from_uniform_to_the_most_skewed),
        cmocka_unit_test(the_customary_preset_lies_in_the_middle_of_the_public_routers),
        cmocka_unit_test(a_model_that_fits_does_not_care_how_it_routes),
        cmocka_unit_test(unknown_routing_stands_beside_the_rate),
        cmocka_unit_test(a_chunk_shrinks_until_its_experts_fit_the_cache),
        cmocka_unit_test(a_prompt_read_in_chunks_that_forget_each_other_pays_for_every_union),
        cmocka_unit_test(ninety_per_cent_of_the_draws_lie_within_the_stated_spread),
        cmocka_unit_test(phone_runs_lie_within_30_per_cent_and_inside_the_interval),
        cmocka_unit_test(the_nearest_public_run_comes_first),
        cmocka_unit_test(every_public_run_names_a_model_and_a_device_of_the_catalogue),
        cmocka_unit_test(the_screen_answers_every_question),
        cmocka_unit_test(the_row_has_its_columns_and_json_is_one_object),
        cmocka_unit_test(two_runs_print_the_same_bytes),
        cmocka_unit_test(what_does_not_fit_or_is_not_known_is_one_line),
        cmocka_unit_test(an_override_reaches_the_description_it_belongs_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
