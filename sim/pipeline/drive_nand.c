/* drive_nand.c -- a drive from its causes: dies that read pages, channels that carry them, a link.
 *
 * A unit is a page of every plane of a die, read in one tR. The drive's units are numbered across
 * the dies, channel first: unit u is on die u mod dies, and die i on channel i mod channels. A read
 * begins at the unit that its place hashes to and takes the following ones, so consecutive units
 * are read by different channels and the same place is always the same pages.
 *
 *     latency - tR  ->  die: tR  ->  channel: bytes / bus  ->  link: bytes / link rate  ->  DRAM
 *
 * `latency` is what device.h says, device and host together, so tR is a part of it; not given, tR
 * is all of it. A die reads for one read after the other, demand before prefetch, and goes on
 * reading while its last unit waits in its register for the bus (cache read); with the register
 * taken it stalls. A bus takes the dies in the order in which they have data, the link the reads, a
 * unit at a time. The last unit of a read moves only the bytes that were asked for. The link is
 * link_bandwidth and bandwidth, whichever is less; without them it is as fast as all buses.
 *
 * Units of one read on one die are one entry in that die's queue, so a read costs a few entries,
 * and three events a unit. Saturated it delivers min(channels x bus, link, dies x planes x page /
 * tR).
 */
#include "base/fixed.h"
#include "base/hash.h"
#include "sim/pipeline/drive_model.h"

#include <assert.h>
#include <stdlib.h>

#define NO_BATCH        UINT32_MAX
#define DIES_MAX        65536u
#define BATCHES_MAX     (UINT64_C(1) << 24)
#define BLOCKS_MAX      (UINT64_C(1) << 20) /* over all dies */
#define BLOCK_PAGES     UINT64_C(1024)      /* of one plane; more if those are too many blocks */
#define BLOCKS_UNSTATED UINT64_C(1024)      /* of a die, where the capacity is not given */

struct batch { /* the units of one read on one die: unit, unit + dies, ... below the read's units */
    struct read *read;
    uint64_t unit; /* next to be read, counted from the read's first */
    uint32_t next;
};

struct queue {
    uint32_t head, tail;
};

struct load { /* what a die's array or register holds; no bytes: nothing */
    struct read *read;
    uint64_t bytes;
};

struct die {
    struct drive *drive;
    struct queue waiting[DRIVE_PREFETCH + 1];
    struct load array, page_register;
    bool stalled; /* the array is done and waits for the register */
    struct die *next_at_bus;
};

struct channel {
    struct drive *drive;
    struct die *first, *last; /* with a full register, in order */
    struct die *moving;
};

struct nand {
    uint32_t channels, dies;
    uint64_t unit_bytes, units; /* of a die's planes; of the drive */
    uint64_t read_ns, bus_Bps;  /* at full speed */
    uint64_t rows_per_block, blocks;
    struct die *die;
    struct channel *channel;
    struct batch *batch;
    uint32_t free_batch;
    uint32_t *block_reads; /* dies x blocks */
};

static uint64_t unit_count(const struct nand *n, const struct read *r)
{
    return (r->order.bytes + n->unit_bytes - 1) / n->unit_bytes;
}

static void count_read(struct nand *n, uint32_t die, uint64_t position)
{
    uint64_t block = position / n->dies / n->rows_per_block % n->blocks;
    n->block_reads[die * n->blocks + block]++;
}

static void schedule(struct drive *d, uint64_t after_ns, evq_fn *fn, void *self)
{
    enum status status = evq_at(d->q, evq_now_ns(d->q) + after_ns, fn, self);
    assert(status == ST_OK); /* reserved by nand_open: one for each die, channel and place */
    (void)status;
}

static void bus_begin(struct channel *c);

static void fill_register(struct nand *n, struct die *die)
{
    struct channel *c = &n->channel[(size_t)(die - n->die) % n->channels];
    die->page_register = die->array;
    die->array.bytes = 0;
    die->stalled = false;
    die->next_at_bus = NULL;
    if (c->first)
        c->last->next_at_bus = die;
    else
        c->first = die;
    c->last = die;
    if (!c->moving)
        bus_begin(c);
}

static void die_begin(struct nand *n, struct die *die);

static void page_read(struct evq *q, void *self)
{
    (void)q;
    struct die *die = self;
    struct nand *n = die->drive->state;
    if (die->page_register.bytes) {
        die->stalled = true;
        return;
    }
    fill_register(n, die);
    die_begin(n, die);
}

