/* test_install.c -- an installed program finds its catalogue from any folder, and is all that was there. */
#include "tests/support.h"

#include <sys/stat.h>

/* `make install` of the program under test into a fresh root, which is returned. The program is taken as it
 * is (-o): the test is of installing, not of building. */
static const char *installed(void)
{
    static char root[160];
    char command[1024], config[64] = "release";
    if (*root)
        return root;
    const char *program = getenv("MEMWALL");
    if (program)
        (void)sscanf(program, "build/%63[^/]/memwall", config);
    strcpy(root, temp_path("root"));
    snprintf(command, sizeof command,
             "unset MAKEFLAGS MAKELEVEL; make install CONFIG=%s DESTDIR=%s PREFIX=/usr -o "
             "build/%s/memwall",
             config, root, config);
    struct run r = run_shell(command);
    if (r.exit_code != 0)
        fail_msg("%s: exit %d: %s", command, r.exit_code, r.err);
    run_free(&r);
    return root;
}

static void expect_file(const char *path, unsigned mode)
{
    char whole[320];
    struct stat info;
    snprintf(whole, sizeof whole, "%s%s", installed(), path);
    if (stat(whole, &info) != 0)
        fail_msg("%s is not installed", path);
    assert_int_equal(info.st_mode & 0777, mode);
    assert_true(S_ISREG(info.st_mode) && info.st_size > 0);
}

static void program_and_catalogue_lie_under_the_prefix(void **state)
{
    (void)state;
    expect_file("/usr/bin/memwall", 0755);
    expect_file("/usr/share/memwall/models/desc/kimi-k3.yaml", 0644);
    expect_file("/usr/share/memwall/models/tiny/tiny-q4_0.gguf", 0644);
    expect_file("/usr/share/memwall/devices/desc/oneplus-15r.yaml", 0644);
    expect_file("/usr/share/memwall/sim/trace/presets/tiny.yaml", 0644);
    expect_file("/usr/share/memwall/sim/pipeline/profiles/generic.yaml", 0644);
    expect_file("/usr/share/memwall/sim/plan/measured.csv", 0644);
    expect_file("/usr/share/memwall/validate/data/published.csv", 0644);
}

static void no_source_and_no_object_is_installed(void **state)
{
    (void)state;
    char command[320];
    snprintf(command, sizeof command,
             "cd %s/usr/share/memwall && find . -type f ! -name '*.yaml' ! -name '*.csv' ! -path "
             "'./plots/*.gp' ! -path './models/tiny/*.gguf' ! -name README.md",
             installed());
    struct run r = run_shell(command);
    assert_int_equal(r.exit_code, 0);
    assert_string_equal(r.out, "");
    run_free(&r);
}

/* Both programs from a folder that has nothing to do with either. */
static void expect_same(const char *arguments)
{
    char command[1024];
    snprintf(command, sizeof command, "program=$(realpath $MEMWALL) && cd / && $program %s",
             arguments);
    struct run here = run_shell(command);
    snprintf(command, sizeof command, "cd / && %s/usr/bin/memwall %s", installed(), arguments);
    struct run there = run_shell(command);
    if (there.exit_code != 0 || here.exit_code != 0)
        fail_msg("%s: exit %d and %d: %s%s", arguments, here.exit_code, there.exit_code, here.err,
                 there.err);
    assert_true(there.out_bytes > 0);
    assert_string_equal(here.out, there.out);
    run_free(&here);
    run_free(&there);
}

static void the_installed_program_says_the_same_from_another_folder(void **state)
{
    (void)state;
    expect_same("model show kimi-k3");
    expect_same("model show kimi-k3 --format json");
    expect_same("model list --format csv");
    expect_same("device show oneplus-15r");
    expect_same("device list --format csv");
    expect_same("trace generate --preset tiny --model olmoe-1b-7b --tokens 3 --out -");
    expect_same("roofline qwen3-30b-a3b --device oneplus-15r --quant q4_k_m");
    expect_same("sim --model qwen3-30b-a3b --quant q4_k_m --device oneplus-15r --profile generic "
                "--cache 4GiB --tokens 2 --format csv");
    expect_same("plan qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --dram 6GiB --format csv");
}

static void a_program_reached_through_a_link_finds_its_catalogue(void **state)
{
    (void)state;
    char command[512];
    snprintf(command, sizeof command,
             "cd %s && ln -s usr/bin/memwall linked && ./linked model show kimi-k3", installed());
    struct run r = run_shell(command);
    assert_int_equal(r.exit_code, 0);
    assert_memory_equal(r.out, "Kimi-K3", 7);
    run_free(&r);
}

static void a_program_without_a_catalogue_says_where_it_looked(void **state)
{
    (void)state;
    char command[512];
    snprintf(command, sizeof command,
             "mkdir %s/alone && cp %s/usr/bin/memwall %s/alone && cd / && %s/alone/memwall model "
             "show kimi-k3",
             installed(), installed(), installed(), installed());
    struct run r = run_shell(command);
    assert_int_equal(r.exit_code, 1);
    assert_string_equal(r.out, "");
    assert_memory_equal(r.err, "memwall: ", 9);
    assert_non_null(strstr(r.err, "models/desc"));
    run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_and_catalogue_lie_under_the_prefix),
        cmocka_unit_test(no_source_and_no_object_is_installed),
        cmocka_unit_test(the_installed_program_says_the_same_from_another_folder),
        cmocka_unit_test(a_program_reached_through_a_link_finds_its_catalogue),
        cmocka_unit_test(a_program_without_a_catalogue_says_where_it_looked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
