/* test_pack.c -- packs of experts: the same weights in another place, for one model only, and never a wrong byte. */
#include "tests/synth_file.h"

#include "base/hash.h"
#include "base/pcg.h"
#include "kernels/formats/packed.h"
#include "kernels/pack/pack_write.h"
#include "tests/allocations.h"
#include "tests/cli_expect.h"
#include "tests/gguf_writer.h"

#include <math.h>
#include <unistd.h>

static struct diag dg;

static enum status try_pack(const struct opened *o, const char *path, size_t threads)
{
    struct pack_order order;
    struct pack_write *w;
    enum status st = pack_order_plain(&order, o->m, &dg);
    if (st == ST_OK)
        st = pack_write_new(&w, path, o->g, o->m, &order, threads, &dg);
    if (st == ST_OK) {
        uint64_t bytes;
        while (st == ST_OK && pack_write_left(w))
            st = pack_write_step(w, &bytes, &dg);
        if (st == ST_OK)
            st = pack_write_commit(w, &dg);
        else
            pack_write_abandon(w);
    }
    pack_order_free(&order);
    return st;
}

/* A pack of `o`, written and opened. */
static struct pack *packed(const struct opened *o, const char *name)
{
    struct pack *p;
    const char *path = temp_path(name);
    assert_ok(try_pack(o, path, 2));
    assert_ok(pack_open(&p, path, o->g, o->m, &dg));
    return p;
}

static enum status compare_all(const struct pack *p, const struct opened *o)
{
    struct pack_compare *c;
    enum status st = pack_compare_new(&c, p, o->g, o->m, 2, &dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < o->m->layer_count; i++)
        for (size_t e = 0; st == ST_OK && pack_layout(p, i) && e < o->m->layers[i].ffn.experts; e++)
            st = pack_compare_step(c, i, e, &dg);
    pack_compare_free(c);
    return st;
}

/* The columns of one matrix of an expert, from both files. */
static void expect_matrix(const struct opened *o, const struct pack *p, const char *gguf,
                          const char *pack, size_t layer, size_t expert, enum expert_part part)
{
    const struct pack_part *m = &pack_layout(p, layer)->matrix[part];
    const struct expert_extent *e = &o->m->layers[layer].extent[part];
    const char *record = pack + pack_record(p, layer, expert).offset_bytes;
    const char *blocks = gguf + e->offset + expert * e->stride_bytes;
    float *a = malloc(m->cols * sizeof *a), *b = malloc(m->cols * sizeof *b);
    assert_true(a && b);
    for (size_t row = 0; row < m->rows; row += 37) {
        block_dequantise(m->format, a, blocks + row * block_row_bytes(m->format, m->cols), m->cols);
        packed_dequantise(m->format, b, record + m->offset_bytes, row, 0, m->cols, m->cols);
        assert_memory_equal(a, b, m->cols * sizeof *a);
    }
    free(a);
    free(b);
}

static void expect_record(const struct opened *o, const struct pack *p, const char *gguf,
                          const char *pack, size_t layer, size_t expert)
{
    const struct pack_layout *l = pack_layout(p, layer);
    struct pack_record r = pack_record(p, layer, expert);
    uint64_t end = 0;
    assert_int_equal(r.offset_bytes % PACK_ALIGN, 0);
    assert_int_equal(r.bytes, l->record_bytes);
    assert_int_equal(r.bytes % PACK_ALIGN, 0);
    assert_ok(pack_check(p, layer, expert, pack + r.offset_bytes, &dg));
    for (int part = 0; part < PART_MAX; part++) {
        assert_int_equal(l->matrix[part].offset_bytes % PACK_PART_ALIGN, 0);
        assert_true(l->matrix[part].offset_bytes >= end);
        end = l->matrix[part].offset_bytes + l->matrix[part].bytes;
        expect_matrix(o, p, gguf, pack, layer, expert, (enum expert_part)part);
    }
    for (int part = 0; part < PART_MAX; part++) {
        static const char *const names[] = {"gate", "up", "down"};
        char name[64];
        snprintf(name, sizeof name, "blk.%zu.ffn_%s_exps.bias", layer, names[part]);
        const struct gguf_tensor *t = gguf_tensor_find(o->g, name);
        const struct pack_part *b = &l->bias[part];
        assert_int_equal(b->bytes, t ? t->extent[0] * sizeof(float) : 0);
        assert_true(!t || b->offset_bytes >= end);
        if (t)
            assert_memory_equal(pack + r.offset_bytes + b->offset_bytes,
                                gguf + t->offset + expert * b->bytes, b->bytes);
        end = t ? b->offset_bytes + b->bytes : end;
    }
    assert_int_equal(end, l->payload_bytes);
}