/* The die, which is idle, reads the next unit of the first read that waits for it. */
static void die_begin(struct nand *n, struct die *die)
{
    struct queue *waiting = &die->waiting[DRIVE_DEMAND];
    if (waiting->head == NO_BATCH)
        waiting = &die->waiting[DRIVE_PREFETCH];
    if (waiting->head == NO_BATCH)
        return;
    uint32_t index = waiting->head;
    struct batch *b = &n->batch[index];
    struct read *r = b->read;
    uint64_t left = r->order.bytes - b->unit * n->unit_bytes;
    die->array = (struct load){r, left < n->unit_bytes ? left : n->unit_bytes};
    count_read(n, (uint32_t)(die - n->die), r->pages.unit + b->unit);
    b->unit += n->dies;
    if (b->unit >= unit_count(n, r)) {
        waiting->head = b->next;
        b->next = n->free_batch;
        n->free_batch = index;
    }
    uint64_t speed_e3 = die->drive->speed_e3;
    schedule(die->drive, (n->read_ns * 1000 + speed_e3 - 1) / speed_e3, page_read, die);
}

/* One unit of the read at a time goes to the link's queue. */
static void ask_link(struct drive *d, struct read *r)
{
    const struct nand *n = d->state;
    r->pages.asks = true;
    r->parcel.bytes = r->pages.at_pipe < n->unit_bytes ? r->pages.at_pipe : n->unit_bytes;
    drive_pipe_ask(&d->pipe, &r->parcel);
}

static void bus_moved(struct evq *q, void *self)
{
    (void)q;
    struct channel *c = self;
    struct die *die = c->moving;
    struct nand *n = c->drive->state;
    struct load moved = die->page_register;
    c->moving = NULL;
    die->page_register.bytes = 0;
    if (die->stalled) {
        fill_register(n, die);
        die_begin(n, die);
    } else if (c->first) {
        bus_begin(c);
    }
    moved.read->pages.at_pipe += moved.bytes;
    if (!moved.read->pages.asks)
        ask_link(c->drive, moved.read);
}

/* The bus, which is idle, moves what the first die that waits for it has. */
static void bus_begin(struct channel *c)
{
    const struct nand *n = c->drive->state;
    struct die *die = c->first;
    c->first = die->next_at_bus;
    c->moving = die;
    uint64_t bus_Bps = drive_scaled_Bps(c->drive, n->bus_Bps);
    uint64_t ns = wide_end_ns(0, wide_mul(die->page_register.bytes, NS_PER_S), bus_Bps);
    schedule(c->drive, ns, bus_moved, c);
}

static void nand_passed(struct drive *d, struct read *r)
{
    r->passed_bytes += r->parcel.bytes;
    r->pages.at_pipe -= r->parcel.bytes;
    r->pages.asks = false;
    if (r->passed_bytes == r->order.bytes)
        drive_end_read(d, r);
    else if (r->pages.at_pipe)
        ask_link(d, r);
}

static void enqueue(struct nand *n, struct die *die, struct read *r, uint64_t unit)
{
    uint32_t index = n->free_batch;
    assert(index != NO_BATCH); /* one for each die and place */
    n->free_batch = n->batch[index].next;
    n->batch[index] = (struct batch){r, unit, NO_BATCH};
    struct queue *waiting = &die->waiting[r->order.level];
    if (waiting->head == NO_BATCH)
        waiting->head = index;
    else
        n->batch[waiting->tail].next = index;
    waiting->tail = index;
    if (!die->array.bytes)
        die_begin(n, die);
}

static void spread(struct evq *q, void *self)
{
    (void)q;
    struct read *r = self;
    struct nand *n = r->drive->state;
    uint64_t units = unit_count(n, r);
    r->event = 0;
    r->pages.unit = hash_mix(r->order.place) % n->units;
    for (uint64_t unit = 0; unit < units && unit < n->dies; unit++)
        enqueue(n, &n->die[(r->pages.unit + unit) % n->dies], r, unit);
}

static void nand_begin(struct drive *d, struct read *r)
{
    drive_read_at(r, evq_now_ns(d->q) + drive_draw_latency_ns(d, r), spread);
}

/* Dies and buses take the new speed with the next unit. */
static void nand_set_speed(struct drive *d)
{
    (void)d;
}

static void nand_close(struct drive *d)
{
    struct nand *n = d->state;
    free(n->die);
    free(n->channel);
    free(n->batch);
    free(n->block_reads);
    free(n);
}

static enum status check_values(const struct storage *s, struct diag *dg)
{
    const struct {
        const char *key;
        const struct value *v;
    } needed[] = {{"channels", &s->channels},   {"dies_per_channel", &s->dies_per_channel},
                  {"planes", &s->planes},       {"page_bytes", &s->page_bytes},
                  {"read_time", &s->read_time}, {"bus_bandwidth", &s->bus_bandwidth}};
    const char *name = s->name ? s->name : "without a name";
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].v->given || !needed[i].v->amount)
            return diag_set(dg, ST_MISFIT, "storage %s: nand needs %s, which is not given", name,
                            needed[i].key);
    if (fixed_mul(s->channels.amount, s->dies_per_channel.amount) > DIES_MAX)
        return diag_set(dg, ST_RANGE, "storage %s: more than %u dies", name, DIES_MAX);
    return ST_OK;
}

