/* loader_io.h -- reads experts from files into slots: io_uring or threads, demand before prefetch.
 *
 * A load is one expert (or a stretch of dense weights) of one or several pieces: gate, up and down
 * lie megabytes apart in a stacked GGUF tensor, a packed file has them in one. All pieces land in
 * one room that the caller provides, one behind the other. Direct reads take whole blocks of the
 * device, so each piece is widened to whole blocks and its payload starts somewhere inside its
 * first block; loader_io_layout() says where, before anything is read, and direct and buffered
 * reads agree on it.
 *
 * Order. Reads are issued in the order of submission, all demand reads before any prefetch read;
 * nothing in flight is cancelled. loader_io_promote() turns what is still queued of a prefetch into
 * demand, behind the demands that wait already.
 *
 * Threading contract. Every function but loader_io_new, loader_io_add_file and loader_io_free may
 * be called from any thread. With LOADER_URING the loader has no thread: reads are issued by
 * loader_io_submit, and reaped, and further ones issued, by whoever calls loader_io_submit, _ready
 * or _wait. One waiting thread sleeps in the kernel and reaps for all; the others sleep until it
 * has. A thread that computes for long should call loader_io_ready now and then, or what is queued
 * behind `depth` stays queued. A thread that submitted must not end before its reads have landed.
 * With LOADER_THREADS, `depth` threads read one piece each at a time, and callers only wait.
 *
 * Slower flash. `limit_rate_Bps` sends all reads, in order of issue, through one pipe of that rate;
 * `add_latency_ns` is added to each read, side by side for reads in flight. A read counts as landed
 * at the later of its true end and its turn in the pipe, plus the added latency, and keeps its
 * place of the `depth` until then. So this emulates a device that is slower, never one that is
 * faster. The pipe counts the bytes of whole blocks. A wake-up that is late (at most 250 us)
 * does not delay the turn of a read that was queued already; a longer stall of the host does.
 *
 * Faults. What the system delivers short is read on from where it ended; EAGAIN and EINTR are tried
 * again; both at most LOADER_TRIES_MAX times without progress. Everything else (EIO, the file ends
 * early, has changed since it was opened: loader_file.h) fails the load: the reason names file,
 * offset, layer and expert. What is in the room of a failed load must not be used.
 */
#ifndef KERNELS_LOADER_LOADER_IO_H
#define KERNELS_LOADER_LOADER_IO_H

#include "base/status.h"
#include "kernels/loader/loader_ops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOADER_PIECES_MAX 12u
#define LOADER_FILES_MAX  64u
#define LOADER_DEPTH_MAX  256u
#define LOADER_TRIES_MAX  8u

enum loader_backend_kind { LOADER_URING, LOADER_THREADS };
enum load_class { LOAD_DEMAND, LOAD_PREFETCH };

struct loader_io_setup {
    enum loader_backend_kind
        backend;        /* URING becomes THREADS, with a note, where the system has none */
    uint32_t depth;     /* reads in flight at most, 1..LOADER_DEPTH_MAX */
    uint32_t loads_max; /* submitted and not yet waited for, at most; >= 1 */
    void *arena;        /* where most loads go: registered with the ring; NULL: none */
    size_t arena_bytes;
    uint64_t limit_rate_Bps; /* 0: no limit */
    uint64_t add_latency_ns;
    const struct loader_ops *ops; /* NULL: loader_ops_system; outlives the loader */
};

struct load_piece {
    uint32_t file; /* as loader_io_add_file numbered it */
    uint64_t offset_bytes, bytes;
};

struct load {
    enum load_class class_of;
    uint32_t layer, expert; /* for messages */
    uint32_t piece_count;   /* 1..LOADER_PIECES_MAX */
    struct load_piece piece[LOADER_PIECES_MAX];
    void *room; /* aligned to loader_io_block_bytes; stays valid until the load was waited for */
    size_t room_bytes;
};

/* What came of a load; times are CLOCK_MONOTONIC. */
struct load_report {
    uint64_t payload_bytes, device_bytes; /* device bytes are whole blocks */
    uint64_t submitted_ns, issued_ns, landed_ns;
};

struct loader_io;

/* ST_RANGE for a setup outside its limits, ST_IO if threads cannot be started. */
MUST_CHECK enum status loader_io_new(struct loader_io **out, const struct loader_io_setup *s,
                                     struct diag *dg);
/* Waits for what is in flight, drops the rest. NULL is fine. */
void loader_io_free(struct loader_io *io);

/* Opens a file; all files before the first load. `direct`: past the page cache; where the file
 * system cannot, buffered with a note. ST_IO, ST_UNSUPPORTED as loader_file_open; ST_RANGE: more
 * than LOADER_FILES_MAX. */
MUST_CHECK enum status loader_io_add_file(struct loader_io *io, const char *path, bool direct,
                                          uint32_t *file, struct diag *dg);

/* The block of the device: what rooms must be aligned to; the largest of all files, once open. */
uint32_t loader_io_block_bytes(const struct loader_io *io);

/* Where the payload of each piece will start, relative to the room; returns the bytes the room
 * needs: per piece at most two blocks more than its payload. */
uint64_t loader_io_layout(const struct loader_io *io, const struct load_piece *piece,
                          uint32_t count, uint64_t *payload_offset);

/* Queues a load, which is copied, and issues what it can; *ticket is its name until it was waited
 * for. ST_RANGE, with file, offset, layer and expert: a piece ends behind its file. Room too
 * small or misaligned, no such file, or more than loads_max loads, is a broken program. */
MUST_CHECK enum status loader_io_submit(struct loader_io *io, const struct load *load,
                                        uint32_t *ticket, struct diag *dg);

/* Between `on` and its end submissions are queued and not issued by themselves (but by whoever waits or looks), so that
 * all of a batch go to the system in one call. */
void loader_io_gather(struct loader_io *io, bool on);

/* True if something of the load was still queued as a prefetch: now it goes before every
 * prefetch. */
bool loader_io_promote(struct loader_io *io, uint32_t ticket);

/* Has the load landed, or failed? Does not wait. */
bool loader_io_ready(struct loader_io *io, uint32_t ticket);

/* Waits until one of the loads has landed or failed, and returns its index in `tickets`: of
 * several the one that landed first. It is still to be collected by loader_io_wait. count >= 1. */
size_t loader_io_wait_any(struct loader_io *io, const uint32_t *tickets, size_t count);

/* Waits for the load and forgets its ticket. ST_OK: all payloads are in the room, and the files
 * did not change since they were opened. Otherwise ST_IO with the reason. `report` may be NULL.
 * Of one ticket only one thread may wait. */
MUST_CHECK enum status loader_io_wait(struct loader_io *io, uint32_t ticket,
                                      struct load_report *report, struct diag *dg);

/* What it runs on: "uring" or "threads". */
const char *loader_io_backend(const struct loader_io *io);
/* What it does without, for the log: no ring, no direct reads, no registered buffers; or "". */
const char *loader_io_note(const struct loader_io *io);

#endif
