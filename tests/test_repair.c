/* test_repair.c -- a truncated SVD is the best there is; errors fall with the rank down to nothing;
 * and a repaired model predicts more like the full one. */
#include "tests/support.h"

#include "base/pcg.h"
#include "kernels/formats/packed.h"
#include "kernels/graph/adapter.h"
#include "kernels/heads/leading_vectors.h"
#include "kernels/heads/low_rank_fit.h"
#include "kernels/heads/passage.h"
#include "kernels/heads/repair.h"
#include "tests/allocations.h"
#include "tests/cli_expect.h"
#include "tests/engine_rig.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <unistd.h>

#define GOLDEN SHARED "golden/"
#define TINY   SHARED "tiny/"
#define BASE   TINY "tiny-q4_0.gguf"
#define FULL   TINY "tiny-f16.gguf"

static struct diag dg;

static float *noise(size_t n, uint64_t seed)
{
    struct pcg p;
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    pcg_seed(&p, seed, 1);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)pcg_below(&p, 20001) / 10000.0f - 1.0f;
    return x;
}

/* ---- one matrix ---- */

struct shape {
    size_t rows, cols;
};
static const struct shape shapes[] = {{60, 90}, {90, 60}, {64, 64}, {1, 7}, {7, 1}, {130, 40}};
#define SHAPES (sizeof shapes / sizeof *shapes)

static double left_of(const float *e, struct shape s, const float *weight, size_t rank)
{
    float *down = malloc(rank * s.cols * sizeof *down), *up = malloc(rank * s.rows * sizeof *up);
    float *row = malloc(s.cols * sizeof *row);
    assert_true(down && up && row);
    assert_ok(low_rank_fit(down, up, e, s.rows, s.cols, weight, rank, isa_at(0), &dg));
    double left = low_rank_left(e, down, up, s.rows, s.cols, weight, rank, isa_at(0), row);
    free(down);
    free(up);
    free(row);
    return left;
}

static double whole_of(const float *e, struct shape s, const float *weight)
{
    float *row = malloc(s.cols * sizeof *row);
    assert_non_null(row);
    double whole = low_rank_left(e, NULL, NULL, s.rows, s.cols, weight, 0, isa_at(0), row);
    free(row);
    return whole;
}

/* The sum of the squares of all but the `rank` largest singular values: the least that can be
 * left. */
static double least_left(const float *e, struct shape s, const float *weight, size_t rank)
{
    bool tall = s.rows >= s.cols;
    size_t n = tall ? s.cols : s.rows;
    gsl_matrix *a = tall ? gsl_matrix_alloc(s.rows, s.cols) : gsl_matrix_alloc(s.cols, s.rows);
    gsl_matrix *v = gsl_matrix_alloc(n, n);
    gsl_vector *values = gsl_vector_alloc(n), *work = gsl_vector_alloc(n);
    double left = 0;
    for (size_t r = 0; r < s.rows; r++)
        for (size_t c = 0; c < s.cols; c++) {
            double x = (double)e[r * s.cols + c] * sqrt(weight ? (double)weight[c] : 1.0);
            gsl_matrix_set(a, tall ? r : c, tall ? c : r, x);
        }
    assert_int_equal(gsl_linalg_SV_decomp(a, v, values, work), 0);
    for (size_t i = rank; i < n; i++)
        left += gsl_vector_get(values, i) * gsl_vector_get(values, i);
    gsl_matrix_free(a);
    gsl_matrix_free(v);
    gsl_vector_free(values);
    gsl_vector_free(work);
    return left;
}

/* Noise is the hardest case: its singular values lie close together. */
static void what_is_left_is_the_least_that_can_be_left(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        struct shape s = shapes[i];
        float *e = noise(s.rows * s.cols, i + 1), *weight = noise(s.cols, 99);
        for (size_t c = 0; c < s.cols; c++)
            weight[c] = 0.01f + weight[c] * weight[c];
        size_t side = s.rows < s.cols ? s.rows : s.cols;
        for (size_t rank = 1; rank <= side; rank += 7)
            for (int weighted = 0; weighted < 2; weighted++) {
                const float *w = weighted ? weight : NULL;
                double least = least_left(e, s, w, rank), whole = whole_of(e, s, w);
                assert_close(left_of(e, s, w, rank), least, 0.01 * least + 1e-9 * whole);
            }
        free(e);
        free(weight);
    }
}

static void a_large_matrix_takes_few_steps_and_is_still_near_the_optimum(void **state)
{
    struct shape s = {300, 400};
    float *e = noise(s.rows * s.cols, 5);
    (void)state;
    for (size_t rank = 4; rank <= 64; rank *= 4) {
        double least = least_left(e, s, NULL, rank), whole = whole_of(e, s, NULL);
        double left = left_of(e, s, NULL, rank);
        assert_true(left >= least * (1 - 1e-6));
        assert_true(whole - left >= 0.97 * (whole - least));
    }
    free(e);
}