static void each_record_holds_the_experts_weights_in_the_packed_layout(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"qwen3moe", "q4_0"},  {"gpt-oss", "mxfp4_moe"},
                                           {"llama", "q4_k_m"},   {"qwen2moe", "q3_k_m"},
                                           {"deepseek2", "q6_k"}, {"olmoe", "f16"},
                                           {"qwen3moe", "q8_0"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = small_synth("records.gguf", cases[i][0], cases[i][1], 1);
        struct opened o = open_gguf(path);
        struct pack *p = packed(&o, "records.mwpack");
        size_t bytes;
        char *gguf = read_whole(path, NULL), *pack = read_whole(pack_path(p), &bytes);
        assert_int_equal(bytes, pack_file_bytes(p));
        for (size_t l = 0; l < o.m->layer_count; l++)
            for (size_t e = 0; e < 4; e++)
                expect_record(&o, p, gguf, pack, l, e);
        assert_ok(compare_all(p, &o));
        pack_close(p);
        close_gguf(&o);
        free(gguf);
        free(pack);
    }
}

static void a_dense_layer_has_no_records(void **state)
{
    (void)state;
    struct model *m;
    struct synth_figures small = small_figures;
    assert_ok(model_load(&m, "kimi-k2", "models/desc", NULL, 0, &dg));
    assert_ok(synth_model_change(m, &small, &dg));
    const char *path = temp_path("dense.gguf");
    write_synth(m, NULL, "q4_0", 1, path);
    model_free(m);
    struct opened o = open_gguf(path);
    struct pack *p = packed(&o, "dense.mwpack");
    assert_null(pack_layout(p, 0));
    assert_non_null(pack_layout(p, 1));
    assert_int_equal(pack_record(p, 1, 0).offset_bytes, PACK_HEADER_SIZE);
    assert_ok(compare_all(p, &o));
    pack_close(p);
    close_gguf(&o);
}

/* Gate and up in one tensor: taken apart, the first half of its rows is the gate. */
/* The model of writer_qwen3moe with gate and up in one tensor. */
static void start_fused(struct gguf_writer *w)
{
    writer_start(w);
    writer_qwen3moe(w, 1);
    for (size_t i = 0; i < w->tensors_used; i++)
        if (strstr(w->tensors[i].name, "ffn_gate_exps"))
            w->tensors[i] = w->tensors[--w->tensors_used];
    for (size_t i = 0; i < w->tensors_used; i++)
        if (strstr(w->tensors[i].name, "ffn_up_exps"))
            w->tensors[i] = w->tensors[--w->tensors_used];
    w->tensor_count = w->tensors_used;
    writer_tensor(w, "blk.0.ffn_gate_up_exps.weight", 8, 32, 64, 4);
}

