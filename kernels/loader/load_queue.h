/* load_queue.h -- inside of the loader, for its backends: loads, their reads in flight, and the
 * books.
 *
 * A backend takes the next read (load_queue_next), makes the system do it, shows the result
 * (load_queue_result), reads on if told so, waits until the read is due and delivers it. All
 * functions are called with the loader's lock held and never sleep.
 */
#ifndef KERNELS_LOADER_LOAD_QUEUE_H
#define KERNELS_LOADER_LOAD_QUEUE_H

#include "kernels/loader/loader_file.h"
#include "kernels/loader/loader_io.h"

#define LOAD_NONE UINT32_MAX

/* One read in flight: a piece, in whole blocks. Free ones and landed ones are linked by `next`. */
struct flight {
    uint32_t load, piece, next;
    uint32_t tries;     /* without progress */
    uint64_t file_from; /* first byte of the first block */
    uint64_t bytes;     /* whole blocks; 0: not in flight */
    uint64_t need;      /* bytes from file_from until the payload's end */
    uint64_t got;
    char *to;            /* where file_from goes */
    uint64_t turn_ns;    /* its end in the pipe of the limited rate */
    uint64_t due_ns;     /* when it counts as landed */
    uint64_t ring_order; /* the ring's: its number among all reads handed to the ring */
};

enum load_state { LOAD_FREE, LOAD_QUEUED, LOAD_ISSUED, LOAD_LANDED };

struct load_entry {
    struct load load;
    enum load_state state;
    uint32_t next; /* in its queue, or among the free */
    uint32_t pieces_issued, in_flight;
    struct load_report report;
    int error;           /* errno of the first failure */
    const char *failure; /* or what else went wrong; NULL: nothing */
    uint32_t failed_piece;
    uint64_t failed_offset; /* in the file */
};

struct load_fifo {
    uint32_t first, last;
};

struct load_queue {
    const struct loader_ops *ops;
    struct loader_file file[LOADER_FILES_MAX];
    uint32_t file_count;
    struct load_entry *entry; /* loads_max */
    struct flight *flight;    /* depth */
    uint32_t loads_max, depth;
    struct load_fifo queued[2]; /* by enum load_class */
    uint32_t free_entry, free_flight;
    uint32_t in_flight;
    uint64_t limit_rate_Bps, add_latency_ns, pipe_free_ns;
};

uint64_t load_queue_now_ns(void);

MUST_CHECK enum status load_queue_init(struct load_queue *q, const struct loader_io_setup *s,
                                       struct diag *dg);
void load_queue_free(struct load_queue *q); /* closes the files, too */

uint32_t load_queue_add(struct load_queue *q, const struct load *load);
bool load_queue_promote(struct load_queue *q, uint32_t load);
void load_queue_forget(struct load_queue *q, uint32_t load); /* of a landed load */
void load_queue_drop_queued(struct load_queue *q);           /* none of them is issued any more */

/* The next read, or LOAD_NONE: nothing queued, or `depth` in flight. */
uint32_t load_queue_next(struct load_queue *q);
/* What the system said: bytes read, or -errno. True: to be read on, from file_from + got. False:
 * over; due_ns is set. */
bool load_queue_result(struct load_queue *q, uint32_t flight, int64_t result);
/* A read that is over and due. True if its load has thereby landed. */
bool load_queue_deliver(struct load_queue *q, uint32_t flight);

/* The payload's place in its blocks, and the blocks' bytes. */
uint64_t load_queue_blocks(const struct load_queue *q, const struct load_piece *piece,
                           uint64_t *payload_offset);

#endif
