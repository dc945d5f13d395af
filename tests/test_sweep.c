/* test_sweep.c -- experiments as files, and that a sweep's bytes depend on nothing but its experiment. */
#include "experiments/experiment.h"
#include "experiments/journal.h"
#include "experiments/sweep_run.h"
#include "tests/allocations.h"
#include "tests/cli_expect.h"
#include "tests/mutate.h"

#include <sys/resource.h>

/* Nine runs of the simulator, 4 tokens each. */
static const char small_grid[] = "question: q\n"
                                 "predict: p\n"
                                 "refuted_if: r\n"
                                 "method: sim\n"
                                 "model: qwen3-30b-a3b\n"
                                 "quant: q4_k_m\n"
                                 "device: oneplus-15r\n"
                                 "profile: bigmoeonedge\n"
                                 "tokens: 4\n"
                                 "sweep:\n"
                                 "  storage.0.bandwidth: [1 GB/s, 2 GB/s, 4 GB/s]\n"
                                 "  cache: [1 GiB, 2 GiB, 4 GiB]\n";

static const char *experiment(const char *name, const char *text)
{
    const char *path = temp_path(name);
    write_file(path, text);
    return path;
}

/* Shell text in which $E is the experiment and $T the folder of temporary files. */
static struct run shell(const char *text, const char *yaml)
{
    char command[4096];
    const char *path = experiment("grid.yaml", yaml);
    snprintf(command, sizeof command, "E=%s; T=%.*s; %s", path, (int)(strrchr(path, '/') - path),
             path, text);
    return run_shell(command);
}

static void expect_shell(const char *text, const char *yaml, const char *out)
{
    struct run r = shell(text, yaml);
    if (r.exit_code != 0 || strcmp(r.out, out) != 0)
        fail_msg("%s: exit %d: %s%s", text, r.exit_code, r.out, r.err);
    run_free(&r);
}

/* ---- the same bytes ---- */

static void any_number_of_jobs_gives_the_same_bytes(void **state)
{
    (void)state;
    expect_shell("$MEMWALL sweep $E --jobs 1 --out $T/a.csv && $MEMWALL sweep $E --jobs 4 --out "
                 "$T/b.csv && cmp $T/a.csv $T/b.csv && wc -l <$T/a.csv",
                 small_grid, "10\n");
}

static void shards_merge_to_the_bytes_of_the_whole_in_any_order(void **state)
{
    (void)state;
    expect_shell("$MEMWALL sweep $E --out $T/whole.csv; for n in 1 2 4; do parts=; "
                 "for k in $(seq $n); do $MEMWALL sweep $E --shard $k/$n --out $T/p$n.$k; "
                 "parts=\"$T/p$n.$k $parts\"; done; "
                 "$MEMWALL sweep --merge $T/m$n.csv $parts; cmp $T/whole.csv $T/m$n.csv && echo "
                 "$n; done",
                 small_grid, "1\n2\n4\n");
}

static void the_last_axis_changes_fastest_and_cells_are_as_written(void **state)
{
    (void)state;
    expect_shell("$MEMWALL sweep $E --format csv | cut -d, -f1,2", small_grid,
                 "storage.0.bandwidth,cache\n"
                 "1 GB/s,1 GiB\n1 GB/s,2 GiB\n1 GB/s,4 GiB\n"
                 "2 GB/s,1 GiB\n2 GB/s,2 GiB\n2 GB/s,4 GiB\n"
                 "4 GB/s,1 GiB\n4 GB/s,2 GiB\n4 GB/s,4 GiB\n");
}

static void a_row_is_what_the_command_prints(void **state)
{
    (void)state;
    expect_shell("$MEMWALL sweep $E --format csv | sed -n '1p;6p' | cut -d, -f3- | "
                 "sed 's/,note$//;s/,$//' >$T/a; $MEMWALL sim --model qwen3-30b-a3b --quant q4_k_m "
                 "--device oneplus-15r --profile bigmoeonedge --tokens 4 --cache 2GiB --set "
                 "'storage.0.bandwidth=2 GB/s' --draws 0 --format csv >$T/b; cmp $T/a $T/b",
                 small_grid, "");
    expect_shell(
        "$MEMWALL sweep $E --format csv | sed -n '2p' | cut -d, -f3- >$T/a; $MEMWALL replay "
        "--trace tests/data/demo.trace.csv --policy s3fifo --cache 1GiB --format csv | "
        "sed -n '2p' | cut -d, -f2- | sed 's/$/,/' >$T/b; cmp $T/a $T/b",
        "question: q\npredict: p\nrefuted_if: r\nmethod: replay\n"
        "trace: tests/data/demo.trace.csv\n"
        "sweep:\n  policy: [s3fifo]\n  cache: [1 GiB]\n",
        "");
}