static void the_error_falls_with_every_rank_to_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        struct shape s = shapes[i];
        float *e = noise(s.rows * s.cols, 20 + i);
        double whole = whole_of(e, s, NULL), last = whole;
        size_t side = s.rows < s.cols ? s.rows : s.cols;
        for (size_t rank = 1; rank <= side; rank++) {
            double left = left_of(e, s, NULL, rank);
            assert_true(left < last);
            last = left;
        }
        assert_true(last < 1e-10 * whole);
        free(e);
    }
}

static void a_matrix_of_low_rank_and_one_of_zeros_are_met_exactly(void **state)
{
    struct shape s = {40, 50};
    float *e = calloc(s.rows * s.cols, sizeof *e), *a = noise(2 * s.cols, 7),
          *b = noise(2 * s.rows, 8);
    (void)state;
    assert_close(left_of(e, s, NULL, 5), 0, 0);
    for (size_t r = 0; r < s.rows; r++)
        for (size_t c = 0; c < s.cols; c++)
            e[r * s.cols + c] = b[r] * a[c] + b[s.rows + r] * a[s.cols + c];
    double whole = whole_of(e, s, NULL);
    assert_true(left_of(e, s, NULL, 1) > 0.01 * whole);
    for (size_t rank = 2; rank <= 40; rank += 19)
        assert_true(left_of(e, s, NULL, rank) < 1e-10 * whole);
    free(e);
    free(a);
    free(b);
}

/* ---- a model ---- */

struct total {
    size_t tensors;
    struct repair_error error, weighted;
    uint64_t bytes;
};

static void add_row(void *self, const struct repair_row *row)
{
    struct total *t = self;
    t->tensors++;
    t->bytes += row->bytes;
    repair_error_add(&t->error, &row->error);
    repair_error_add(&t->weighted, &row->weighted);
    assert_true(row->error.after < row->error.before);
}

static struct total repair(struct engine *e, const char *full, size_t rank, bool f32,
                           const struct moments *m, const char *path)
{
    struct total t = {0};
    struct repair_setup s = {.base = engine_weights(e),
                             .full = full,
                             .rank = rank,
                             .f32 = f32,
                             .moments = m,
                             .compute = engine_compute(e),
                             .row = add_row,
                             .row_self = &t};
    assert_ok(repair_write(&s, path, &dg));
    return t;
}

static struct engine *open_model(const char *model, struct moments **m)
{
    struct engine *e;
    struct engine_setup s = {.model = model,
                             .isa = "auto",
                             .threads = 2,
                             .context = 256,
                             .overlap = true,
                             .decide = {.policy = cache_policy_find("lru"), .prefetch_distance = 1},
                             .loader = {.backend = LOADER_THREADS, .depth = 4}};
    if (m)
        assert_ok(moments_new(m, &s, &dg));
    assert_ok(engine_open(&e, &s, &dg));
    if (m)
        assert_ok(moments_begin(*m, engine_weights(e), &dg));
    return e;
}

/* ---- what it predicts ---- */

#define WINDOW_BYTES 257
#define WINDOWS      3 /* of the held-out texts in turn */
#define POSITIONS    (WINDOWS * (WINDOW_BYTES - 1))

/* log2 of the probability of each byte. */
struct predicted {
    double log2[POSITIONS][256];
};

static void read_window(size_t window, uint32_t tokens[WINDOW_BYTES])
{
    static const char *const names[] = {"jargon", "kjv", "tinyshakespeare"};
    char path[100];
    size_t length;
    snprintf(path, sizeof path, TINY "heldout-%s.bin", names[window % 3]);
    char *text = read_whole(path, &length);
    for (size_t i = 0; i < WINDOW_BYTES; i++)
        tokens[i] = (uint8_t)text[(12 + window / 3) * WINDOW_BYTES + i];
    free(text);
}

static void keep_position(struct predicted *p, size_t at, const float *logits)
{
    double sum = 0;
    for (size_t v = 0; v < 256; v++)
        sum += exp2((double)logits[v] / M_LN2);
    for (size_t v = 0; v < 256; v++)
        p->log2[at][v] = (double)logits[v] / M_LN2 - log2(sum);
}

