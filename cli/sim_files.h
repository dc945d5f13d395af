/* sim_files.h -- what `memwall sim` is made of, and the files that it can write beside its row. */
#ifndef CLI_SIM_FILES_H
#define CLI_SIM_FILES_H

#include "cli/scenario.h"
#include "sim/pipeline/forecast.h"
#include "sim/trace/preset.h"

/* Everything a run is made of, in the order in which it is loaded. */
struct sim_inputs {
    struct scenario scenario;
    struct engine_profile *profile;
    struct trace *trace;
    bool trace_kept; /* by a capture, which releases it */
    struct preset *preset;
    struct timeline *timeline;
    struct pressure *pressure;
    bool routing_unknown; /* the model names no preset, and nobody else did */
    struct pipeline_setup setup;
};

/* Timed prefetchers are marked: their decisions equal no replay. */
const char *sim_prefetch_label(const struct sim_inputs *in);

/* Runs, and writes --tokens-out, --layers-out and --resources-out; none of them if the run fails. */
MUST_CHECK enum status sim_run_with_files(struct forecast *out, struct sim_inputs *in,
                                          const struct args *a, struct diag *dg);
/* --config-out: every choice of the run, and every value with its kind and source. `cache_bytes` is what the
 * cache came to be. */
MUST_CHECK enum status sim_write_config(struct sim_inputs *in, const struct args *a,
                                        uint64_t cache_bytes, struct diag *dg);

#endif
