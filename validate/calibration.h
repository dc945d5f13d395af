/* calibration.h -- this machine, measured: a device description whose every figure was measured or fitted here.
 *
 * With the model whose runs are to be foretold, since its sizes of experts and matrices, its file and the engine
 * are what matters: bursts of reads out of that file, kernels on its matrices, and a run with everything resident. Nothing
 * of a run under a small cache is looked at, so such runs stay to be predicted. */
#ifndef VALIDATE_CALIBRATION_H
#define VALIDATE_CALIBRATION_H

#include "validate/measure_engine.h"
#include "validate/measure_kernels.h"
#include "validate/measure_reads.h"
#include "validate/station_fit.h"

#include <stdio.h>

struct calibrate_setup {
    struct engine_setup
        engine;            /* model, pack, isa, threads, I/O and emulated limits as they will be */
    const size_t *threads; /* numbers of threads to measure kernels with */
    size_t thread_counts;
    bool quick;
    uint64_t seed;
    void (*progress)(void *self, const char *step); /* may be NULL */
    void *self;
};

#define CALIBRATION_BURSTS  12
#define CALIBRATION_THREADS 8

struct calibration_threads {
    size_t threads;
    double memory_Bps, peak_ops;
    struct kernel_line expert, dense[FORMAT_COUNT];
    size_t dense_count;
    struct engine_costs engine, guessing, waiting; /* by enum engine_way */
    double layer_overhead_ns, token_overhead_ns, resume_ns, resume_layer_ns,
        predict_ns; /* what is left of the engine's times */
};

struct calibration {
    struct read_burst burst[CALIBRATION_BURSTS];
    double fitted_ns[CALIBRATION_BURSTS];
    size_t bursts;
    struct read_costs costs;
    struct station_fit station;
    struct calibration_threads by_threads[CALIBRATION_THREADS];
    size_t thread_counts;
    uint64_t memory_bytes, cache_bytes; /* of the machine; last-level cache */
    bool cached;                        /* the model fits that cache */
    bool packed;
    uint32_t depth;
    char model[128];
    double noise; /* the widest spread of what was repeated */
};

MUST_CHECK enum status calibrate(struct calibration *out, const struct calibrate_setup *s,
                                 struct diag *dg);

/* The description, with the costs of the engine at `threads` (an index of by_threads). */
void calibration_write(FILE *f, const struct calibration *c, size_t threads_idx);

#endif