static struct predicted *predict(const char *model, const char *adapter)
{
    static float logits[256 * 256];
    struct engine_rig r = {.path = model, .threads = 2, .context = 256};
    struct adapters *a = NULL;
    struct predicted *p = malloc(sizeof *p);
    assert_non_null(p);
    assert_ok(engine_rig_open(&r, &dg));
    if (adapter) {
        assert_ok(adapters_load(&a, r.weights, &adapter, 1, &dg));
        adapters_apply(a, r.weights);
    }
    for (size_t w = 0; w < WINDOWS; w++) {
        uint32_t tokens[WINDOW_BYTES];
        read_window(w, tokens);
        graph_restart(r.graph);
        assert_ok(engine_rig_prompt(&r, tokens, 256, logits, &dg));
        for (size_t i = 0; i < 256; i++)
            keep_position(p, w * 256 + i, logits + i * 256);
    }
    engine_rig_close(&r);
    adapters_free(a);
    return p;
}

/* Bits a byte that the full model's distribution costs more when coded with another's (Kullback and
 * Leibler). */
static double divergence(const struct predicted *full, const struct predicted *other)
{
    double bits = 0;
    for (size_t i = 0; i < POSITIONS; i++)
        for (size_t v = 0; v < 256; v++)
            bits += exp2(full->log2[i][v]) * (full->log2[i][v] - other->log2[i][v]);
    return bits / POSITIONS;
}

static void errors_of_a_model_fall_with_the_rank(void **state)
{
    const char *path = temp_path("repair.gguf");
    double last = 1;
    (void)state;
    NEED_SHARED();
    struct engine *e = open_model(BASE, NULL);
    for (size_t rank = 1; rank <= 8; rank *= 8) {
        struct total t = repair(e, FULL, rank, false, NULL, path);
        double after = repair_error_after(&t.error);
        assert_int_equal(t.tensors, 8 * 7 + 1);
        assert_close(repair_error_before(&t.error), 0.0844, 0.0001);
        assert_true(after < last);
        last = after;
    }
    assert_true(last < 0.078);
    engine_close(e);
}

/* Of the 64 x 256 matrix k, with rank 68 asked for: its own rank is lower, and its scale still
 * 1. */
static void at_its_full_rank_base_and_adapter_are_the_full_matrix(void **state)
{
    const char *path = temp_path("full.gguf");
    struct graph_weights *w, *full;
    struct adapters *a;
    float q[256], f[256];
    (void)state;
    NEED_SHARED();
    struct engine *e = open_model(GOLDEN "mixtral-q4_k_m.gguf", NULL);
    repair(e, GOLDEN "mixtral-f16.gguf", 68, true, NULL, path);
    engine_close(e);
    assert_ok(graph_weights_load(&w, GOLDEN "mixtral-q4_k_m.gguf", NULL, NULL, &dg));
    assert_ok(graph_weights_load(&full, GOLDEN "mixtral-f16.gguf", NULL, NULL, &dg));
    assert_ok(adapters_load(&a, w, &path, 1, &dg));
    adapters_apply(a, w);
    const struct weights *qk = &w->layers[0].k.weights, *fk = &full->layers[0].k.weights;
    const struct low_rank *l = w->layers[0].k.adapter;
    assert_int_equal(l->rank, 64);
    double apart = 0, whole = 0;
    for (size_t r = 0; r < 64; r++) {
        packed_dequantise(qk->format, q, qk->data, r, 0, 256, 256);
        packed_dequantise(fk->format, f, fk->data, r, 0, 256, 256);
        for (size_t c = 0; c < 256; c++) {
            double x = (double)q[c];
            for (size_t i = 0; i < l->rank; i++)
                x += (double)(l->scale * l->up[r * l->rank + i] * l->down[i * 256 + c]);
            apart += (x - (double)f[c]) * (x - (double)f[c]);
            whole += ((double)q[c] - (double)f[c]) * ((double)q[c] - (double)f[c]);
        }
    }
    assert_true(whole > 0 && apart < 1e-9 * whole);
    adapters_free(a);
    graph_weights_free(w);
    graph_weights_free(full);
}

/* The moments of four windows of one text. */
static void learn_moments(struct engine *e)
{
    uint32_t text[4 * 256];
    size_t length;
    char *bytes = read_whole(TINY "heldout-kjv.bin", &length);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        text[i] = (uint8_t)bytes[i];
    free(bytes);
    assert_ok(passage_run(e, text, sizeof text / sizeof *text, 256, NULL, NULL, &dg));
}

static void a_repair_brings_predictions_of_held_out_text_closer_to_the_full_models(void **state)
{
    char plain[300], weighted[300];
    struct moments *m;
    (void)state;
    NEED_SHARED();
    snprintf(plain, sizeof plain, "%s", temp_path("plain.gguf"));
    snprintf(weighted, sizeof weighted, "%s", temp_path("weighted.gguf"));
    struct engine *e = open_model(BASE, &m);
    learn_moments(e);
    struct total a = repair(e, FULL, 12, false, NULL, plain),
                 b = repair(e, FULL, 12, false, m, weighted);
    assert_true(repair_error_after(&b.weighted) < 0.8 * repair_error_before(&b.weighted));
    assert_true(repair_error_after(&a.error) < repair_error_after(&b.error));
    moments_free(m);
    engine_close(e);
    struct predicted *full = predict(FULL, NULL), *base = predict(BASE, NULL);
    struct predicted *with_plain = predict(BASE, plain), *with_weighted = predict(BASE, weighted);
    double before = divergence(full, base);
    assert_true(divergence(full, with_plain) < 0.9 * before);
    assert_true(divergence(full, with_weighted) < 0.75 * before);
    free(full);
    free(base);
    free(with_plain);
    free(with_weighted);
}

