/* synth.c -- see synth.h. */
#include "kernels/synth/synth.h"

#include "base/hash.h"
#include "kernels/formats/half.h"
#include "kernels/synth/synth_pool.h"
#include "kernels/synth/synth_tensors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STEP_BYTES ((size_t)1 << 20)

/* A tensor that is still to be written. */
struct task {
    const struct block_format *format;
    uint64_t rows, cols, fan_in, hash;
    enum synth_fill fill;
};

struct synth {
    const struct model *m;
    struct gguf_write *out;
    struct synth_pools *pools;
    struct task *task;
    size_t task_count, task_room;
    size_t present;
    uint64_t row;    /* of the present task */
    uint8_t *buffer; /* STEP_BYTES, or one row if that is larger */
    size_t buffer_bytes;
};

static enum status add_task(struct synth *s, const struct synth_tensor *t,
                            const struct block_format *f, struct diag *dg)
{
    if (s->task_count == s->task_room) {
        size_t room = 2 * s->task_room + 64;
        struct task *moved = reallocarray(s->task, room, sizeof *moved);
        if (!moved)
            return diag_no_memory(dg);
        s->task = moved;
        s->task_room = room;
    }
    uint64_t rows = t->extent[1] * t->extent[2];
    s->task[s->task_count++] = (struct task){.format = f,
                                             .rows = rows,
                                             .cols = t->extent[0],
                                             .fan_in = t->fan_in,
                                             .hash = hash_text(t->name),
                                             .fill = t->fill};
    size_t row_bytes = block_row_bytes(f, (size_t)t->extent[0]);
    if (row_bytes > s->buffer_bytes)
        s->buffer_bytes = row_bytes;
    if (t->fill == SYNTH_ONES)
        return ST_OK;
    return synth_pools_announce(s->pools, f, t->fan_in, rows * t->extent[0], dg);
}

static enum status plan_tensor(void *self, const struct synth_tensor *t, struct diag *dg)
{
    struct synth *s = self;
    const struct block_format *f =
        t->format->gguf_type < 0 ? NULL : block_format_find_gguf((uint32_t)t->format->gguf_type);
    if (!f)
        return diag_set(dg, ST_UNSUPPORTED, "%s: %s would be %s, of which no blocks can be made up",
                        s->m->name, t->name, t->format->label);
    if (t->extent[0] % f->block_weights)
        return diag_set(dg, ST_UNSUPPORTED,
                        "%s: %s has rows of %" PRIu64 ", no multiple of %s's block of %" PRIu32,
                        s->m->name, t->name, t->extent[0], t->format->label, f->block_weights);
    gguf_write_tensor(s->out, t->name, t->format, t->dims, t->extent);
    return add_task(s, t, f, dg);
}

enum status synth_new(struct synth **out, const struct model *m, const struct synth_options *o,
                      const char *path, struct diag *dg)
{
    *out = NULL;
    struct synth *s = calloc(1, sizeof *s);
    if (!s)
        return diag_no_memory(dg);
    s->m = m;
    s->buffer_bytes = STEP_BYTES;
    enum status st = gguf_write_new(&s->out, dg);
    if (st == ST_OK)
        st = synth_pools_new(&s->pools, o->seed, dg);
    if (st == ST_OK) {
        synth_keys(s->out, m, o->architecture, m->name, o->vocabulary);
        st = synth_tensors(m, o->architecture, plan_tensor, s, dg);
    }
    if (st == ST_OK && !(s->buffer = malloc(s->buffer_bytes)))
        st = diag_no_memory(dg);
    if (st == ST_OK)
        st = gguf_write_open(s->out, path, dg);
    if (st == ST_OK)
        *out = s;
    else
        synth_abandon(s);
    return st;
}

uint64_t synth_bytes(const struct synth *s)
{
    return gguf_write_bytes(s->out);
}

bool synth_left(const struct synth *s)
{
    return s->present < s->task_count;
}

static void fill_ones(const struct task *t, uint8_t *to)
{
    const float one = 1;
    for (size_t i = 0; i < t->cols; i++)
        t->format->quantise(to + i * t->format->block_bytes, &one);
}

enum status synth_step(struct synth *s, uint64_t *bytes, struct diag *dg)
{
    assert(synth_left(s));
    const struct task *t = &s->task[s->present];
    size_t row_bytes = block_row_bytes(t->format, (size_t)t->cols), filled = 0;
    enum status st = ST_OK;
    for (; st == ST_OK && s->row < t->rows && filled + row_bytes <= s->buffer_bytes; s->row++) {
        if (t->fill == SYNTH_ONES)
            fill_ones(t, s->buffer + filled);
        else
            st = synth_pools_row(s->pools, s->buffer + filled, t->format, t->fan_in,
                                 (size_t)t->cols, t->hash, s->row, dg);
        filled += row_bytes;
    }
    if (st == ST_OK)
        st = gguf_write_data(s->out, s->buffer, filled, dg);
    *bytes = filled;
    if (s->row == t->rows) {
        s->present++;
        s->row = 0;
    }
    return st;
}

enum status synth_commit(struct synth *s, struct diag *dg)
{
    assert(!synth_left(s));
    struct gguf_write *out = s->out;
    s->out = NULL;
    enum status st = gguf_write_commit(out, dg);
    synth_abandon(s);
    return st;
}

void synth_abandon(struct synth *s)
{
    if (!s)
        return;
    gguf_write_abandon(s->out);
    synth_pools_free(s->pools);
    free(s->task);
    free(s->buffer);
    free(s);
}
