/* test_engine_tiny.c -- the trained model of this project through the engine, against what its trainer measured on
 * held-out text (../shared/data/tiny/heldout.csv): bits per byte, experts in common with the previous token, and
 * the share of a layer's experts that its router finds when it is run early. And the file of it that is bundled. */
#include "tests/engine_rig.h"
#include "tests/support.h"

#include "base/csv.h"
#include "kernels/graph/router.h"
#include "sim/trace/trace_stats.h"

#include <math.h>

#define FOLDER    SHARED "tiny/"
#define F16       FOLDER "tiny-f16.gguf"
#define Q4_0      "models/tiny/tiny-q4_0.gguf"
#define WINDOW    257 /* bytes: each but the first is foretold from those before it */
#define FORETOLD  (WINDOW - 1)
#define WINDOWS   30 /* a text */
#define LAYERS    8
#define TOP_K     4
#define VOCAB     256
#define CHUNK     64
#define DISTANCES 4 /* 0: the layer itself; 1 to 3: layers ahead */

static const char *const texts[] = {"kjv", "tinyshakespeare", "jargon"};
#define TEXTS (sizeof texts / sizeof *texts)

/* ---- held-out text and what is known of it ---- */

struct figures {
    char text[32];
    double bits_per_byte, overlap, recall[DISTANCES]; /* recall[0] is 1 by definition */
};

static enum status read_figures(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct figures **next = self, *row = (*next)++;
    char number[6][32];
    (void)line, (void)dg;
    for (size_t i = 0; i < 6; i++)
        snprintf(number[i], sizeof number[i], "%.*s", (int)f[i + (i > 0)].length,
                 f[i + (i > 0)].text);
    strcpy(row->text, number[0]);
    row->bits_per_byte = strtod(number[1], NULL);
    row->overlap = strtod(number[2], NULL);
    row->recall[0] = 1;
    for (size_t d = 1; d < DISTANCES; d++)
        row->recall[d] = strtod(number[2 + d], NULL);
    return ST_OK;
}

static void published(struct figures out[TEXTS])
{
    static const struct csv_column columns[] = {{"text", true},
                                                {"windows", true},
                                                {"bits_per_byte", true},
                                                {"overlap_lag1", true},
                                                {"recall_distance1", true},
                                                {"recall_distance2", true},
                                                {"recall_distance3", true}};
    struct diag dg = {0};
    struct figures *next = out;
    assert_ok(csv_read(FOLDER "heldout.csv", columns, 7, false, read_figures, NULL, &next, &dg));
    assert_int_equal(next - out, TEXTS);
    for (size_t i = 0; i < TEXTS; i++)
        assert_string_equal(out[i].text, texts[i]);
}

static void read_windows(uint32_t *tokens, const char *text)
{
    char path[128];
    size_t bytes;
    snprintf(path, sizeof path, FOLDER "heldout-%s.bin", text);
    char *whole = read_whole(path, &bytes);
    assert_int_equal(bytes, WINDOWS * WINDOW);
    for (size_t i = 0; i < bytes; i++)
        tokens[i] = (unsigned char)whole[i];
    free(whole);
}

/* ---- the routers of all layers ahead, asked early ---- */

/* Sits where the engine asks for its guess one layer ahead, and notes what the routers 0 to 3 layers ahead say of
 * the state that it is shown. Tokens are counted over all passes. */
struct lookahead {
    size_t first_token, tokens; /* of the pass */
    uint16_t (*guess)[LAYERS][DISTANCES][TOP_K];
    struct input normed;
    float logit[CHUNK * 32];
};

static void ask_router(struct lookahead *a, const struct graph_weights *w,
                       const struct compute_setup *c, size_t layer, size_t target,
                       const float *state, float *score)
{
    size_t hidden = w->model->hidden, experts = w->model->layers[target].ffn.experts;
    for (size_t t = 0; t < a->tokens; t++)
        c->isa->rms_norm(a->normed.values + t * hidden, state + t * hidden,
                         w->layers[target].ffn_norm, hidden, w->numbers.epsilon);
    input_ready(&a->normed, 0, a->tokens, c);
    product_run(c, &w->layers[target].router, &a->normed, a->tokens, a->logit);
    for (size_t t = 0; t < a->tokens; t++) {
        router_scores(w, c->isa, target, a->logit + t * experts, score + t * experts);
        router_choose(score + t * experts, experts, TOP_K,
                      a->guess[a->first_token + t][layer][target - layer]);
    }
}