static void a_tensor_of_gate_and_up_is_taken_apart(void **state)
{
    (void)state;
    struct gguf_writer w;
    struct pcg random;
    const char *path = temp_path("fused.gguf");
    start_fused(&w);
    size_t bytes;
    unsigned char *file = writer_build(&w, &bytes);
    pcg_stream(&random, 1, "fused");
    for (size_t i = bytes - (size_t)w.data_bytes; i < bytes; i++)
        file[i] = (unsigned char)pcg_u32(&random);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(file, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    struct opened o = open_gguf(path);
    struct pack *p = packed(&o, "fused.mwpack");
    const struct pack_layout *l = pack_layout(p, 0);
    assert_int_equal(l->matrix[PART_GATE].rows, 32);
    char *pack = read_whole(pack_path(p), NULL);
    for (int part = 0; part < PART_MAX; part++)
        expect_matrix(&o, p, (const char *)file, pack, 0, 3, (enum expert_part)part);
    assert_ok(compare_all(p, &o));
    free(pack);
    free(file);
    pack_close(p);
    close_gguf(&o);
    writer_end(&w);
}

static void biases_of_gate_and_up_in_one_tensor_are_refused(void **state)
{
    (void)state;
    struct gguf_writer w;
    const char *path = temp_path("fused-bias.gguf");
    start_fused(&w);
    writer_tensor(&w, "blk.0.ffn_gate_up_exps.bias", 0, 64, 4, 0);
    size_t bytes;
    unsigned char *file = writer_build(&w, &bytes);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(file, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    struct opened o = open_gguf(path);
    assert_int_equal(try_pack(&o, temp_path("fused-bias.mwpack"), 1), ST_UNSUPPORTED);
    assert_non_null(strstr(dg.text, "layer 0 has the biases of gate and up in one tensor"));
    free(file);
    close_gguf(&o);
    writer_end(&w);
}

static void write_bytes(const char *path, const char *bytes, size_t count)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
}

static void expect_refused(const struct opened *o, const char *path, enum status status,
                           const char *reason)
{
    struct pack *p = NULL;
    dg.text[0] = 0;
    enum status st = pack_open(&p, path, o->g, o->m, &dg);
    if (st == ST_OK)
        pack_close(p);
    if (st != status || !strstr(dg.text, reason) || !strstr(dg.text, path))
        fail_msg("expected '%s', got status %d: %s", reason, st, dg.text);
}

static void a_pack_cut_short_anywhere_is_refused(void **state)
{
    (void)state;
    struct opened o = open_gguf(small_synth("cut.gguf", "qwen3moe", "q4_0", 1));
    struct pack *p = packed(&o, "whole.mwpack");
    size_t bytes;
    char *file = read_whole(pack_path(p), &bytes);
    const char *path = temp_path("cut.mwpack");
    static const size_t lengths[] = {0, 7, 8, 100, 4095, 4096, 5000, 1000000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        write_bytes(path, file, lengths[i]);
        expect_refused(&o, path, ST_PARSE, lengths[i] < 8 ? "was expected" : "cut short");
    }
    for (size_t left = 1; left < 2000; left += 97) {
        write_bytes(path, file, bytes - left);
        expect_refused(&o, path, ST_PARSE, "cut short");
    }
    free(file);
    pack_close(p);
    close_gguf(&o);
}

/* Every byte of the table, and of the header those that mean something and some that do not. */
static void any_altered_byte_of_header_and_table_is_refused(void **state)
{
    (void)state;
    struct opened o = open_gguf(small_synth("altered.gguf", "gpt-oss", "mxfp4_moe", 1));
    struct pack *p = packed(&o, "sound.mwpack");
    size_t bytes, table = PACK_HEADER_SIZE + 20 * (size_t)pack_record_bytes_max(p);
    char *file = read_whole(pack_path(p), &bytes);
    const char *path = temp_path("altered.mwpack");
    write_bytes(path, file, bytes);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    for (size_t i = 0; i < bytes; i = i + 1 == 300                ? 4080
                                      : i + 1 == PACK_HEADER_SIZE ? table
                                                                  : i + 1) {
        struct pack *opened = NULL;
        fseek(f, (long)i, SEEK_SET);
        fputc(file[i] ^ 0x20, f);
        fflush(f);
        enum status st = pack_open(&opened, path, o.g, o.m, &dg);
        if (st == ST_OK)
            fail_msg("byte %zu may be altered", i);
        assert_non_null(strstr(dg.text, path));
        fseek(f, (long)i, SEEK_SET);
        fputc(file[i], f);
    }
    fclose(f);
    free(file);
    pack_close(p);
    close_gguf(&o);
}

static void an_altered_record_does_not_match_its_checksum(void **state)
{
    (void)state;
    struct opened o = open_gguf(small_synth("record.gguf", "gpt-oss", "q4_k_m", 1));
    struct pack *p = packed(&o, "record.mwpack");
    const struct pack_layout *l = pack_layout(p, 3);
    struct pack_record r = pack_record(p, 3, 2);
    FILE *f = fopen(pack_path(p), "r+b");
    assert_non_null(f);
    char *file = read_whole(pack_path(p), NULL);
    for (uint64_t i = 0; i < r.bytes; i += i < l->payload_bytes - 1000 ? 4999 : 101) {
        char *record = file + r.offset_bytes;
        record[i] ^= 1;
        enum status st = pack_check(p, 3, 2, record, &dg);
        assert_int_equal(st, i < l->payload_bytes ? ST_PARSE : ST_OK);
        if (st != ST_OK)
            assert_non_null(strstr(dg.text, "layer 3, expert 2, does not match its checksum"));
        record[i] ^= 1;
    }
    fseek(f, (long)(r.offset_bytes + r.bytes - 1), SEEK_SET);
    fputc(1, f); /* in the fill, which no checksum covers */
    fclose(f);
    assert_int_equal(compare_all(p, &o), l->payload_bytes == r.bytes ? ST_PARSE : ST_MISFIT);
    free(file);
    pack_close(p);
    close_gguf(&o);
}

static void a_pack_of_another_model_is_refused(void **state)
{
    (void)state;
    struct opened o = open_gguf(small_synth("ours.gguf", "qwen3moe", "q4_0", 1));
    struct opened other_training = open_gguf(small_synth("theirs.gguf", "qwen3moe", "q4_0", 2));
    struct opened other_format = open_gguf(small_synth("format.gguf", "qwen3moe", "q8_0", 1));
    struct pack *p = packed(&o, "ours.mwpack");
    expect_refused(&other_training, pack_path(p), ST_MISFIT, "was made from another 'ours.gguf'");
    expect_refused(&other_format, pack_path(p), ST_MISFIT, "was made from the model 'ours.gguf'");
    expect_refused(&o, gguf_file_path(o.g, 0), ST_PARSE, "a pack of experts was expected");
    pack_close(p);
    close_gguf(&o);
    close_gguf(&other_training);
    close_gguf(&other_format);
}

static void a_renamed_model_keeps_its_pack(void **state)
{
    (void)state;
    const char *path = small_synth("before.gguf", "qwen3moe", "q4_0", 1), *after;
    struct opened o = open_gguf(path);
    struct pack *p = packed(&o, "renamed.mwpack"), *again;
    close_gguf(&o);
    after = temp_path("after.gguf");
    assert_int_equal(rename(path, after), 0);
    o = open_gguf(after);
    assert_ok(pack_open(&again, temp_path("renamed.mwpack"), o.g, o.m, &dg));
    pack_close(again);
    pack_close(p);
    close_gguf(&o);
}

static void a_model_without_experts_or_kernels_has_no_pack(void **state)
{
    (void)state;
    struct gguf_writer w;
    writer_start(&w);
    writer_qwen3moe(&w, 1);
    for (size_t i = 0; i < w.tensors_used; i++)
        if (strstr(w.tensors[i].name, "_exps")) {
            w.tensors[i].type = 24; /* I8 */
            w.tensors[i].extent[0] = 32;
        }
    const char *path = temp_path("i8.gguf");
    writer_save(&w, path);
    writer_end(&w);
    struct opened o = open_gguf(path);
    assert_int_equal(try_pack(&o, temp_path("i8.mwpack"), 1), ST_UNSUPPORTED);
    assert_non_null(strstr(dg.text, "layer 0 has experts in I8"));
    assert_int_equal(access(temp_path("i8.mwpack"), F_OK), -1);
    close_gguf(&o);
}

static void a_pack_is_the_same_for_any_number_of_threads(void **state)
{
    (void)state;
    struct opened o = open_gguf(small_synth("threads.gguf", "llama", "q4_k_m", 1));
    size_t bytes[3];
    char *file[3];
    for (size_t i = 0; i < 3; i++) {
        const char *path = temp_path("threads.mwpack");
        assert_ok(try_pack(&o, path, 1 + 2 * i));
        file[i] = read_whole(path, &bytes[i]);
        assert_int_equal(bytes[i], bytes[0]);
        assert_memory_equal(file[i], file[0], bytes[0]);
    }
    for (size_t i = 0; i < 3; i++)
        free(file[i]);
    close_gguf(&o);
}

static void records_lie_in_the_order_of_the_file(void **state)
{
    (void)state;
    struct opened o = open_gguf(small_synth("listed.gguf", "qwen3moe", "q4_0", 1));
    const char *csv = temp_path("order.csv"), *out = temp_path("listed.mwpack");
    char arguments[ARGUMENTS_MAX], rows[1000] = "layer,expert\n";
    for (size_t i = 0; i < 20; i++)
        snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "%zu,%zu\n", i % 5, 3 - i / 5);
    write_file(csv, rows);
    snprintf(arguments, sizeof arguments, "engine pack %s --out %s --order %s",
             gguf_file_path(o.g, 0), out, csv);
    expect_holds(arguments, 0, NULL, "20 experts");
    struct pack *p;
    assert_ok(pack_open(&p, out, o.g, o.m, &dg));
    for (size_t i = 1; i < 20; i++)
        assert_true(pack_record(p, i % 5, 3 - i / 5).offset_bytes >
                    pack_record(p, (i - 1) % 5, 3 - (i - 1) / 5).offset_bytes);
    assert_ok(compare_all(p, &o));
    pack_close(p);
    close_gguf(&o);
}

