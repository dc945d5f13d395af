/* test_device.c -- the device format and the catalogue. */
#include "tests/support.h"

#include "base/arena.h"
#include "devices/device.h"

#define CATALOGUE "devices/desc"

static void every_catalogue_file_loads(void **state)
{
    (void)state;
    struct diag dg;
    struct arena arena = {0};
    const char *const *names;
    size_t count;
    assert_ok(device_names(&arena, CATALOGUE, &names, &count, &dg));
    assert_true(count >= 35);
    for (size_t i = 0; i < count; i++) {
        struct device *d;
        assert_ok(device_load(&d, names[i], CATALOGUE, NULL, 0, &dg));
        assert_string_equal(d->name, names[i]);
        device_free(d);
    }
    arena_free(&arena);
}
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_catalogue_file_loads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
