/* scene.h -- for tests of facts: a run of the catalogue's files in a few lines, and made-up traces. */
#ifndef TESTS_SCENE_H
#define TESTS_SCENE_H

#include "tests/support.h"

#include "sim/pipeline/drive_bench.h"
#include "sim/pipeline/pipeline.h"
#include "sim/replay/replay_run.h"
#include "sim/trace/generate_trace.h"
#include "sim/trace/preset.h"

#define MIB (UINT64_C(1) << 20)
#define GB  UINT64_C(1000000000)

enum { SETS_MAX = 8 };

/* What a run is made of: names in the catalogue; `quant` NULL is as published; `routing` a preset, or NULL for a
 * fixed hit ratio; and up to SETS_MAX overrides, "device PATH=VALUE", "profile KEY=VALUE" or "model
 * PATH=VALUE". */
struct scene {
    const char *model, *quant, *device, *profile, *routing;
    const char *set[SETS_MAX];
};

struct world {
    struct model *model;
    struct device *device;
    struct engine_profile *profile;
    struct preset *preset;
    struct pipeline_setup setup; /* 16 decode tokens, no prompt, the rest as the profile says */
};

/* Whatever goes wrong fails the running test. */
struct world world_open(const struct scene *s);
void world_close(struct world *w);
void world_set_top_k(struct world *w, uint64_t top_k);
void world_set_cache(struct world *w, uint64_t bytes); /* 0: no cache at all */
void world_set_prefetch(struct world *w, const char *name, uint32_t experts); /* NULL: none */
struct pipeline_result world_run(const struct world *w);
double world_rate(const struct world *w); /* tokens per second of a run */

double rate(const struct pipeline_result *x); /* tokens per second */
double hit_ratio(const struct pipeline_result *x);
double bytes_per_token(const struct pipeline_result *x); /* from the drive, while decoding */

/* A trace of experts of 1 MiB: `turns` texts of `tokens` decode tokens; made_up() makes one text. */
struct trace *made_up_turns(const char *preset, uint32_t layers, uint32_t experts, uint32_t top_k,
                            uint32_t turns, uint32_t tokens, uint64_t seed);
struct trace *made_up(const char *preset, uint32_t layers, uint32_t experts, uint32_t top_k,
                      uint32_t tokens);
/* LRU that evicts after the batch. */
struct replay_result replay_lru(const struct trace *t, enum scope scope, uint64_t budget);
double decode_hits(const struct replay_result *x); /* a ratio */

/* A drive under a closed loop of `lanes` reads. */
double bench_Bps(const struct storage *s, uint64_t bytes, uint32_t lanes);

#endif