/* Of plan and roofline the row of each point is another model and machine. */
static void models_devices_and_cases_are_axes(void **state)
{
    (void)state;
    expect_shell("$MEMWALL sweep $E --format csv | cut -d, -f1-3",
                 "question: q\npredict: p\n"
                 "refuted_if: r\nmethod: plan\nsweep:\n"
                 "  model: [qwen3-30b-a3b, gpt-oss-20b]\n"
                 "  case:\n"
                 "    - {name: phone, device: oneplus-15r, quant: q4_0}\n"
                 "    - {name: a Mac, device: mac-mini-m4-pro-24gb}\n",
                 "model,case,device\n"
                 "qwen3-30b-a3b,phone,oneplus-15r\n"
                 "qwen3-30b-a3b,a Mac,mac-mini-m4-pro-24gb\n"
                 "gpt-oss-20b,phone,oneplus-15r\n"
                 "gpt-oss-20b,a Mac,mac-mini-m4-pro-24gb\n");
}

static void what_does_not_fit_is_a_row_with_a_note(void **state)
{
    (void)state;
    struct run r = shell("$MEMWALL sweep $E --set dram=7GiB --out $T/n.csv; echo $?; cut -d, -f1,5 "
                         "$T/n.csv; sed -n 's/.*,,,,//p' $T/n.csv; $MEMWALL sweep $E --set "
                         "dram=64MiB --out $T/n.csv; echo $?",
                         "question: q\npredict: p\nrefuted_if: r\n"
                         "model: qwen3-30b-a3b\nquant: q4_k_m\ndevice: oneplus-15r\n"
                         "dense: resident\nsweep:\n  context: [4096, 100000]\n");
    assert_string_equal(r.out, "0\ncontext,unit\n4096,cpu\n100000,\n"
                               "\"qwen3-30b-a3b does not fit: it needs at least 10.9 GB of memory, "
                               "7.52 GB is given; with --dense stream what does not fit is read "
                               "again for every token (--hypothetical goes on as if it did, --tp N "
                               "shares it)\"\n1\n");
    assert_non_null(strstr(r.err, "1 of 2 points have no result, their note says why"));
    assert_non_null(strstr(r.err, "no point has a result; the first: "));
    run_free(&r);
}

/* ---- killed ---- */

/* The same grid of runs of a tenth of a second: long enough to be killed among them. */
#define LONG_RUNS " --set tokens=200"

/* Kills with SIGKILL once `rows` rows are in the journal. */
static const char kill_after[] =
    "rm -f $T/k.csv $T/k.csv.journal; $MEMWALL sweep $E" LONG_RUNS
    " --jobs 2 --out $T/k.csv 2>$T/err & p=$!; "
    "i=0; while [ $i -lt 2000 ] && [ \"$(cat $T/k.csv.journal 2>/dev/null | wc -l)\" -lt 3 ]; do "
    "sleep 0.01; i=$((i+1)); done; kill -9 $p; wait $p 2>/dev/null; ";

static void a_killed_sweep_resumes_to_identical_bytes(void **state)
{
    (void)state;
    char text[2048];
    snprintf(text, sizeof text,
             "%s [ ! -e $T/k.csv ] && echo killed; wc -l <$T/k.csv.journal >$T/kept; "
             "$MEMWALL sweep $E" LONG_RUNS " --jobs 2 --resume --out $T/k.csv; "
             "$MEMWALL sweep $E" LONG_RUNS
             " --jobs 1 --out $T/whole.csv; cmp $T/k.csv $T/whole.csv && echo "
             "same; ls $T/k.csv.journal",
             kill_after);
    struct run r = shell(text, small_grid);
    if (strcmp(r.out, "killed\nsame\n") != 0)
        fail_msg("%s%s", r.out, r.err);
    /* Two rows or more were there: none of them ran again. */
    assert_non_null(strstr(r.err, " of 9 points were there already"));
    assert_true(strtoul(strstr(r.err, "memwall: ") + 9, NULL, 10) >= 2);
    run_free(&r);
}