static void an_allocation_that_fails_is_said_and_leaves_no_file(void **state)
{
    const char *path = temp_path("memory.gguf");
    (void)state;
    NEED_SHARED();
    NEED_ALLOCATIONS();
    struct engine *e = open_model(GOLDEN "mixtral-q4_k_m.gguf", NULL);
    struct repair_setup s = {.base = engine_weights(e),
                             .full = GOLDEN "mixtral-f16.gguf",
                             .rank = 1,
                             .compute = engine_compute(e)};
    enum status st = ST_NO_MEMORY;
    for (size_t n = 1; st != ST_OK; n += 1 + n / 2) {
        allocations_fail_at(n);
        st = repair_write(&s, path, &dg);
        allocations_fail_at(0);
        bool said = st == ST_NO_MEMORY || strstr(dg.text, "Cannot allocate memory");
        assert_true(st == ST_OK || said);
        assert_int_equal(access(path, F_OK) == 0, st == ST_OK);
    }
    engine_close(e);
}

static void models_that_do_not_belong_together_are_refused(void **state)
{
    const char *path = temp_path("none.gguf");
    char arguments[600];
    (void)state;
    NEED_SHARED();
    snprintf(arguments, sizeof arguments,
             "engine repair " BASE " --from " SHARED "golden/mixtral-f16.gguf --out %s", path);
    expect_refusal(arguments, EXIT_FAILED, "is not of the architecture of");
    snprintf(arguments, sizeof arguments,
             "engine repair " BASE " --from " SHARED "golden/qwen3moe-f16.gguf --out %s", path);
    expect_refusal(arguments, EXIT_FAILED, "has other extents");
    snprintf(arguments, sizeof arguments, "engine repair " FULL " --from " FULL " --out %s", path);
    expect_refusal(arguments, EXIT_FAILED, "nothing to repair");
    snprintf(arguments, sizeof arguments,
             "engine repair " BASE " --from " FULL " --rank 0 --out x");
    expect_refusal(arguments, EXIT_MISUSE, "rank");
    expect_refusal("engine repair " BASE " --out x", EXIT_MISUSE, "from");
    expect_refusal("engine repair " BASE " --from " FULL, EXIT_MISUSE, "out");
}

static void the_command_tells_the_errors_of_each_tensor(void **state)
{
    char arguments[600];
    (void)state;
    NEED_SHARED();
    snprintf(arguments, sizeof arguments,
             "engine repair " BASE " --from " FULL
             " --rank 2 --format csv --out %s --weighted " TINY "heldout-kjv.bin --tokens-max 300",
             temp_path("command.gguf"));
    struct run r = run_memwall(arguments);
    assert_int_equal(r.exit_code, 0);
    assert_non_null(strstr(r.out, "tensor,experts,rows,cols,rank,adapter_bytes,error_before_ratio,"
                                  "error_after_ratio,weighted_before_ratio,weighted_after_ratio\n"
                                  "output.weight,1,256,256,2,2048,0.0"));
    assert_non_null(strstr(r.out, "\nblk.7.ffn_down_exps.weight,32,256,128,2,49152,0.0"));
    assert_non_null(strstr(r.out, "\nall,,,,,1239040,0.0"));
    assert_non_null(strstr(r.err, " tokens the first 300 are read: --tokens-max takes more\n"));
    assert_non_null(strstr(r.err, "columns are weighed by 300 tokens\n"));
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_is_the_least_that_can_be_left),
        cmocka_unit_test(a_large_matrix_takes_few_steps_and_is_still_near_the_optimum),
        cmocka_unit_test(the_error_falls_with_every_rank_to_nothing),
        cmocka_unit_test(a_matrix_of_low_rank_and_one_of_zeros_are_met_exactly),
        cmocka_unit_test(errors_of_a_model_fall_with_the_rank),
        cmocka_unit_test(at_its_full_rank_base_and_adapter_are_the_full_matrix),
        cmocka_unit_test(a_repair_brings_predictions_of_held_out_text_closer_to_the_full_models),
        cmocka_unit_test(an_allocation_that_fails_is_said_and_leaves_no_file),
        cmocka_unit_test(models_that_do_not_belong_together_are_refused),
        cmocka_unit_test(the_command_tells_the_errors_of_each_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