static void the_command_packs_and_verifies(void **state)
{
    (void)state;
    char arguments[ARGUMENTS_MAX];
    const char *path = small_synth("command.gguf", "gpt-oss", "mxfp4_moe", 1);
    const char *out = temp_path("command.mwpack");
    snprintf(arguments, sizeof arguments, "engine pack %s --out %s", path, out);
    expect_holds(arguments, 0, NULL, "command.mwpack: 20 experts, 2.22 MB");
    snprintf(arguments, sizeof arguments, "engine pack %s --verify %s", path, out);
    expect_holds(arguments, 0, NULL, "20 experts as in the GGUF");
    FILE *f = fopen(out, "r+b");
    assert_non_null(f);
    fseek(f, 5000, SEEK_SET);
    int byte = fgetc(f);
    fseek(f, 5000, SEEK_SET);
    fputc(byte ^ 1, f);
    fclose(f);
    expect_refusal(arguments, EXIT_FAILED, "layer 0, expert 0, does not match its checksum");
    snprintf(arguments, sizeof arguments, "engine pack %s", path);
    expect_refusal(arguments, EXIT_MISUSE, "either --out or --verify is needed");
    snprintf(arguments, sizeof arguments, "engine pack %s --verify %s --order x", path, out);
    expect_refusal(arguments, EXIT_MISUSE, "--order and --coactivation are for --out");
    snprintf(arguments, sizeof arguments, "engine pack %s --out %s --order x --coactivation y",
             path, out);
    expect_refusal(arguments, EXIT_MISUSE, "exclude each other");
}