static void a_torn_or_changed_line_of_the_journal_is_run_again(void **state)
{
    (void)state;
    char text[2048];
    snprintf(
        text, sizeof text,
        "%s $MEMWALL sweep $E" LONG_RUNS " --jobs 1 --out $T/whole.csv; cp $T/k.csv.journal $T/j; "
        "for cut in 1 9 40; do size=$(wc -c <$T/j); head -c $((size - cut)) $T/j "
        ">$T/k.csv.journal; $MEMWALL sweep $E" LONG_RUNS " --resume --out $T/k.csv; cmp $T/k.csv "
        "$T/whole.csv && echo same; done; sed '3s/qwen3/qwen4/' $T/j >$T/k.csv.journal; "
        "$MEMWALL sweep $E" LONG_RUNS
        " --resume --out $T/k.csv; cmp $T/k.csv $T/whole.csv && echo same",
        kill_after);
    struct run r = shell(text, small_grid);
    if (!strstr(r.out, "same\nsame\nsame\nsame\n"))
        fail_msg("%s%s", r.out, r.err);
    run_free(&r);
}

static void a_journal_of_another_experiment_is_refused(void **state)
{
    (void)state;
    char text[2048];
    snprintf(text, sizeof text,
             "%s $MEMWALL sweep $E" LONG_RUNS " --out $T/k.csv; $MEMWALL sweep $E --resume "
             "--out $T/k.csv; $MEMWALL sweep $E" LONG_RUNS " --resume --shard 1/2 --out $T/k.csv",
             kill_after);
    struct run r = shell(text, small_grid);
    assert_non_null(strstr(r.err, "k.csv.journal: left by a run that did not end: --resume"));
    const char *other = strstr(r.err, "k.csv.journal:1: the journal of another sweep");
    assert_non_null(other);
    assert_non_null(strstr(other + 1, "k.csv.journal:1: the journal of another sweep"));
    run_free(&r);
}

/* ---- refusals ---- */

struct fault {
    const char *yaml, *reason;
};

static void faults_are_refused_with_file_and_line(void **state)
{
    (void)state;
#define HEAD  "question: q\npredict: p\nrefuted_if: r\n"
#define MODEL "model: qwen3-30b-a3b\ndevice: oneplus-15r\n"
    static const struct fault faults[] = {
        {"predict: p\nrefuted_if: r\nsweep: {top_k: [1]}\n", "x.yaml:1: key 'question' is missing"},
        {"question: q\nrefuted_if: r\nsweep: {top_k: [1]}\n", "x.yaml:1: key 'predict' is missing"},
        {"question: q\npredict: p\nsweep: {top_k: [1]}\n", "x.yaml:1: key 'refuted_if' is missing"},
        {HEAD MODEL, "x.yaml:1: key 'sweep' is missing"},
        {HEAD "polisy: lru\nsweep: {top_k: [1]}\n", "x.yaml:4: unknown key 'polisy'"},
        {HEAD "method: sim\npolisy: lru\nsweep: {top_k: [1]}\n",
         "x.yaml:5: unknown key 'polisy' (did you mean policy?)"},
        {HEAD "method: sum\nsweep: {top_k: [1]}\n",
         "x.yaml:4: method: one of roofline, sim, replay, plan, not 'sum'"},
        {HEAD "context: much\nsweep: {top_k: [1]}\n", "x.yaml:4: --context: "},
        {HEAD "method: sim\ntimeline: t.json\nsweep: {top_k: [1]}\n",
         "x.yaml:5: unknown key 'timeline'"},
        {HEAD "question: q\nsweep: {top_k: [1]}\n", "x.yaml:4: "},
        {HEAD MODEL "sweep:\n  top_k: []\n", "x.yaml:7: sweep.top_k: a list of values is expected"},
        {HEAD MODEL "sweep:\n  top_k: [2, 2]\n", "x.yaml:7: sweep.top_k: '2' stands there twice"},
        {HEAD MODEL "sweep:\n  top_k:\n    - 8\n    - 4\n    - 4\n    - 8\n",
         "x.yaml:10: sweep.top_k: '4' stands there twice"},
        {HEAD MODEL "sweep:\n  top_k: 4\n", "x.yaml:7: sweep.top_k: a list of values is expected"},
        {HEAD MODEL "top_k: 4\nsweep:\n  top_k: [4]\n",
         "x.yaml:8: sweep.top_k: it is set above as well"},
        {HEAD MODEL "sweep:\n  topk: [4]\n", "x.yaml:7: unknown key 'topk' (did you mean top_k?)"},
        {HEAD MODEL "sweep:\n  case:\n    - {top_k: 4}\n", "x.yaml:8: a case needs a name"},
        {HEAD MODEL "sweep:\n  case:\n    - {name: a, top_k: 4}\n    - b\n",
         "x.yaml:9: sweep.case: its items are all values, or all cases"},
        {HEAD MODEL "sweep:\n  top_k: [4]\n  case:\n    - {name: a, top_k: 4}\n",
         "x.yaml:9: sweep.top_k and sweep.case both set top_k"},
        {HEAD MODEL "figure: {kind: lines, u: a}\nsweep: {top_k: [1]}\n",
         "x.yaml:6: unknown key 'u'"},
        {HEAD MODEL "sweep:\n  storage.0.bandwith: [1 GB/s]\n", "x.yaml:7: "},
        {HEAD MODEL "sweep:\n  storage.0.bandwidth: [1 GB/s, 2 GB]\n", "x.yaml:7: "},
        {HEAD "method: sim\n" MODEL "sweep:\n  policy: [lru, lruu]\n",
         "x.yaml:8: unknown policy 'lruu'"},
        {HEAD "method: replay\ntrace: no.csv\ncache: 1GiB\nsweep:\n  policy: [lru]\n", "no.csv"},
        {HEAD "method: replay\ntrace: tests/data/demo.trace.csv\ncache: 1GiB\n"
              "sweep:\n  policy: [\"lru,arc\"]\n",
         "a point must give one row, not 2"},
        {HEAD "method: sim\n" MODEL "sweep:\n  tokens: [4, 0]\n", "x.yaml:8: --tokens must be at "},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "sweep %s", experiment("x.yaml", faults[i].yaml));
        expect_refusal(arguments, EXIT_FAILED, faults[i].reason);
    }
}

