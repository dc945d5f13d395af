/* run_state.h -- what a run carries from event to event; private to the pipeline. */
#ifndef SIM_PIPELINE_RUN_STATE_H
#define SIM_PIPELINE_RUN_STATE_H

#include "sim/pipeline/energy.h"
#include "sim/pipeline/heat.h"
#include "sim/pipeline/ledger.h"
#include "sim/pipeline/loader.h"
#include "sim/pipeline/pipeline.h"
#include "sim/plan/placement.h"
#include "sim/policy/timed.h"

/* One expert of the present layer. */
struct choice {
    uint16_t expert;
    uint32_t tokens; /* that chose it */
    uint32_t slot;
    bool ready;
};

/* Kernels of one layer at the present context. */
struct layer_kernels {
    struct kernel
        fixed; /* attention, state, router, dense FFN; the shared expert unless split off */
    struct kernel shared; /* shared expert alone, if it runs beside the reads */
    uint64_t expert_ops;  /* one token through one expert */
    uint64_t expert_bytes;
    uint64_t trunk_bytes; /* dense weights of the layer, if they are streamed */
};

struct run {
    struct pipeline_setup setup;
    const struct model *model;
    const struct engine_profile *profile;
    /* After a wait: what the kernel that ends it, and the next layer's fixed part, take longer. */
    uint64_t resume_ns, resume_layer_ns;
    struct engine_profile adopted; /* the profile with the machine's own costs, where it has any */
    char unit_names[MACHINE_UNITS_MAX];
    struct machine machine;
    struct placement placement;
    struct evq *q;
    struct flow_net *net;
    uint32_t dram;
    struct array *array;
    struct unit *unit;        /* attention, router, head */
    struct unit *expert_unit; /* the experts; often the same */
    uint64_t hop_ns; /* activations go to the other unit and back: copy and synchronisation */
    /* Experts that lie in the DRAM cross a link to the unit that computes them, each time; link_Bps 0: no. */
    uint32_t link_class;
    uint64_t link_Bps, link_sync_ns;
    struct page_cache *page_cache;
    struct loader *loader;
    struct feed *feed;
    struct future *future;
    struct trace_layer *layer_bytes; /* which layers have experts, and their size */
    uint64_t *expert_bytes;
    uint32_t experts, top_k;
    struct routing *routing;
    struct decide *decide; /* NULL with a fixed hit ratio */
    struct pcg fixed_chance;
    uint32_t *slot_of; /* by key: the slot its last command gave it */
    /* Reads ahead that wait for their moment in the layer they are for, if the profile has a prefetch_lead. */
    struct load *ahead; /* `experts` of them */
    uint32_t ahead_count;
    struct timed_queue timed;
    uint64_t *layer_late; /* late hits by layer */
    enum overlap overlap;
    uint64_t lanes, pieces;

    /* the present pass */
    struct routing_pass pass;
    uint32_t pass_count;
    uint64_t position; /* tokens of state before the pass */
    uint32_t layer;
    uint32_t trunk_asked; /* layers whose dense weights were asked for */
    uint32_t trunk_landed;
    bool trunk_awaited;

    /* the present layer */
    struct layer_kernels kernels;
    struct choice *choice; /* `experts` of them */
    struct pcg recall_chance;
    uint16_t *guessed;   /* an oracle's guesses, spoilt; as many as experts */
    uint32_t *choice_of; /* by expert: index in choice + 1 */
    uint32_t choice_count, computed_count, pending_count, running;
    bool shared_done, stalled;
    bool waited; /* since the last fixed part */
    uint64_t stall_from_ns;

    /* surroundings */
    struct ledger ledger;
    uint64_t cache_least; /* bytes the expert cache cannot go below */
    size_t pressure_next;
    uint64_t killed_ns, lacking; /* when the memory ran out, and by how many bytes */
    uint64_t asked_bytes;        /* by the application that it ran out for; 0: by state */
    bool warm;                   /* the device has a heat model */
    struct heat heat;
    uint64_t *flash_read; /* by storage, in the present pass */
    uint64_t energy_ops, energy_bytes, energy_busy_ns, energy_read; /* at the start of the pass */
    uint64_t pass_energy_pJ;
    uint32_t stall_lane, cache_track, heat_track;

    /* accounts */
    bool decoding, over;
    enum status failure;
    uint64_t pass_start_ns, pass_compute_ns, pass_io_ns, pass_read_bytes, pass_lookups, pass_hits;
    uint64_t stall_ns, pass_stall_ns, late_hits, pass_late_hits;
    uint64_t fixed_lookups, fixed_hits;
    /* Times of passes for the quantiles: all of them, and of a run with more every second, fourth, ... so that
     * memory does not grow with tokens. */
    uint64_t *token_ns;                            /* RUN_PASS_TIMES */
    uint64_t pass_times, passes_seen, pass_stride; /* entries; one of pass_stride passes is kept */
    uint64_t decoded;                              /* tokens, warm-up included */
    uint64_t dram_busy_ns, dram_bytes, flash_busy_ns, flash_bytes; /* up to the last pass's end */
    uint64_t link_ns; /* experts over the link, alone */
    struct pipeline_result *result;
};

/* run_setup.c: allocates everything a run needs; run_stop() frees it, whatever run_start() achieved. */
MUST_CHECK enum status run_start(struct run *r, struct diag *dg);
void run_stop(struct run *r);
bool run_keeps_cache(const struct run *r); /* false for policy none */

#define RUN_PASS_TIMES (1 << 16)
#define RUN_CHUNK      512 /* prompt tokens a pass takes unless the profile says */
uint64_t run_amount(const struct value *v,
                    uint64_t fallback);      /* a value, or what holds where it is not given */
uint64_t run_sequences(const struct run *r); /* that decode together */

/* run_memory.c and run_resources.c */
MUST_CHECK enum status run_place(struct run *r, struct diag *dg);
MUST_CHECK enum status run_start_resources(struct run *r, struct diag *dg);

/* environment.c */
MUST_CHECK enum status environment_start(struct run *r, struct diag *dg);
void environment_end_pass(struct run *r);
/* ST_MISFIT: who asked, what was lacking and who holds the memory. */
MUST_CHECK enum status environment_refuse(const struct run *r, struct diag *dg);

/* accounts.c */
void accounts_begin_pass(struct run *r);
void accounts_add_token(struct run *r, uint64_t now_ns);
void accounts_end(struct run *r);    /* at the end of the last pass: bounds */
void accounts_finish(struct run *r); /* when the queue has run empty */

/* kernels_of.c: at the present pass and position. */
void kernels_of_layer(const struct run *r, uint32_t layer, struct layer_kernels *out);
struct kernel kernels_experts(const struct run *r, const struct choice *c, uint32_t count);
struct kernel kernels_head(const struct run *r);

/* choices.c: decides on the present layer's experts and starts what follows; an evq_fn that gives an idle drive
 * the next guess of a timed prefetcher (`self` is the run). */
void choices_decide(struct run *r);
void choices_feed_idle(struct evq *q, void *self);
/* The fixed kernel of a layer begins: schedules the reads ahead that waited for it. */
void choices_schedule_ahead(struct run *r);

/* layer.c */
/* Begins the pass that run->pass describes; run_pass_over() is called at its end. */
void layer_begin_pass(struct run *r);
/* run.c */
void run_pass_over(struct run *r);

#endif
