/* loader_io.c -- the loader as its callers see it: lock, books (load_queue.c) and one of two
 * backends. */
#include "kernels/loader/loader_io.h"

#include "base/text.h"
#include "kernels/loader/loader_inside.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void loader_io_remark(struct loader_io *io, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text_list_v(io->note, sizeof io->note, "; ", format, arguments);
    va_end(arguments);
}

void loader_io_sleep_until(uint64_t when_ns)
{
    struct timespec t = {.tv_sec = (time_t)(when_ns / 1000000000u),
                         .tv_nsec = (long)(when_ns % 1000000000u)};
    if (when_ns <= load_queue_now_ns())
        return;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static enum status start_backend(struct loader_io *io, const struct loader_io_setup *s,
                                 struct diag *dg)
{
    if (s->backend == LOADER_URING) {
        io->backend = &loader_backend_uring;
        enum status status = io->backend->start(io, s, dg);
        if (status != ST_UNSUPPORTED)
            return status;
        loader_io_remark(io, "%s: threads read instead", dg->text);
    }
    io->backend = &loader_backend_threads;
    return io->backend->start(io, s, dg);
}

enum status loader_io_new(struct loader_io **out, const struct loader_io_setup *s, struct diag *dg)
{
    *out = NULL;
    if (s->depth == 0 || s->depth > LOADER_DEPTH_MAX || s->loads_max == 0)
        return diag_set(dg, ST_RANGE, "loader: expected a depth of 1 to %u and room for a load",
                        LOADER_DEPTH_MAX);
    struct loader_io *io = calloc(1, sizeof *io);
    if (!io)
        return diag_no_memory(dg);
    enum status status = load_queue_init(&io->queue, s, dg);
    if (status != ST_OK) {
        free(io);
        return status;
    }
    pthread_mutex_init(&io->lock, NULL);
    pthread_cond_init(&io->landed, NULL);
    status = start_backend(io, s, dg);
    if (status == ST_OK)
        *out = io;
    else
        loader_io_free(io);
    return status;
}

void loader_io_free(struct loader_io *io)
{
    if (!io)
        return;
    if (io->engine) {
        pthread_mutex_lock(&io->lock);
        load_queue_drop_queued(&io->queue);
        pthread_mutex_unlock(&io->lock);
        io->backend->stop(io);
    }
    load_queue_free(&io->queue);
    pthread_cond_destroy(&io->landed);
    pthread_mutex_destroy(&io->lock);
    free(io);
}

/* All files are read in the largest block of any, so that pieces of several can share a room. */
static void share_block(struct load_queue *q)
{
    uint32_t block = 0;
    for (uint32_t i = 0; i < q->file_count; i++)
        block = q->file[i].block_bytes > block ? q->file[i].block_bytes : block;
    for (uint32_t i = 0; i < q->file_count; i++)
        q->file[i].block_bytes = block;
}

enum status loader_io_add_file(struct loader_io *io, const char *path, bool direct, uint32_t *file,
                               struct diag *dg)
{
    struct load_queue *q = &io->queue;
    int why;
    if (q->file_count == LOADER_FILES_MAX)
        return diag_set(dg, ST_RANGE, "%s: expected at most %u files", path, LOADER_FILES_MAX);
    enum status status = loader_file_open(&q->file[q->file_count], q->ops, path, direct, &why, dg);
    if (status != ST_OK)
        return status;
    if (why)
        loader_io_remark(io, "%s: no direct reads here (%s): through the page cache", path,
                         strerror(why));
    *file = q->file_count++;
    share_block(q);
    io->backend->files(io);
    return ST_OK;
}

uint32_t loader_io_block_bytes(const struct loader_io *io)
{
    assert(io->queue.file_count > 0);
    return io->queue.file[0].block_bytes;
}

uint64_t loader_io_layout(const struct loader_io *io, const struct load_piece *piece,
                          uint32_t count, uint64_t *payload_offset)
{
    uint64_t place = 0;
    for (uint32_t p = 0; p < count; p++) {
        uint64_t blocks = load_queue_blocks(&io->queue, &piece[p], &payload_offset[p]);
        payload_offset[p] += place;
        place += blocks;
    }
    return place;
}

static enum status check_load(const struct loader_io *io, const struct load *load, struct diag *dg)
{
    assert(load->piece_count >= 1 && load->piece_count <= LOADER_PIECES_MAX);
    for (uint32_t p = 0; p < load->piece_count; p++) {
        const struct load_piece *piece = &load->piece[p];
        assert(piece->file < io->queue.file_count && piece->bytes > 0);
        const struct loader_file *f = &io->queue.file[piece->file];
        uint64_t end = f->identity.bytes;
        if (piece->offset_bytes > end || piece->bytes > end - piece->offset_bytes)
            return diag_set(dg, ST_RANGE,
                            "%s: expected %llu bytes at offset %llu (layer %u, expert %u), "
                            "but the file has only %llu",
                            f->path, (unsigned long long)piece->bytes,
                            (unsigned long long)piece->offset_bytes, load->layer, load->expert,
                            (unsigned long long)end);
        assert((uintptr_t)load->room % f->block_bytes == 0);
    }
    return ST_OK;
}

enum status loader_io_submit(struct loader_io *io, const struct load *load, uint32_t *ticket,
                             struct diag *dg)
{
    uint64_t payload_offset[LOADER_PIECES_MAX];
    enum status status = check_load(io, load, dg);
    if (status != ST_OK)
        return status;
    uint64_t need = loader_io_layout(io, load->piece, load->piece_count, payload_offset);
    assert(need <= load->room_bytes);
    (void)need;
    pthread_mutex_lock(&io->lock);
    *ticket = load_queue_add(&io->queue, load);
    if (!io->gathering)
        io->backend->work(io);
    pthread_mutex_unlock(&io->lock);
    return ST_OK;
}

void loader_io_gather(struct loader_io *io, bool on)
{
    pthread_mutex_lock(&io->lock);
    io->gathering = on;
    if (!on)
        io->backend->work(io);
    pthread_mutex_unlock(&io->lock);
}

bool loader_io_promote(struct loader_io *io, uint32_t ticket)
{
    pthread_mutex_lock(&io->lock);
    bool queued = load_queue_promote(&io->queue, ticket);
    pthread_mutex_unlock(&io->lock);
    return queued;
}

static bool has_landed(const struct loader_io *io, uint32_t ticket)
{
    assert(ticket < io->queue.loads_max && io->queue.entry[ticket].state != LOAD_FREE);
    return io->queue.entry[ticket].state == LOAD_LANDED;
}

bool loader_io_ready(struct loader_io *io, uint32_t ticket)
{
    pthread_mutex_lock(&io->lock);
    io->backend->work(io);
    bool landed = has_landed(io, ticket);
    pthread_mutex_unlock(&io->lock);
    return landed;
}

/* Index of the load that landed first; count if none has. */
static size_t first_landed(const struct loader_io *io, const uint32_t *tickets, size_t count)
{
    size_t first = count;
    uint64_t first_ns = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        if (!has_landed(io, tickets[i]))
            continue;
        uint64_t landed_ns = io->queue.entry[tickets[i]].report.landed_ns;
        if (first == count || landed_ns < first_ns) {
            first = i;
            first_ns = landed_ns;
        }
    }
    return first;
}

