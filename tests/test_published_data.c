/* test_published_data.c -- the rows of public runs name models, machines and profiles that exist, and are
 * classed by what they give away. */
#include "tests/support.h"

#include "base/csv.h"
#include "devices/device.h"
#include "models/model.h"
#include "sim/pipeline/profile.h"
#include "sim/policy/prefetch_policy.h"

#define PUBLISHED "validate/data/published.csv"
#define SYSTEMS   "validate/data/systems.csv"

enum {
    ID,
    MODEL,
    DEVICE,
    PROFILE,
    PREFETCH,
    CLASS,
    RULE,
    METRIC,
    VALUE,
    GRADE,
    HIT,
    BYTES,
    COMPUTE,
    IO,
    COLUMNS
};
static const struct csv_column columns[COLUMNS] = {{"id", true},
                                                   {"model_slug", true},
                                                   {"device_slug", true},
                                                   {"profile", true},
                                                   {"prefetch", true},
                                                   {"class", true},
                                                   {"rule", true},
                                                   {"metric", true},
                                                   {"value", true},
                                                   {"grade", true},
                                                   {"hit_ratio", true},
                                                   {"bytes_per_token", true},
                                                   {"compute_s_per_token", true},
                                                   {"io_s_per_token", true}};

struct seen {
    size_t rows, runnable_A;
    char id[300][8];
};

static const char *text_of(char *buffer, size_t room, struct csv_field f)
{
    snprintf(buffer, room, "%.*s", (int)f.length, f.text);
    return buffer;
}

static void check_names(const struct csv_field *f, const char *id)
{
    struct diag dg = {0};
    char name[80];
    struct model *m = NULL;
    struct device *d = NULL;
    struct engine_profile *p = NULL;
    if (f[0].length > 0 &&
        model_load(&m, text_of(name, sizeof name, f[0]), "models/desc", NULL, 0, &dg) != ST_OK)
        fail_msg("%s: %s", id, dg.text);
    if (f[1].length > 0 &&
        device_load(&d, text_of(name, sizeof name, f[1]), "devices/desc", NULL, 0, &dg) != ST_OK)
        fail_msg("%s: %s", id, dg.text);
    if (f[2].length > 0 && profile_load(&p, text_of(name, sizeof name, f[2]),
                                        "sim/pipeline/profiles", NULL, 0, &dg) != ST_OK)
        fail_msg("%s: %s", id, dg.text);
    model_free(m);
    device_free(d);
    profile_free(p);
}

static void check_class(const struct csv_field *f, const char *id)
{
    bool time_given = f[COMPUTE].length > 0 && f[IO].length > 0;
    bool hits_given = f[HIT].length > 0 || f[BYTES].length > 0;
    if (csv_equal(f[CLASS], "given")  ? !time_given
        : csv_equal(f[CLASS], "hits") ? !hits_given
                                      : !csv_equal(f[CLASS], "blind"))
        fail_msg("%s: is not what its class says", id);
}

static enum status published_row(void *self, size_t line, const struct csv_field *f,
                                 struct diag *dg)
{
    (void)line, (void)dg;
    struct seen *s = self;
    char name[40];
    double value;
    assert_true(s->rows < 300 && f[ID].length > 0 && f[ID].length < 8);
    const char *id = text_of(s->id[s->rows], sizeof s->id[0], f[ID]);
    for (size_t i = 0; i < s->rows; i++)
        assert_string_not_equal(s->id[i], id);
    s->rows++;
    check_names(&f[MODEL], id);
    check_class(f, id);
    assert_true(csv_double(f[VALUE], &value) && value >= 0);
    if (!csv_equal(f[PREFETCH], "none"))
        assert_non_null(prefetch_policy_find(text_of(name, sizeof name, f[PREFETCH])));
    s->runnable_A += csv_equal(f[METRIC], "decode_rate") && csv_equal(f[GRADE], "A") &&
                     csv_equal(f[RULE], "des") && f[MODEL].length > 0 && f[DEVICE].length > 0;
    return ST_OK;
}

static void every_published_row_names_what_exists_and_is_classed_by_what_it_gives(void **state)
{
    (void)state;
    struct diag dg = {0};
    struct seen s = {0};
    assert_ok(csv_read(PUBLISHED, columns, COLUMNS, true, published_row, NULL, &s, &dg));
    assert_int_equal(s.rows, 280);
    assert_true(s.runnable_A >= 24);
}

static enum status system_row(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    (void)line, (void)dg;
    size_t *rows = self;
    char id[8];
    double lo, hi;
    ++*rows;
    check_names(&f[1], text_of(id, sizeof id, f[0]));
    assert_true(csv_double(f[4], &lo) && csv_double(f[5], &hi) && lo <= hi);
    return ST_OK;
}

static void every_system_row_has_a_range_and_names_what_exists(void **state)
{
    (void)state;
    static const struct csv_column wanted[] = {{"id", true},          {"model_slug", true},
                                               {"device_slug", true}, {"profile", true},
                                               {"lo", true},          {"hi", true}};
    struct diag dg = {0};
    size_t rows = 0;
    assert_ok(csv_read(SYSTEMS, wanted, 6, true, system_row, NULL, &rows, &dg));
    assert_int_equal(rows, 45);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_published_row_names_what_exists_and_is_classed_by_what_it_gives),
        cmocka_unit_test(every_system_row_has_a_range_and_names_what_exists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
