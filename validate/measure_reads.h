/* measure_reads.h -- what decoding does to a drive, measured: bursts of whole experts from idle, through the engine's
 * own loader, out of the model's own file.
 *
 * A burst submits n random experts at one instant, sleeps as the engine does, and ends when the last of them has
 * landed. What a thread that looks without sleeping saves is measured beside it, and so is the processor time of a
 * submission. Sizes of bursts take turns, so that drift of the machine meets all of them alike; before each the thread
 * rests for a moment, because one that has just spun is made to wait by the scheduler. */
#ifndef VALIDATE_MEASURE_READS_H
#define VALIDATE_MEASURE_READS_H

#include "kernels/graph/expert_source.h"

struct read_burst {
    uint32_t experts, reads;      /* reads: pieces of all experts */
    uint64_t bytes, device_bytes; /* payload of all; the same in whole blocks */
    double ns, low_ns, high_ns;   /* trimmed mean, 10th and 90th percentile */
    double first_ns;              /* until the first expert has landed; trimmed mean */
};

struct read_costs {
    double submit_ns; /* of a read: time of the calling thread; median */
    double wake_ns;   /* what sleeping until a read has landed costs beside looking for it */
};

struct measure_reads_setup {
    const struct graph_weights *weights;
    const char *pack;
    struct loader_io_setup loader; /* as the engine will have it */
    bool direct;
    size_t repeats;
    uint64_t seed;
};

/* The loader and its arena, kept open: for whoever wants single bursts. */
struct read_bench;
MUST_CHECK enum status read_bench_open(struct read_bench **out, const struct measure_reads_setup *s,
                                       struct diag *dg);
void read_bench_close(struct read_bench *r); /* NULL is fine */
/* One burst of b->experts; fills in its reads and bytes. `sleep`: until all have landed in loader_io_wait, else by
 * looking. *first_ns: until the first expert had landed; *submit_ns is time of the calling thread, a read. */
MUST_CHECK enum status read_bench_burst(struct read_bench *r, struct read_burst *b, bool sleep,
                                        double *ns, double *first_ns, double *submit_ns,
                                        struct diag *dg);

/* `burst[i].experts` says what to measure, 1 .. 64; the rest is filled in. ST_IO: a read failed. */
MUST_CHECK enum status measure_reads(struct read_burst *burst, size_t count,
                                     struct read_costs *costs, const struct measure_reads_setup *s,
                                     struct diag *dg);

#endif
