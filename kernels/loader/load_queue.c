/* load_queue.c -- the loader's books: what is queued, what is in flight, what went wrong. No
 * system call but looking at the clock and, when a load has landed, at its files. */
#include "kernels/loader/load_queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define TIMER_LATE_NS_MAX 250000u /* of a sleeping thread, usually */

uint64_t load_queue_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

enum status load_queue_init(struct load_queue *q, const struct loader_io_setup *s, struct diag *dg)
{
    *q = (struct load_queue){
        .ops = s->ops ? s->ops : &loader_ops_system,
        .entry = calloc(s->loads_max, sizeof *q->entry),
        .flight = calloc(s->depth, sizeof *q->flight),
        .loads_max = s->loads_max,
        .depth = s->depth,
        .queued = {{LOAD_NONE, LOAD_NONE}, {LOAD_NONE, LOAD_NONE}},
        .limit_rate_Bps = s->limit_rate_Bps,
        .add_latency_ns = s->add_latency_ns,
    };
    if (!q->entry || !q->flight) {
        load_queue_free(q);
        return diag_no_memory(dg);
    }
    for (uint32_t i = 0; i < q->loads_max; i++)
        q->entry[i].next = i + 1 < q->loads_max ? i + 1 : LOAD_NONE;
    for (uint32_t i = 0; i < q->depth; i++)
        q->flight[i].next = i + 1 < q->depth ? i + 1 : LOAD_NONE;
    return ST_OK;
}

void load_queue_free(struct load_queue *q)
{
    while (q->file_count > 0)
        loader_file_close(&q->file[--q->file_count]);
    free(q->entry);
    free(q->flight);
    q->entry = NULL;
    q->flight = NULL;
}

static void append(struct load_queue *q, enum load_class class_of, uint32_t load)
{
    struct load_fifo *f = &q->queued[class_of];
    q->entry[load].next = LOAD_NONE;
    if (f->first == LOAD_NONE)
        f->first = load;
    else
        q->entry[f->last].next = load;
    f->last = load;
}

/* Takes the load out of the queue it is in. */
static void remove_queued(struct load_queue *q, uint32_t load)
{
    struct load_fifo *f = &q->queued[q->entry[load].load.class_of];
    uint32_t before = LOAD_NONE, at = f->first;
    while (at != load) {
        before = at;
        at = q->entry[at].next;
    }
    if (before == LOAD_NONE)
        f->first = q->entry[load].next;
    else
        q->entry[before].next = q->entry[load].next;
    if (f->last == load)
        f->last = before;
}

uint32_t load_queue_add(struct load_queue *q, const struct load *load)
{
    uint32_t i = q->free_entry;
    assert(i != LOAD_NONE);
    q->free_entry = q->entry[i].next;
    q->entry[i] = (struct load_entry){.load = *load, .state = LOAD_QUEUED};
    for (uint32_t p = 0; p < load->piece_count; p++)
        q->entry[i].report.payload_bytes += load->piece[p].bytes;
    q->entry[i].report.submitted_ns = load_queue_now_ns();
    append(q, load->class_of, i);
    return i;
}

bool load_queue_promote(struct load_queue *q, uint32_t load)
{
    struct load_entry *e = &q->entry[load];
    if (e->state != LOAD_QUEUED || e->load.class_of == LOAD_DEMAND)
        return false;
    remove_queued(q, load);
    e->load.class_of = LOAD_DEMAND;
    append(q, LOAD_DEMAND, load);
    return true;
}

void load_queue_forget(struct load_queue *q, uint32_t load)
{
    assert(q->entry[load].state == LOAD_LANDED);
    q->entry[load].state = LOAD_FREE;
    q->entry[load].next = q->free_entry;
    q->free_entry = load;
}

void load_queue_drop_queued(struct load_queue *q)
{
    for (int class_of = LOAD_DEMAND; class_of <= LOAD_PREFETCH; class_of++) {
        for (uint32_t i = q->queued[class_of].first; i != LOAD_NONE; i = q->entry[i].next)
            q->entry[i].state = LOAD_ISSUED;
        q->queued[class_of].first = LOAD_NONE;
    }
}

uint64_t load_queue_blocks(const struct load_queue *q, const struct load_piece *piece,
                           uint64_t *payload_offset)
{
    assert(piece->file < q->file_count);
    uint64_t block = q->file[piece->file].block_bytes;
    uint64_t from = piece->offset_bytes & ~(block - 1);
    *payload_offset = piece->offset_bytes - from;
    return (*payload_offset + piece->bytes + block - 1) & ~(block - 1);
}

/* Where the blocks of a piece go, relative to the room. */
static uint64_t place_of(const struct load_queue *q, const struct load *load, uint32_t piece)
{
    uint64_t place = 0, skip;
    for (uint32_t p = 0; p < piece; p++)
        place += load_queue_blocks(q, &load->piece[p], &skip);
    return place;
}

static uint64_t turn_in_pipe(struct load_queue *q, uint64_t when_ns, uint64_t bytes)
{
    if (q->limit_rate_Bps == 0)
        return 0;
    unsigned __int128 nano_bytes = (unsigned __int128)bytes * 1000000000u + q->limit_rate_Bps - 1;
    uint64_t start = q->pipe_free_ns > when_ns ? q->pipe_free_ns : when_ns;
    return q->pipe_free_ns = start + (uint64_t)(nano_bytes / q->limit_rate_Bps);
}

