/* accounts.c -- what a run did with its time and bytes: per token, over all, and the bounds around it. */
#include "sim/pipeline/run_state.h"

#include "base/fixed.h"
#include "sim/roofline/estimate.h"

#include <stdlib.h>

static uint64_t compute_ns(const struct run *r)
{
    uint64_t ns = unit_totals(r->unit).busy_ns;
    return r->expert_unit == r->unit ? ns : ns + unit_totals(r->expert_unit).busy_ns;
}

static void look_ups(const struct run *r, uint64_t *lookups, uint64_t *hits)
{
    *lookups = r->decide ? decide_counts(r->decide)->lookups : r->fixed_lookups;
    *hits = r->decide ? decide_counts(r->decide)->hits : r->fixed_hits;
}

void accounts_begin_pass(struct run *r)
{
    uint64_t now = evq_now_ns(r->q);
    struct loader_counts c = loader_counts(r->loader, now);
    r->pass_start_ns = now;
    r->pass_compute_ns = compute_ns(r);
    r->pass_io_ns = c.demand_busy_ns;
    r->pass_read_bytes = c.bytes;
    r->pass_stall_ns = r->stall_ns;
    r->pass_late_hits = r->late_hits;
    look_ups(r, &r->pass_lookups, &r->pass_hits);
}

static void keep_time(struct run *r, uint64_t ns)
{
    uint64_t pass = r->passes_seen++;
    if (r->pass_times == RUN_PASS_TIMES) {
        for (uint64_t i = 0; i < RUN_PASS_TIMES / 2; i++)
            r->token_ns[i] = r->token_ns[2 * i];
        r->pass_times /= 2;
        r->pass_stride *= 2;
    }
    if (pass % r->pass_stride == 0)
        r->token_ns[r->pass_times++] = ns;
}

void accounts_add_token(struct run *r, uint64_t now)
{
    struct pipeline_result *out = r->result;
    struct loader_counts c = loader_counts(r->loader, now);
    uint64_t lookups, hits, batch = r->setup.batch ? r->setup.batch : 1;
    r->decoded += r->pass.produced;
    if (r->decoded <= r->setup.warmup)
        return;
    look_ups(r, &lookups, &hits);
    struct pipeline_token t = {
        .index = out->tokens,
        .produced = r->pass.produced,
        .start_ns = r->pass_start_ns,
        .end_ns = now,
        .compute_ns = compute_ns(r) - r->pass_compute_ns,
        .io_ns = c.demand_busy_ns - r->pass_io_ns,
        .stall_ns = r->stall_ns - r->pass_stall_ns,
        .read_bytes = c.bytes - r->pass_read_bytes,
        .lookups = lookups - r->pass_lookups,
        .hits = hits - r->pass_hits,
        .late_hits = r->late_hits - r->pass_late_hits,
    };
    if (out->tokens == 0)
        out->first_token_ns = t.end_ns - t.start_ns;
    out->tokens += t.produced;
    out->decode_ns += t.end_ns - t.start_ns;
    keep_time(r, (t.end_ns - t.start_ns) * batch / t.produced); /* a user's time between tokens */
    out->compute_ns += t.compute_ns;
    out->io_ns += t.io_ns;
    out->stall_ns += t.stall_ns;
    out->flash_bytes += t.read_bytes;
    out->lookups += t.lookups;
    out->hits += t.hits;
    out->late_hits += t.late_hits;
    out->energy_nJ += r->pass_energy_pJ / 1000;
    if (r->setup.token)
        r->setup.token(r->setup.token_self, &t);
}

/* ---- bounds of the whole run: what no schedule can beat, and everything one after another ---- */