static enum status pack_and_compare(const struct opened *o, const char *path)
{
    struct pack *p;
    enum status st = try_pack(o, path, 2);
    if (st == ST_OK)
        st = pack_open(&p, path, o->g, o->m, &dg);
    if (st != ST_OK)
        return st;
    st = compare_all(p, o);
    pack_close(p);
    return st;
}

static void any_allocation_that_fails_is_reported(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    struct opened o = open_gguf(small_synth("scarce.gguf", "qwen3moe", "q4_0", 1));
    size_t n = 1;
    for (enum status st = ST_NO_MEMORY; st != ST_OK; n++) {
        const char *path = temp_path("scarce.mwpack");
        allocations_fail_at(n);
        st = pack_and_compare(&o, path);
        allocations_fail_at(0);
        assert_true(st == ST_OK || st == ST_NO_MEMORY || st == ST_IO);
        assert_true(n < 500);
    }
    assert_true(n > 10);
    close_gguf(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_record_holds_the_experts_weights_in_the_packed_layout),
        cmocka_unit_test(a_dense_layer_has_no_records),
        cmocka_unit_test(a_tensor_of_gate_and_up_is_taken_apart),
        cmocka_unit_test(biases_of_gate_and_up_in_one_tensor_are_refused),
        cmocka_unit_test(a_pack_cut_short_anywhere_is_refused),
        cmocka_unit_test(any_altered_byte_of_header_and_table_is_refused),
        cmocka_unit_test(an_altered_record_does_not_match_its_checksum),
        cmocka_unit_test(a_pack_of_another_model_is_refused),
        cmocka_unit_test(a_renamed_model_keeps_its_pack),
        cmocka_unit_test(a_model_without_experts_or_kernels_has_no_pack),
        cmocka_unit_test(a_pack_is_the_same_for_any_number_of_threads),
        cmocka_unit_test(records_lie_in_the_order_of_the_file),
        cmocka_unit_test(the_command_packs_and_verifies),
        cmocka_unit_test(any_allocation_that_fails_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