/* Compared each with each, so many values would take minutes. */
static void a_long_axis_is_read_in_seconds(void **state)
{
    (void)state;
    struct run r =
        shell("(cat $E; echo 'sweep:'; printf '  context: ['; seq -s, 100000 | tr -d '\\n'; "
              "echo ',7]') >$T/long.yaml; ulimit -t 5; $MEMWALL sweep $T/long.yaml",
              "question: q\npredict: p\nrefuted_if: r\nmethod: roofline\n"
              "model: qwen3-30b-a3b\nquant: q4_k_m\ndevice: oneplus-15r\n");
    assert_int_equal(r.exit_code, 1);
    assert_non_null(strstr(r.err, "long.yaml:9: sweep.context: '7' stands there twice"));
    run_free(&r);
}

static void misuse_is_refused(void **state)
{
    (void)state;
    char path[200];
    snprintf(path, sizeof path, "%s", experiment("grid.yaml", small_grid));
    static const struct {
        const char *tail, *reason;
    } cases[] = {
        {"--shard 0/2 --out o", "--shard: K/N with K from 1 to N, not '0/2'"},
        {"--shard 3/2 --out o", "--shard: K/N"},
        {"--shard 1/2x --out o", "--shard: K/N"},
        {"--shard 1/ --out o", "--shard: K/N"},
        {"--shard 1 --out o", "--shard: K/N"},
        {"--shard 1/99999999999999999999999 --out o", "--shard: K/N"},
        {"--shard 1/2", "--shard needs --out"},
        {"--resume", "--resume needs --out"},
        {"--out o --format json", "--out writes CSV, not json"},
        {"--set cache=1GiB", "sweeps it"},
        {"--set tokens", "KEY=VALUE is expected"},
        {"--set tokns=4", "unknown key 'tokns' (did you mean tokens?)"},
        {"--seed 4", "--set seed=N"},
        {"--merge o --jobs 2", "exclude each other"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[512];
        snprintf(arguments, sizeof arguments, "sweep %s %s", path, cases[i].tail);
        expect_refusal(arguments, EXIT_MISUSE, cases[i].reason);
    }
}

static void parts_that_are_not_the_whole_do_not_merge(void **state)
{
    (void)state;
    static const struct {
        const char *parts, *reason;
    } cases[] = {
        {"$T/1", "shard 2/3 is missing"},
        {"$T/1 $T/3", "shard 2/3 is missing"},
        {"$T/1 $T/2 $T/2", "/2:1: shard 2 again, as in "},
        {"$T/1 $T/2 $T/other", "other:1: not of the same sweep as "},
        {"$T/1 $T/2 $T/short", "short:5: another row is expected"},
        {"$T/1 $T/2 $T/long", "long:6: more rows than its shard has points"},
        {"$T/whole", "whole:1: a part of a sweep (--shard K/N) is expected"},
        {"$T/none", "none: cannot be opened"},
    };
    struct run r = shell("for k in 1 2 3; do $MEMWALL sweep $E --shard $k/3 --out $T/$k; done; "
                         "$MEMWALL sweep $E --shard 3/3 --set tokens=3 --out $T/other; "
                         "head -n 4 $T/3 >$T/short; (cat $T/3; tail -n 1 $T/3) >$T/long; "
                         "$MEMWALL sweep $E --out $T/whole; echo ${T}",
                         small_grid);
    assert_int_equal(r.exit_code, 0);
    r.out[strcspn(r.out, "\n")] = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[1024];
        snprintf(command, sizeof command, "T=%s; $MEMWALL sweep --merge $T/out %s", r.out,
                 cases[i].parts);
        expect_shell_refusal(command, EXIT_FAILED, cases[i].reason);
    }
    run_free(&r);
}