/* Blocks for the disturb counters: BLOCK_PAGES pages of each plane, or twice as many until they
 * fit. */
static void lay_out_blocks(struct nand *n, const struct storage *s)
{
    uint64_t rows = BLOCKS_UNSTATED * BLOCK_PAGES;
    if (s->capacity.given && s->capacity.amount)
        rows = s->capacity.amount / n->unit_bytes / n->dies;
    if (rows == 0)
        rows = 1;
    n->units = rows * n->dies;
    n->rows_per_block = BLOCK_PAGES;
    while ((rows + n->rows_per_block - 1) / n->rows_per_block * n->dies > BLOCKS_MAX)
        n->rows_per_block *= 2;
    n->blocks = (rows + n->rows_per_block - 1) / n->rows_per_block;
}

static enum status allocate(struct nand *n, struct drive *d, struct diag *dg)
{
    uint64_t batches = (uint64_t)d->place_count * n->dies;
    if (batches > BATCHES_MAX)
        return diag_set(dg, ST_RANGE, "nand: %u places times %u dies are more than 2^24",
                        d->place_count, n->dies);
    n->die = calloc(n->dies, sizeof *n->die);
    n->channel = calloc(n->channels, sizeof *n->channel);
    n->batch = calloc(batches, sizeof *n->batch);
    n->block_reads = calloc(n->dies * n->blocks, sizeof *n->block_reads);
    if (!n->die || !n->channel || !n->batch || !n->block_reads)
        return diag_no_memory(dg);
    const struct queue empty = {NO_BATCH, NO_BATCH};
    for (uint32_t i = 0; i < n->dies; i++)
        n->die[i] = (struct die){.drive = d, .waiting = {empty, empty}};
    for (uint32_t i = 0; i < n->channels; i++)
        n->channel[i].drive = d;
    for (uint64_t i = 0; i < batches; i++)
        n->batch[i].next = i + 1 < batches ? (uint32_t)(i + 1) : NO_BATCH;
    enum status status = evq_reserve(d->q, (size_t)n->dies + n->channels + d->place_count);
    return status == ST_OK ? ST_OK : diag_no_memory(dg);
}

static uint64_t link_Bps(const struct nand *n, const struct storage *s)
{
    uint64_t rate_Bps = fixed_mul(n->channels, n->bus_Bps);
    if (s->link_bandwidth.given || s->bandwidth.given)
        rate_Bps = UINT64_MAX;
    if (s->link_bandwidth.given)
        rate_Bps = s->link_bandwidth.amount;
    if (s->bandwidth.given && s->bandwidth.amount < rate_Bps)
        rate_Bps = s->bandwidth.amount;
    return rate_Bps;
}

static enum status nand_open(struct drive *d, const struct storage *s, struct diag *dg)
{
    enum status status = check_values(s, dg);
    if (status != ST_OK)
        return status;
    struct nand *n = calloc(1, sizeof *n);
    if (!n)
        return diag_no_memory(dg);
    d->state = n;
    n->channels = (uint32_t)s->channels.amount;
    n->dies = (uint32_t)(s->channels.amount * s->dies_per_channel.amount);
    n->unit_bytes = s->planes.amount * s->page_bytes.amount;
    n->read_ns = s->read_time.amount;
    n->bus_Bps = s->bus_bandwidth.amount;
    lay_out_blocks(n, s);
    d->pipe_Bps = link_Bps(n, s);
    if (s->latency.given && s->latency.amount > n->read_ns)
        d->latency_ns = s->latency.amount - n->read_ns;
    return allocate(n, d, dg);
}

bool drive_disturb(const struct drive *d, struct drive_disturb *out)
{
    if (d->model != &drive_model_nand)
        return false;
    const struct nand *n = d->state;
    *out = (struct drive_disturb){.dies = n->dies,
                                  .blocks_per_die = (uint32_t)n->blocks,
                                  .block_bytes = n->rows_per_block * n->unit_bytes};
    for (uint32_t die = 0; die < n->dies; die++) {
        uint64_t reads = 0;
        for (uint32_t block = 0; block < n->blocks; block++) {
            uint64_t of_block = drive_block_reads(d, die, block);
            reads += of_block;
            if (of_block > out->block_reads_max)
                out->block_reads_max = of_block;
        }
        out->page_reads += reads;
        if (reads > out->die_reads_max)
            out->die_reads_max = reads;
    }
    return true;
}

uint64_t drive_block_reads(const struct drive *d, uint32_t die, uint32_t block)
{
    const struct nand *n = d->state;
    assert(d->model == &drive_model_nand && die < n->dies && block < n->blocks);
    return n->block_reads[die * n->blocks + block];
}

const struct drive_model drive_model_nand = {
    .name = "nand",
    .open = nand_open,
    .close = nand_close,
    .begin = nand_begin,
    .passed = nand_passed,
    .set_speed = nand_set_speed,
};