static void look_ahead(void *self, const struct graph_weights *w, const struct compute_setup *c,
                       size_t layer, size_t target, const float *state, size_t tokens,
                       float *scores)
{
    struct lookahead *a = self;
    (void)target;
    if (layer == 0)
        a->first_token += a->tokens;
    a->tokens = tokens;
    for (size_t d = 0; d < DISTANCES && layer + d < LAYERS; d++)
        ask_router(a, w, c, layer, layer + d, state, scores);
}

/* ---- a text through the model ---- */

/* Bits that the byte which came cost, by the logits before it. */
static double bits(const float *logits, uint32_t byte)
{
    double sum = 0, top = (double)logits[0];
    for (size_t v = 1; v < VOCAB; v++)
        top = fmax(top, (double)logits[v]);
    for (size_t v = 0; v < VOCAB; v++)
        sum += exp((double)logits[v] - top);
    return (log(sum) + top - (double)logits[byte]) / log(2.0);
}

/* Mean over windows, each from an empty state. */
static double bits_per_byte(struct engine_rig *r, const uint32_t *tokens, size_t windows)
{
    struct diag dg = {0};
    double sum = 0;
    float *logits = malloc(FORETOLD * VOCAB * sizeof *logits);
    for (size_t n = 0; n < windows; n++, tokens += WINDOW) {
        assert_ok(engine_rig_prompt(r, tokens, FORETOLD, logits, &dg));
        graph_restart(r->graph);
        for (size_t t = 0; t < FORETOLD; t++)
            sum += bits(logits + t * VOCAB, tokens[t + 1]);
    }
    free(logits);
    return sum / (double)(windows * FORETOLD);
}

static size_t in_common(const uint16_t *a, const uint16_t *b)
{
    size_t n = 0;
    for (size_t i = 0; i < TOP_K; i++)
        for (size_t j = 0; j < TOP_K; j++)
            n += a[i] == b[j];
    return n;
}

/* What the trace of the run says, beside the guesses. */
static void compare_routing(struct figures *f, const struct trace *t, const struct lookahead *a)
{
    struct part recall[DISTANCES] = {{0, 0}};
    for (size_t i = 0; i < t->batch_count; i++) {
        const struct trace_batch *b = &t->batch[i];
        for (size_t row = 0; row < b->row_count; row += TOP_K) {
            const uint16_t *chosen = &t->expert[b->first_row + row];
            size_t token = (size_t)b->pass * CHUNK + row / TOP_K;
            for (size_t d = 0; d < DISTANCES && d <= b->layer; d++) {
                if (b->layer - d == LAYERS - 1)
                    continue; /* the last layer is not asked about any ahead */
                part_add(&recall[d],
                         (struct part){in_common(chosen, a->guess[token][b->layer - d][d]), TOP_K});
            }
        }
    }
    struct trace_stats *s;
    struct diag dg = {0};
    assert_ok(trace_stats_new(&s, t, &dg));
    f->overlap = part_ratio(s->overall.overlap[0]);
    trace_stats_free(s);
    for (size_t d = 0; d < DISTANCES; d++)
        f->recall[d] = part_ratio(recall[d]);
}

static struct figures measure(const char *text, size_t windows)
{
    struct diag dg = {0};
    struct figures f = {0};
    struct trace *t;
    uint32_t tokens[WINDOWS * WINDOW];
    struct lookahead a = {0};
    struct engine_rig r = {.path = F16,
                           .threads = 2,
                           .chunk = CHUNK,
                           .context = FORETOLD,
                           .predict_distance = 1,
                           .predict = look_ahead,
                           .predict_self = &a,
                           .trace = true};
    read_windows(tokens, text);
    a.guess = calloc(windows * FORETOLD, sizeof *a.guess);
    assert_ok(engine_rig_open(&r, &dg));
    assert_ok(input_new(&a.normed, r.weights->model->hidden, CHUNK, &dg));
    f.bits_per_byte = bits_per_byte(&r, tokens, windows);
    assert_ok(trace_builder_finish(r.record.trace, &t, &dg));
    r.record.trace = NULL;
    compare_routing(&f, t, &a);
    trace_free(t);
    engine_rig_close(&r);
    input_free(&a.normed);
    free(a.guess);
    return f;
}

static void held_out_text_costs_and_routes_as_the_trainer_measured(void **state)
{
    (void)state;
    NEED_SHARED();
    struct figures want[TEXTS];
    published(want);
    for (size_t i = 0; i < TEXTS; i++) {
        struct figures f = measure(texts[i], WINDOWS);
        assert_close(f.bits_per_byte, want[i].bits_per_byte, 0.002);
        assert_close(f.overlap, want[i].overlap, 0.003);
        for (size_t d = 1; d < DISTANCES; d++)
            assert_close(f.recall[d], want[i].recall[d], 0.003);
        /* Asked at its own layer a router is shown what it will decide by. */
        assert_true(f.recall[0] == 1.0);
    }
}