void accounts_end(struct run *r)
{
    struct pipeline_result *out = r->result;
    struct loader_counts c = loader_counts(r->loader, evq_now_ns(r->q));
    struct unit_totals a = unit_totals(r->unit), b = unit_totals(r->expert_unit);
    bool two = r->expert_unit != r->unit;
    uint64_t flash_Bps = 0, kernel_bytes = r->machine.own_memory ? 0 : a.bytes;
    for (size_t i = 0; i < r->setup.device->storage_count; i++)
        flash_Bps += r->setup.device->storage[i].bandwidth.amount;
    if (two)
        kernel_bytes += b.bytes;
    out->end_ns = evq_now_ns(r->q);
    const struct meter *dram = flow_meter_load(r->net, r->dram);
    r->dram_busy_ns = meter_busy_ns(dram, out->end_ns);
    r->dram_bytes = (uint64_t)(meter_area(dram, out->end_ns) / NS_PER_S);
    if (r->array) {
        struct array_counts n = array_counts(r->array, out->end_ns);
        r->flash_busy_ns = n.busy_ns;
        r->flash_bytes = n.bytes;
    }
    out->upper_ns = a.serial_ns + (two ? b.serial_ns : 0) + c.serial_ns + r->link_ns;
    if (!r->setup.given_io_ns && flash_Bps)
        out->lower_ns = time_for(c.bytes, flash_Bps);
    if (r->setup.given_compute_ns)
        return;
    out->lower_ns = fixed_max(out->lower_ns, time_for(kernel_bytes, r->machine.dram_Bps));
    out->lower_ns = fixed_max(out->lower_ns, a.ops_ns);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void report_layers(const struct run *r)
{
    const struct decide_layer *d = r->decide ? decide_by_layer(r->decide) : NULL;
    for (uint32_t l = 0; d && r->setup.layer && l < r->model->layer_count; l++) {
        if (r->expert_bytes[l] == 0)
            continue;
        struct pipeline_layer out = {l,
                                     d[l].lookups,
                                     d[l].hits,
                                     r->layer_late[l],
                                     d[l].prefetches,
                                     d[l].prefetch_used,
                                     d[l].prefetch_wasted,
                                     d[l].pollution};
        r->setup.layer(r->setup.layer_self, &out);
    }
}

static void report_unit(const struct run *r, const struct unit *u, const char *name)
{
    struct unit_totals t = unit_totals(u);
    struct pipeline_resource x = {name, t.busy_ns, r->result->end_ns, t.bytes, t.ops};
    r->setup.resource(r->setup.resource_self, &x);
}

static void report_resources(const struct run *r)
{
    if (!r->setup.resource)
        return;
    report_unit(r, r->unit, r->machine.unit);
    if (r->expert_unit != r->unit)
        report_unit(r, r->expert_unit, "experts");
    struct pipeline_resource dram = {"dram", r->dram_busy_ns, r->result->end_ns, r->dram_bytes, 0};
    r->setup.resource(r->setup.resource_self, &dram);
    struct pipeline_resource flash = {"storage", r->flash_busy_ns, r->result->end_ns,
                                      r->flash_bytes, 0};
    r->setup.resource(r->setup.resource_self, &flash);
}

/* An engine that expands experts and keeps none has one of them at a time, in 16 bits. */
static uint64_t experts_peak_bytes(const struct run *r)
{
    uint64_t params = 0;
    for (size_t l = 0; l < r->model->layer_count; l++)
        params = fixed_max(params, r->model->layers[l].expert_params);
    if (r->profile->expand_experts && !run_keeps_cache(r))
        return 2 * params;
    return r->decide ? decide_peak_bytes(r->decide) : r->top_k * model_expert_bytes_max(r->model);
}

void accounts_finish(struct run *r)
{
    struct pipeline_result *out = r->result;
    qsort(r->token_ns, r->pass_times, sizeof *r->token_ns, by_size);
    if (r->pass_times > 0) {
        out->token_ns_p50 = r->token_ns[(r->pass_times - 1) / 2];
        out->token_ns_p99 = r->token_ns[(r->pass_times * 99 + 99) / 100 - 1];
    }
    struct loader_counts c = loader_counts(r->loader, evq_now_ns(r->q));
    out->stale_guesses = r->timed.dropped;
    out->read_bytes = c.bytes;
    out->copied_bytes = c.copied_bytes;
    if (r->decide)
        out->counts = *decide_counts(r->decide);
    out->cut = r->feed && r->feed->cut;
    out->cache_bytes = run_keeps_cache(r) ? r->placement.cache : 0;
    out->page_cache_bytes = r->page_cache ? page_cache_used(r->page_cache) : 0;
    out->peak_bytes = r->placement.dense_resident + r->placement.state + r->placement.buffers +
                      experts_peak_bytes(r);
    report_layers(r);
    report_resources(r);
    out->events = evq_fired(r->q);
    out->fingerprint = evq_fingerprint(r->q);
    uint64_t busy = out->compute_ns, wait = out->stall_ns;
    out->bound = wait > busy ? "flash" : "compute";
}
