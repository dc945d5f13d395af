/* test_validate_bmoe.c -- the simulator against a phone's own records: storage from iobench.csv, compute
 * time of a token as given, everything else from the profile. */
#include "tests/support.h"

#include "base/csv.h"
#include "base/stats.h"
#include "sim/pipeline/forecast.h"
#include "sim/trace/trace.h"
#include "validate/published_setup.h"

static const struct published_folders folders = {"models/desc", "devices/desc",
                                                 "sim/pipeline/profiles", "sim/trace/presets"};

static double error_of(const struct published *p, const char *id, bool given)
{
    struct diag dg;
    struct published_run r;
    struct pipeline_result x;
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->rows[i].id, id) != 0)
            continue;
        struct published_row row = published_mask(&p->rows[i], PUBLISHED_GIVEN);
        row.io_s = (struct published_number){0}; /* the drive's curve says how long reads take */
        assert_ok(published_assemble(&r, &row, given ? PUBLISHED_GIVEN : PUBLISHED_HITS, &folders,
                                     1, &dg));
        assert_int_equal(r.setup.given_io_ns, 0);
        assert_int_equal(r.setup.given_compute_ns > 0, given);
        r.setup.tokens = 96;
        assert_ok(pipeline_run(&x, &r.setup, &dg));
        published_run_free(&r);
        return (double)forecast_rate(&x) / 1e6 / p->rows[i].value.value - 1;
    }
    fail_msg("no row %s", id);
    return 0;
}

static double size_of(double x)
{
    return x < 0 ? -x : x;
}

static void a_phones_serial_runs_come_within_16_percent_and_their_median_within_8(void **state)
{
    static const char *const ids[] = {"B1", "B2", "B3", "B4", "B5", "B8", "B9"};
    enum { COUNT = sizeof ids / sizeof *ids };
    (void)state;
    struct diag dg;
    struct published p;
    double sizes[COUNT];
    assert_ok(published_load(&p, "validate/data/published.csv", &dg));
    for (size_t i = 0; i < COUNT; i++) {
        double error = error_of(&p, ids[i], true);
        sizes[i] = size_of(error);
        print_message("%s %+.1f %%\n", ids[i], 100 * error);
        assert_true(sizes[i] <= 0.16);
    }
    assert_true(stats_median(sizes, COUNT) <= 0.08);
    published_free(&p);
}

static void its_overlapped_run_comes_within_20_percent(void **state)
{
    (void)state;
    struct diag dg;
    struct published p;
    assert_ok(published_load(&p, "validate/data/published.csv", &dg));
    double cached = error_of(&p, "B7", true), throttled = error_of(&p, "B6", true);
    print_message("B7 %+.1f %%, B6 %+.1f %% (bimodal, throttled: only reported)\n", 100 * cached,
                  100 * throttled);
    assert_true(size_of(cached) <= 0.20);
    published_free(&p);
}

/* ---- recorded routing: hits and bytes to the published digit ---- */

struct published_point {
    double hits_all, hits_decode, read_mib;
};

static enum status take_point(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct published_point *p = self;
    (void)line;
    (void)dg;
    if (csv_equal(f[0], "4000") && csv_equal(f[1], "lru") &&
        !(csv_double(f[2], &p->hits_all) && csv_double(f[3], &p->hits_decode) &&
          csv_double(f[4], &p->read_mib)))
        fail_msg("a number is expected");
    return ST_OK;
}

static void check_trace(const char *trace, const char *curve, const char *model)
{
    static const struct csv_column columns[] = {{"budget_mib", true},
                                                {"policy", true},
                                                {"hit_pct_cum", true},
                                                {"hit_pct_decode", true},
                                                {"read_mib", true}};
    struct diag dg;
    struct published_point want = {0};
    struct pipeline_result x;
    struct trace *t;
    struct model *m;
    struct device *d;
    struct engine_profile *p;
    assert_ok(csv_read(curve, columns, 5, true, take_point, NULL, &want, &dg));
    assert_ok(trace_load(&t, trace, &dg));
    assert_ok(model_load(&m, model, folders.models, NULL, 0, &dg));
    assert_ok(model_requantise(m, "q4_k_m", &dg));
    assert_ok(device_load(&d, "oneplus-15r", folders.devices, NULL, 0, &dg));
    assert_ok(profile_load(&p, "bigmoeonedge", folders.profiles, NULL, 0, &dg));
    struct pipeline_setup s = {.model = m,
                               .device = d,
                               .profile = p,
                               .trace = t,
                               .tokens = 100000,
                               .policy = cache_policy_find("lru"),
                               .scope = SCOPE_GLOBAL,
                               .evict = EVICT_AFTER,
                               .cache_bytes = (uint64_t)4000 << 20,
                               .cache_given = true,
                               .overlap = -1,
                               .state_bits = 256};
    assert_ok(pipeline_run(&x, &s, &dg));
    const struct decide_counts *c = &x.counts;
    assert_close(100.0 * (double)c->hits / (double)c->lookups, want.hits_all, 0.0005);
    assert_close(100.0 * (double)x.hits / (double)x.lookups, want.hits_decode, 0.0005);
    assert_close((double)c->demand_bytes / 1048576.0, want.read_mib, 0.05);
    profile_free(p);
    device_free(d);
    model_free(m);
    trace_free(t);
}

static void recorded_routing_gives_the_published_hits_and_bytes(void **state)
{
    (void)state;
    NEED_SHARED();
    check_trace(SHARED "bmoe/qwen.route.csv", SHARED "bmoe/qwen-curve.csv", "qwen3-30b-a3b");
    check_trace(SHARED "bmoe/gemma.route.csv", SHARED "bmoe/gemma-curve.csv", "gemma-4-26b-a4b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_phones_serial_runs_come_within_16_percent_and_their_median_within_8),
        cmocka_unit_test(its_overlapped_run_comes_within_20_percent),
        cmocka_unit_test(recorded_routing_gives_the_published_hits_and_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