/* ---- damaged files ---- */

static enum status take_any_key(void *self, const char *method, const struct edit *e,
                                struct diag *dg)
{
    (void)self, (void)method, (void)e, (void)dg;
    return ST_OK;
}

/* Whatever is loaded has points, and every point its edits; whatever is refused names the file. */
static void a_damaged_experiment_is_read_or_refused(void **state)
{
    (void)state;
    static const char *const methods[] = {"sim", NULL};
    const struct experiment_rules rules = {methods, take_any_key, NULL};
    static const char tail[] = "  how:\n    - {name: a, policy: lru}\n    - {name: b}\n"
                               "figure: {kind: lines, x: a, y: b}\n";
    struct pcg chance;
    pcg_stream(&chance, 1, "test/experiment");
    for (int i = 0; i < 400; i++) {
        char text[2048], path[200];
        snprintf(text, sizeof text - MUTATE_ROOM, "%s%s", small_grid, tail);
        if (i)
            mutate(text, &chance);
        snprintf(path, sizeof path, "%s", experiment("m.yaml", text));
        struct experiment *e;
        struct diag dg;
        enum status st = experiment_load(&e, path, &rules, NULL, 0, &dg);
        assert_true(i > 0 || st == ST_OK);
        if (st != ST_OK) {
            assert_non_null(strstr(dg.text, "m.yaml"));
            continue;
        }
        struct edit *room = calloc(experiment_edits_max(e), sizeof *room);
        assert_true(e->points >= 1 && (i > 0 || e->points == 18));
        for (uint64_t point = 0; point < e->points && point < 100; point++)
            assert_true(experiment_edits(e, point, room) <= experiment_edits_max(e));
        free(room);
        experiment_free(e);
    }
}

static char *const one_cell[] = {(char *)"1"};

static enum status open_nothing(void **worker, const void *self, struct diag *dg)
{
    (void)self, (void)dg;
    *worker = NULL;
    return ST_OK;
}

static void close_nothing(void *worker)
{
    (void)worker;
}

static enum status answer_one(void *worker, const struct edit *edit, size_t count,
                              char *const **cell, const char **note, struct diag *dg)
{
    (void)worker, (void)edit, (void)count, (void)dg;
    *cell = one_cell;
    *note = "";
    return ST_OK;
}

/* Loads and runs it all in memory; any allocation that fails is the sweep's failure and nothing stays behind. */
static enum status load_and_run(const char *path, struct diag *dg)
{
    static const char *const methods[] = {"sim", NULL}, *const column[] = {"x"};
    const struct experiment_rules rules = {methods, take_any_key, NULL};
    const struct sweep_runner runner = {column, 1, open_nothing, close_nothing, answer_one, NULL};
    struct experiment *e;
    struct sweep_result result;
    enum status st = experiment_load(&e, path, &rules, NULL, 0, dg);
    if (st != ST_OK)
        return st;
    struct sweep_setup s = {.experiment = e, .runner = &runner, .shard = 1, .shards = 1, .jobs = 1};
    st = sweep_run(&result, &s, dg);
    if (st == ST_OK) {
        assert_int_equal(result.count, 9);
        sweep_result_free(&result);
    }
    experiment_free(e);
    return st;
}

