/* sweep_merge.c -- the parts of a sharded sweep into one result; declared in sweep_run.h.
 *
 * Shard K of N has the points K, K+N, K+2N, ... and no row spans lines, so the whole is one line of
 * each part in turn. Nothing is parsed but the first line, which names the sweep a part belongs to. */
#include "experiments/sweep_run.h"

#include "base/outfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part_file {
    const char *path;
    FILE *stream;
    char *line, *header;
    size_t room, number; /* of the line, from 1 */
    struct sweep_part is;
};

/* With its newline; ST_PARSE at the end. */
static enum status next_line(struct part_file *p, struct diag *dg)
{
    ssize_t n = getline(&p->line, &p->room, p->stream);
    p->number++;
    if (n > 0 && p->line[n - 1] == '\n')
        return ST_OK;
    return diag_set(dg, ST_PARSE, "%s:%zu: another row is expected", p->path, p->number);
}

static enum status open_part(struct part_file *p, const char *path, struct diag *dg)
{
    struct diag why;
    *p = (struct part_file){.path = path, .stream = fopen(path, "r")};
    if (!p->stream)
        return diag_errno(dg, path, "cannot be opened");
    struct sweep_part *is = &p->is;
    int used = 0;
    if (next_line(p, &why) != ST_OK ||
        sscanf(p->line,
               SWEEP_PART_WORDS "key=%" SCNx64 " shard=%" SCNu64 "/%" SCNu64 " points=%" SCNu64
                                "\n%n",
               &is->key, &is->shard, &is->shards, &is->points, &used) != 4 ||
        used != (int)strlen(p->line) || is->shard < 1 || is->shard > is->shards)
        return diag_set(dg, ST_PARSE, "%s:1: a part of a sweep (--shard K/N) is expected", path);
    enum status st = next_line(p, dg);
    if (st != ST_OK)
        return st;
    p->header = strdup(p->line);
    return p->header ? ST_OK : diag_no_memory(dg);
}

/* Puts the parts in the order of their shards. */
static enum status sort_parts(struct part_file **shard, struct part_file *part, size_t count,
                              struct diag *dg)
{
    for (size_t i = 0; i < count; i++) {
        const struct sweep_part *is = &part[i].is, *first = &part[0].is;
        if (is->key != first->key || is->shards != first->shards || is->points != first->points ||
            strcmp(part[i].header, part[0].header) != 0)
            return diag_set(dg, ST_MISFIT, "%s:1: not of the same sweep as %s", part[i].path,
                            part[0].path);
        if (is->shard <= count && shard[is->shard - 1])
            return diag_set(dg, ST_MISFIT, "%s:1: shard %" PRIu64 " again, as in %s", part[i].path,
                            is->shard, shard[is->shard - 1]->path);
        if (is->shard <= count)
            shard[is->shard - 1] = &part[i];
    }
    uint64_t missing = 0;
    while (missing < count && shard[missing])
        missing++;
    if (missing < part[0].is.shards)
        return diag_set(dg, ST_MISFIT, "shard %" PRIu64 "/%" PRIu64 " is missing", missing + 1,
                        part[0].is.shards);
    return ST_OK;
}

static enum status write_rows(FILE *f, struct part_file **shard, size_t count, struct diag *dg)
{
    fputs(shard[0]->header, f);
    for (uint64_t i = 0; i < shard[0]->is.points; i++) {
        enum status st = next_line(shard[i % count], dg);
        if (st != ST_OK)
            return st;
        fputs(shard[i % count]->line, f);
    }
    for (size_t i = 0; i < count; i++)
        if (fgetc(shard[i]->stream) != EOF)
            return diag_set(dg, ST_PARSE, "%s:%zu: more rows than its shard has points",
                            shard[i]->path, shard[i]->number + 1);
    return ST_OK;
}

static enum status write_whole(const char *out, struct part_file **shard, size_t count,
                               struct diag *dg)
{
    struct outfile *file;
    enum status st = outfile_open(&file, out, dg);
    if (st != ST_OK)
        return st;
    st = write_rows(outfile_stream(file), shard, count, dg);
    if (st == ST_OK)
        return outfile_commit(file, dg);
    outfile_abandon(file);
    return st;
}

enum status sweep_merge(const char *out, const char *const *part, size_t count, struct diag *dg)
{
    struct part_file *file = calloc(count, sizeof *file);
    struct part_file **shard = calloc(count, sizeof *shard);
    enum status st = file && shard ? ST_OK : diag_no_memory(dg);
    size_t opened = 0;
    while (st == ST_OK && opened < count) {
        st = open_part(&file[opened], part[opened], dg);
        opened++;
    }
    if (st == ST_OK)
        st = sort_parts(shard, file, count, dg);
    if (st == ST_OK)
        st = write_whole(out, shard, count, dg);
    for (size_t i = 0; i < opened; i++) {
        if (file[i].stream)
            fclose(file[i].stream);
        free(file[i].line);
        free(file[i].header);
    }
    free(file);
    free(shard);
    return st;
}
