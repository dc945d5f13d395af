/* test_engine_golden.c -- the graph against logits and routing that an independent float64 implementation gave
 * for the same files (../shared/data/golden), and against itself for any way to cut a prompt. */
#include "tests/engine_rig.h"
#include "tests/support.h"

#include "base/csv.h"
#include "base/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "../shared/data/golden/"
#define LOGITS (GOLDEN_TOKENS * GOLDEN_VOCAB)

static const char *const names[] = {
    "qwen3moe-f16",   "qwen3moe-q8_0", "qwen3moe-q4_0", "qwen3moe-q4_k_m", "mixtral-f16",
    "mixtral-q4_k_m", "qwen2moe-f16",  "gptoss-f16",    "deepseek3-f16",
};

/* Runs the golden prompt; the trace is the caller's. */
static void run(const char *name, bool f32, size_t chunk, float *logits, struct trace **trace)
{
    char path[256];
    struct diag dg = {0};
    uint32_t tokens[GOLDEN_TOKENS];
    golden_prompt(tokens);
    snprintf(path, sizeof path, FOLDER "%s.gguf", name);
    struct engine_rig r = {
        .path = path, .activations_f32 = f32, .threads = 2, .chunk = chunk, .trace = trace != NULL};
    if (engine_rig_open(&r, &dg) != ST_OK ||
        engine_rig_prompt(&r, tokens, GOLDEN_TOKENS, logits, &dg) != ST_OK)
        fail_msg("%s: %s", name, dg.text);
    if (trace) {
        assert_int_equal(trace_builder_finish(r.record.trace, trace, &dg), ST_OK);
        r.record.trace = NULL;
    }
    engine_rig_close(&r);
}

static float *reference(const char *name)
{
    char path[256];
    float *logits = calloc(LOGITS, sizeof *logits);
    snprintf(path, sizeof path, FOLDER "%s.logits.f32", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(logits, sizeof *logits, LOGITS, f), LOGITS);
    fclose(f);
    return logits;
}

/* ||a - b|| / ||b|| by position. */
static void errors(double *error, const float *a, const float *b)
{
    for (size_t t = 0; t < GOLDEN_TOKENS; t++) {
        double off = 0, all = 0;
        for (size_t i = t * GOLDEN_VOCAB; i < (t + 1) * GOLDEN_VOCAB; i++) {
            off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
            all += (double)b[i] * (double)b[i];
        }
        error[t] = sqrt(off / all);
    }
}

/* The published routing: one row a (layer, position, slot). */
struct routing {
    const struct trace *t;
    uint64_t rows, same_slots; /* experts at their very slots */
    uint64_t spots, same_sets;
    uint32_t spot_row, spot_found;
};

static const struct trace_batch *batch_of(const struct trace *t, uint32_t layer)
{
    for (size_t i = 0; i < t->batch_count; i++)
        if (t->batch[i].layer == layer)
            return &t->batch[i];
    return NULL;
}

static uint32_t number(struct csv_field f)
{
    char text[16];
    snprintf(text, sizeof text, "%.*s", (int)f.length, f.text);
    return (uint32_t)strtoul(text, NULL, 10);
}

static enum status compare_row(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct routing *r = self;
    (void)line, (void)dg;
    uint32_t layer = number(f[0]), position = number(f[1]), slot = number(f[2]);
    uint16_t expert = (uint16_t)number(f[3]);
    const struct trace_batch *b = batch_of(r->t, layer);
    assert_non_null(b);
    const uint16_t *chosen = &r->t->expert[b->first_row + (size_t)position * r->t->top_k];
    r->rows++;
    r->same_slots += chosen[slot] == expert;
    if (slot == 0) {
        r->spots++;
        r->spot_found = 0;
    }
    for (uint32_t s = 0; s < r->t->top_k; s++)
        r->spot_found += chosen[s] == expert;
    r->same_sets += slot + 1 == r->t->top_k && r->spot_found == r->t->top_k;
    return ST_OK;
}

static struct routing compare_routing(const char *name, const struct trace *t)
{
    static const struct csv_column columns[] = {
        {"layer", true}, {"position", true}, {"slot", true}, {"expert", true}};
    char path[256];
    struct diag dg = {0};
    struct routing r = {.t = t};
    snprintf(path, sizeof path, FOLDER "%s.route.csv", name);
    assert_int_equal(csv_read(path, columns, 4, false, compare_row, NULL, &r, &dg), ST_OK);
    return r;
}

static void full_precision_gives_the_reference_logits_and_its_routing(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        double error[GOLDEN_TOKENS];
        struct trace *t;
        float *logits = calloc(LOGITS, sizeof *logits), *want = reference(names[n]);
        run(names[n], true, GOLDEN_TOKENS, logits, &t);
        errors(error, logits, want);
        for (size_t i = 0; i < GOLDEN_TOKENS; i++)
            if (!(error[i] < 1e-3))
                fail_msg("%s, position %zu: error %g", names[n], i, error[i]);
        struct routing r = compare_routing(names[n], t);
        assert_true(r.rows > 0);
        assert_int_equal(r.same_slots, r.rows);
        trace_free(t);
        free(logits);
        free(want);
    }
}

static void activations_of_8_bits_stay_close(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        double error[GOLDEN_TOKENS];
        struct trace *t;
        float *logits = calloc(LOGITS, sizeof *logits), *want = reference(names[n]);
        run(names[n], false, GOLDEN_TOKENS, logits, &t);
        errors(error, logits, want);
        double median = stats_median(error, GOLDEN_TOKENS);
        if (!(median < 2.5e-2))
            fail_msg("%s: median error %g", names[n], median);
        struct routing r = compare_routing(names[n], t);
        if (r.same_sets * 100 < r.spots * 95)
            fail_msg("%s: %llu of %llu expert sets", names[n], (unsigned long long)r.same_sets,
                     (unsigned long long)r.spots);
        trace_free(t);
        free(logits);
        free(want);
    }
}

static void a_prompt_may_be_cut_anywhere(void **state)
{
    (void)state;
    static const size_t chunks[] = {1, 7};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        float *whole = calloc(LOGITS, sizeof *whole), *cut = calloc(LOGITS, sizeof *cut);
        run(names[n], false, GOLDEN_TOKENS, whole, NULL);
        for (size_t c = 0; c < 2; c++) {
            run(names[n], false, chunks[c], cut, NULL);
            assert_memory_equal(cut, whole, LOGITS * sizeof *cut);
        }
        free(whole);
        free(cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_precision_gives_the_reference_logits_and_its_routing),
        cmocka_unit_test(activations_of_8_bits_stay_close),
        cmocka_unit_test(a_prompt_may_be_cut_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