static size_t wait_locked(struct loader_io *io, const uint32_t *tickets, size_t count)
{
    io->backend->work(io);
    size_t first = first_landed(io, tickets, count);
    while (first == count) {
        io->backend->sleep(io);
        first = first_landed(io, tickets, count);
    }
    return first;
}

size_t loader_io_wait_any(struct loader_io *io, const uint32_t *tickets, size_t count)
{
    assert(count >= 1);
    pthread_mutex_lock(&io->lock);
    size_t first = wait_locked(io, tickets, count);
    pthread_mutex_unlock(&io->lock);
    return first;
}

static enum status failure_of(const struct loader_io *io, const struct load_entry *e,
                              struct diag *dg)
{
    const struct load_piece *piece = &e->load.piece[e->failed_piece];
    return diag_set(
        dg, ST_IO, "%s: offset %llu (layer %u, expert %u, %llu bytes from %llu): %s%s%s",
        io->queue.file[piece->file].path, (unsigned long long)e->failed_offset, e->load.layer,
        e->load.expert, (unsigned long long)piece->bytes, (unsigned long long)piece->offset_bytes,
        e->failure, e->error ? ": " : "", e->error ? strerror(e->error) : "");
}

enum status loader_io_wait(struct loader_io *io, uint32_t ticket, struct load_report *report,
                           struct diag *dg)
{
    pthread_mutex_lock(&io->lock);
    wait_locked(io, &ticket, 1);
    const struct load_entry *e = &io->queue.entry[ticket];
    enum status status = e->failure ? failure_of(io, e, dg) : ST_OK;
    if (report)
        *report = e->report;
    load_queue_forget(&io->queue, ticket);
    pthread_mutex_unlock(&io->lock);
    return status;
}

const char *loader_io_backend(const struct loader_io *io)
{
    return io->backend->name;
}

const char *loader_io_note(const struct loader_io *io)
{
    return io->note;
}