/* When the emulated device could have had this read: not later than now because a timer was late,
 * but neither as if the host had never stalled. */
static uint64_t ready_ns(uint64_t now_ns, uint64_t submitted_ns, uint64_t place_free_ns)
{
    uint64_t ready = submitted_ns > place_free_ns ? submitted_ns : place_free_ns;
    return ready + TIMER_LATE_NS_MAX > now_ns ? ready : now_ns - TIMER_LATE_NS_MAX;
}

static void issue(struct load_queue *q, struct load_entry *e, struct flight *f,
                  uint64_t place_free_ns)
{
    uint64_t now = load_queue_now_ns(), skip;
    const struct load_piece *piece = &e->load.piece[f->piece];
    f->bytes = load_queue_blocks(q, piece, &skip);
    f->file_from = piece->offset_bytes - skip;
    f->need = skip + piece->bytes;
    f->to = (char *)e->load.room + place_of(q, &e->load, f->piece);
    f->turn_ns = turn_in_pipe(q, ready_ns(now, e->report.submitted_ns, place_free_ns), f->bytes);
    if (e->pieces_issued++ == 0)
        e->report.issued_ns = now;
    e->report.device_bytes += f->bytes;
    e->in_flight++;
    q->in_flight++;
}

uint32_t load_queue_next(struct load_queue *q)
{
    enum load_class class_of =
        q->queued[LOAD_DEMAND].first != LOAD_NONE ? LOAD_DEMAND : LOAD_PREFETCH;
    uint32_t load = q->queued[class_of].first, i = q->free_flight;
    if (load == LOAD_NONE || i == LOAD_NONE)
        return LOAD_NONE;
    struct load_entry *e = &q->entry[load];
    uint64_t place_free_ns = q->flight[i].due_ns;
    q->free_flight = q->flight[i].next;
    q->flight[i] = (struct flight){.load = load, .piece = e->pieces_issued, .next = LOAD_NONE};
    issue(q, e, &q->flight[i], place_free_ns);
    if (e->pieces_issued == e->load.piece_count) {
        remove_queued(q, load);
        e->state = LOAD_ISSUED;
    }
    return i;
}

/* The first failure of a load is kept; pieces of it that are still queued will not be read. */
static void fail(struct load_queue *q, const struct flight *f, int error, const char *failure)
{
    struct load_entry *e = &q->entry[f->load];
    if (e->failure)
        return;
    e->error = error;
    e->failure = failure;
    e->failed_piece = f->piece;
    e->failed_offset = f->file_from + f->got;
    if (e->state == LOAD_QUEUED) {
        remove_queued(q, f->load);
        e->state = LOAD_ISSUED;
    }
}

/* A read on must start at a whole block: what of the last one came is read again. */
static bool progress(struct load_queue *q, struct flight *f, uint64_t bytes)
{
    uint64_t block = q->file[q->entry[f->load].load.piece[f->piece].file].block_bytes;
    uint64_t whole = bytes & ~(block - 1);
    f->tries = whole ? 0 : f->tries + 1;
    f->got += whole;
    return f->tries < LOADER_TRIES_MAX;
}

bool load_queue_result(struct load_queue *q, uint32_t flight, int64_t result)
{
    struct flight *f = &q->flight[flight];
    assert(result <= (int64_t)(f->bytes - f->got));
    if (result > 0 && f->got + (uint64_t)result < f->need) {
        if (progress(q, f, (uint64_t)result))
            return true;
        fail(q, f, 0, "reads end short again and again");
    } else if (result == 0) {
        fail(q, f, 0, "the file ends here");
    } else if (result == -EAGAIN || result == -EINTR) {
        if (++f->tries < LOADER_TRIES_MAX)
            return true;
        fail(q, f, (int)-result, "read");
    } else if (result < 0) {
        fail(q, f, (int)-result, "read");
    }
    uint64_t now = load_queue_now_ns();
    f->due_ns = (now > f->turn_ns ? now : f->turn_ns) + q->add_latency_ns;
    return false;
}

/* Each file of the load is still what it was. */
static void check_files(struct load_queue *q, struct load_entry *e)
{
    for (uint32_t p = 0; p < e->load.piece_count && !e->failure; p++) {
        const struct load_piece *piece = &e->load.piece[p];
        if (p > 0 && piece->file == e->load.piece[p - 1].file)
            continue;
        e->failure = loader_file_change(&q->file[piece->file], q->ops);
        e->failed_piece = p;
        e->failed_offset = piece->offset_bytes;
    }
}

bool load_queue_deliver(struct load_queue *q, uint32_t flight)
{
    struct flight *f = &q->flight[flight];
    struct load_entry *e = &q->entry[f->load];
    f->bytes = 0;
    f->next = q->free_flight;
    q->free_flight = flight;
    q->in_flight--;
    if (--e->in_flight > 0 || e->state == LOAD_QUEUED)
        return false;
    check_files(q, e);
    e->state = LOAD_LANDED;
    e->report.landed_ns = load_queue_now_ns();
    return true;
}