static void a_sweep_survives_that_any_allocation_fails(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    char path[200];
    struct diag dg;
    snprintf(path, sizeof path, "%s", experiment("a.yaml", small_grid));
    assert_ok(load_and_run(path, &dg));
    size_t before = allocations_alive(), failures = 0;
    for (size_t n = 1; n < 5000; n++) {
        size_t first = allocations_count();
        allocations_fail_at(n);
        enum status st = load_and_run(path, &dg);
        allocations_fail_at(0);
        failures += st != ST_OK;
        assert_int_equal(allocations_alive(), before);
        if (allocations_count() - first < n)
            break;
    }
    assert_true(failures > 50);
}

static enum status count_row(void *self, uint64_t point, const char *cells, struct diag *dg)
{
    (void)dg;
    char wanted[32];
    snprintf(wanted, sizeof wanted, "row of %d", (int)point);
    assert_string_equal(cells, wanted);
    ++*(int *)self;
    return ST_OK;
}

/* Rows come back as they were written, from the first up to the first damaged one. */
static void a_damaged_journal_gives_back_whole_rows_only(void **state)
{
    (void)state;
    struct pcg chance;
    pcg_stream(&chance, 1, "test/journal");
    for (int i = 0; i < 300; i++) {
        char path[200], line[32];
        struct diag dg;
        struct journal *j;
        int rows = 0;
        snprintf(path, sizeof path, "%s", temp_path("journal"));
        remove(path);
        assert_ok(journal_open(&j, path, "key=1", false, count_row, &rows, &dg));
        for (int k = 0; k < 5; k++) {
            snprintf(line, sizeof line, "row of %d", k);
            assert_ok(journal_add(j, (uint64_t)k, line, &dg));
        }
        journal_close(j);
        size_t bytes;
        char *whole = read_whole(path, &bytes), text[1024];
        snprintf(text, sizeof text - MUTATE_ROOM, "%s", whole);
        free(whole);
        if (i)
            mutate(text, &chance);
        write_file(path, text);
        enum status st = journal_open(&j, path, "key=1", true, count_row, &rows, &dg);
        assert_true(st == ST_OK ? rows <= 5 : st == ST_MISFIT);
        assert_true(i > 0 || rows == 5);
        if (st == ST_OK)
            journal_finish(j);
    }
}

/* ---- how fast ---- */

/* Of the programs that this one ran, both threads together: the machine may be shared. */
static double processor_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void ten_thousand_points_of_the_roofline_take_less_than_five_seconds(void **state)
{
    (void)state;
    char *yaml = malloc(1 << 16);
    size_t n = (size_t)sprintf(yaml, HEAD "quant: q4_k_m\n" MODEL "sweep:\n  cache: [");
    for (int i = 0; i < 100; i++)
        n += (size_t)sprintf(yaml + n, "%s%d MiB", i ? ", " : "", 500 + 40 * i);
    n += (size_t)sprintf(yaml + n, "]\n  storage.0.bandwidth: [");
    for (int i = 0; i < 100; i++)
        n += (size_t)sprintf(yaml + n, "%s%d MB/s", i ? ", " : "", 1000 + 200 * i);
    sprintf(yaml + n, "]\n");
    double start = processor_s();
    struct run r = shell("$MEMWALL sweep $E --jobs 2 --out $T/r.csv && wc -l <$T/r.csv", yaml);
    double took = processor_s() - start;
    assert_string_equal(r.out, "10001\n");
    if (took > 5)
        fail_msg("it took %.1f s", took);
    run_free(&r);
    free(yaml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_jobs_gives_the_same_bytes),
        cmocka_unit_test(shards_merge_to_the_bytes_of_the_whole_in_any_order),
        cmocka_unit_test(the_last_axis_changes_fastest_and_cells_are_as_written),
        cmocka_unit_test(a_row_is_what_the_command_prints),
        cmocka_unit_test(models_devices_and_cases_are_axes),
        cmocka_unit_test(what_does_not_fit_is_a_row_with_a_note),
        cmocka_unit_test(a_killed_sweep_resumes_to_identical_bytes),
        cmocka_unit_test(a_torn_or_changed_line_of_the_journal_is_run_again),
        cmocka_unit_test(a_journal_of_another_experiment_is_refused),
        cmocka_unit_test(faults_are_refused_with_file_and_line),
        cmocka_unit_test(a_long_axis_is_read_in_seconds),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(parts_that_are_not_the_whole_do_not_merge),
        cmocka_unit_test(a_damaged_experiment_is_read_or_refused),
        cmocka_unit_test(a_sweep_survives_that_any_allocation_fails),
        cmocka_unit_test(a_damaged_journal_gives_back_whole_rows_only),
        cmocka_unit_test(ten_thousand_points_of_the_roofline_take_less_than_five_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
