/* model_import.c -- `memwall model import`: a description from a config.json, or what a GGUF holds. */
#include "cli/commands.h"
#include "cli/model_print.h"
#include "cli/report.h"

#include "base/outfile.h"
#include "models/desc_model.h"
#include "models/model.h"

static const struct option options[] = {
    {"out", OPTION_TEXT, "F.yaml", "where the description goes", "-", NULL, 0, 0, false},
    {"context", OPTION_COUNT, "N", "tokens of context (GGUF, table)", "4096", NULL, 0, UINT32_MAX,
     false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static const struct column columns[] = {
    {"layer", CELL_COUNT, 0, false},        {"part", CELL_TEXT, 0, false},
    {"experts", CELL_COUNT, 0, false},      {"file", CELL_COUNT, 0, false},
    {"offset_bytes", CELL_COUNT, 0, false}, {"stride_bytes", CELL_COUNT, 0, false},
    {"part_bytes", CELL_COUNT, 0, false},   {"format", CELL_TEXT, 0, false},
};

static enum status print_extents(struct args *a, const struct model *m, struct diag *dg)
{
    static const char *const parts[PART_MAX] = {"gate", "up", "down"};
    struct report *r;
    enum status st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < m->layer_count; i++)
        for (int p = 0; p < PART_MAX; p++) {
            const struct expert_extent *e = &m->layers[i].extent[p];
            const struct quant_format *f = quant_find_gguf(e->type);
            if (e->bytes == 0)
                continue;
            report_count(r, i);
            report_text(r, parts[p]);
            report_count(r, m->layers[i].ffn.experts);
            report_count(r, e->file);
            report_count(r, e->offset);
            report_count(r, e->stride_bytes);
            report_count(r, e->bytes);
            report_text(r, f ? f->name : "unknown");
        }
    return report_close(r, dg);
}

static enum status write_description(const char *path, const struct model *m, struct diag *dg)
{
    struct outfile *f;
    enum status st = outfile_open(&f, path, dg);
    if (st != ST_OK)
        return st;
    st = desc_model_write(m, outfile_stream(f), dg);
    if (st == ST_OK)
        return outfile_commit(f, dg);
    outfile_abandon(f);
    return st;
}

static enum status run(struct args *a, struct diag *dg)
{
    struct model *m;
    enum status st = model_load(&m, args_positional(a, 0), NULL, NULL, 0, dg);
    if (st != ST_OK)
        return st;
    bool table = args_count(a, "format") == 0;
    if (!m->bytes_exact || args_given(a, "out")) {
        st = write_description(args_text(a, "out"), m, dg);
    } else if (table) {
        model_print(m, args_count(a, "context"));
        st = flush_stdout(dg);
    } else {
        st = print_extents(a, m, dg);
    }
    model_free(m);
    return st;
}

const struct command command_model_import = {
    .name = "model import",
    .summary = "a description from a config.json; layers, formats and extents of a GGUF file",
    .usage = "FILE [--out F.yaml]",
    .example = "memwall model import tests/data/tiny/config.json",
    .options = options,
    .no_set = true,
    .positional_min = 1,
    .positional_max = 1,
    .run = run,
};