/* ---- the file that is bundled ---- */

static void four_bits_cost_little(void **state)
{
    (void)state;
    NEED_SHARED();
    for (size_t i = 0; i < TEXTS; i++) {
        uint32_t tokens[WINDOWS * WINDOW];
        double cost[2];
        read_windows(tokens, texts[i]);
        for (size_t n = 0; n < 2; n++) {
            struct diag dg = {0};
            struct engine_rig r = {
                .path = n ? Q4_0 : F16, .threads = 2, .chunk = CHUNK, .context = FORETOLD};
            assert_ok(engine_rig_open(&r, &dg));
            cost[n] = bits_per_byte(&r, tokens, 4);
            engine_rig_close(&r);
        }
        assert_close(cost[1], cost[0], 0.06);
        assert_true(cost[1] != cost[0]);
    }
}

/* Byte for byte, as a run that writes does: the engine's own guesses stand in the trace. */
static struct part recall_of_decoding(const char *text, size_t distance)
{
    struct diag dg = {0};
    struct trace *t;
    struct trace_stats *s;
    uint32_t tokens[WINDOWS * WINDOW];
    struct engine_rig r = {.path = Q4_0,
                           .threads = 1,
                           .chunk = 1,
                           .context = FORETOLD,
                           .predict_distance = distance,
                           .trace = true};
    r.decide.prefetch = prefetch_policy_find("gate");
    r.decide.prefetch_distance = (uint32_t)distance;
    r.decide.prefetch_experts_max = TOP_K;
    read_windows(tokens, text);
    assert_ok(engine_rig_open(&r, &dg));
    for (size_t n = 0; n < 2; n++) {
        for (size_t i = 0; i < FORETOLD; i++)
            assert_ok(graph_pass(r.graph, &tokens[n * WINDOW + i], 1, PHASE_DECODE, LOGITS_NONE,
                                 NULL, &dg));
        graph_restart(r.graph);
    }
    assert_ok(trace_builder_finish(r.record.trace, &t, &dg));
    r.record.trace = NULL;
    engine_rig_close(&r);
    assert_ok(trace_stats_new(&s, t, &dg));
    struct part recall = s->overall.recall_top_k[distance - 1];
    trace_stats_free(s);
    trace_free(t);
    return recall;
}

static void prefetching_by_the_gate_finds_as_many_experts_as_published(void **state)
{
    (void)state;
    NEED_SHARED();
    struct figures want[TEXTS];
    published(want);
    for (size_t i = 0; i < TEXTS; i++) {
        size_t distance = 1 + i;
        struct part recall = recall_of_decoding(texts[i], distance);
        assert_int_equal(recall.whole, 2 * FORETOLD * (LAYERS - distance) * TOP_K);
        assert_close(part_ratio(recall), want[i].recall[distance], 0.03);
    }
}

static void the_bundled_model_writes_the_same_text_every_time(void **state)
{
    (void)state;
    enum { PROMPT = 5, TEXT = 40 };
    static const uint32_t prompt[PROMPT] = {'A', 'n', 'd', ' ', 'G'};
    uint32_t text[2][TEXT];
    for (size_t n = 0; n < 2; n++) {
        struct diag dg = {0};
        struct engine_rig r = {.path = Q4_0, .threads = 1 + n, .chunk = CHUNK, .context = 64};
        r.decide.budget_bytes = n ? 250000 : 0; /* four of its experts, and all */
        assert_ok(engine_rig_open(&r, &dg));
        assert_ok(engine_rig_prompt(&r, prompt, PROMPT - 1, NULL, &dg));
        assert_ok(engine_rig_greedy(&r, prompt[PROMPT - 1], text[n], TEXT, &dg));
        engine_rig_close(&r);
    }
    assert_memory_equal(text[0], text[1], sizeof text[0]);
    for (size_t i = 0; i < TEXT; i++)
        assert_true(text[0][i] == '\n' || (text[0][i] >= ' ' && text[0][i] <= '~'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_out_text_costs_and_routes_as_the_trainer_measured),
        cmocka_unit_test(four_bits_cost_little),
        cmocka_unit_test(prefetching_by_the_gate_finds_as_many_experts_as_published),
        cmocka_unit_test(the_bundled_model_writes_the_same_text_every_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
