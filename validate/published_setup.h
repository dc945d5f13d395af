/* published_setup.h -- a published row as a run of the simulator: model catalogue, device file and engine
 * profile, and what the row itself says; nothing is tuned for a row.
 *
 * What a row says goes over the profile: overlap (layer and prefetch run as expert), I/O path, lanes (where
 * they are the engine's: flash_kind curve or engine), cache policy and size, prefetcher, draft. Another I/O
 * path than the profile's has the host costs of a profile that uses it (llama.cpp-mmap, airllm). Expert
 * and dense bytes of the row replace those that follow from the format. */
#ifndef VALIDATE_PUBLISHED_SETUP_H
#define VALIDATE_PUBLISHED_SETUP_H

#include "sim/pipeline/pipeline.h"
#include "sim/trace/preset.h"
#include "validate/published.h"

/* Folders of the catalogue. */
struct published_folders {
    const char *models, *devices, *profiles, *presets;
};

struct published_run {
    struct model *model;
    struct device *device;
    struct engine_profile *profile, *path; /* path: whose I/O costs were taken; or NULL */
    struct preset *preset;
    struct pipeline_setup setup;
    char note[256]; /* what was taken for granted, separated by "; " */
};

/* `row` is masked already (published_mask). ST_MISSING, with the inputs that lack, if the row cannot be run
 * at all; else errors of the descriptions. */
MUST_CHECK enum status published_assemble(struct published_run *out,
                                          const struct published_row *row,
                                          enum published_class class_of,
                                          const struct published_folders *folders, uint64_t seed,
                                          struct diag *dg);
void published_run_free(struct published_run *r);
void published_note(struct published_run *r, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
