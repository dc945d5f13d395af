/* run_resources.c -- what a run takes its time from: drives, memory, links, the units that compute, lanes. */
#include "base/fixed.h"
#include "sim/pipeline/run_state.h"
#include "sim/roofline/estimate.h"

static enum status start_array(struct run *r, struct diag *dg)
{
    if (r->setup.given_io_ns)
        return ST_OK;
    struct array_setup a = {
        .device = r->setup.device,
        .layout = r->setup.drives,
        .lanes = (uint32_t)r->lanes,
        .reads_max = (uint32_t)r->lanes + 16,
        .net = r->net,
        .dram = r->dram,
        .dram_Bps = r->machine.dram_Bps,
        .dram_weight = 1,
        .jitter_e3 = r->setup.jitter_e3,
        .seed = r->setup.seed,
    };
    return array_new(&r->array, r->q, &a, dg);
}

static enum status new_unit(struct run *r, const struct machine *m, struct unit **out,
                            struct diag *dg)
{
    uint64_t share = run_amount(&r->profile->kernel_efficiency, RATIO_ONE);
    uint64_t threads = r->setup.threads ? r->setup.threads : run_amount(&r->profile->threads, 4);
    struct unit_setup u = {
        .net = r->net,
        .memory = r->dram,
        .weight = (uint32_t)threads,
        .memory_Bps = fixed_mul_div(m->memory_Bps, share, RATIO_ONE),
        .ops_per_s = m->reached_ops,
        .gemm_ops_per_s = m->gemm_ops,
        .call_ns = m->call_ns,
        .given_ns = r->setup.given_compute_ns,
    };
    if (m->own_memory) { /* kernels read the unit's own memory, not the DRAM that reads land in */
        enum status st = flow_resource_add(r->net, m->memory_Bps, &u.memory, dg);
        if (st != ST_OK)
            return st;
    }
    return unit_new(out, r->q, &u, dg);
}

/* The unit of the experts, if the profile puts them elsewhere than the rest. */
static enum status start_units(struct run *r, struct diag *dg)
{
    enum status st = new_unit(r, &r->machine, &r->unit, dg);
    r->expert_unit = r->unit;
    const char *host = r->machine.host;
    if (!host && !r->setup.unit && r->profile->site == SITE_CPU)
        host = "cpu";
    if (st != ST_OK || !host || !r->machine.own_memory)
        return st;
    struct machine cpu;
    struct machine_choice choice = {
        .unit = host, .cards = 1, .rates = RATES_REACHED, .eight_bit = true};
    st = machine_init(&cpu, r->setup.device, &choice, dg);
    if (st != ST_OK)
        return st;
    /* Hidden states cross the link both ways, in 16 bits. */
    r->hop_ns = 2 * (run_amount(&r->profile->copy_sync, 0) +
                     time_for(2 * r->model->hidden, r->machine.link_Bps));
    return new_unit(r, &cpu, &r->expert_unit, dg);
}

static bool experts_leave_dram(const struct run *r)
{
    return r->machine.own_memory && r->expert_unit == r->unit && !r->placement.experts_on_unit;
}

/* The profile's share is of the raw rate; without one the link reaches what machine.h says. */
static uint64_t link_rate(const struct run *r)
{
    uint64_t share = run_amount(&r->profile->copy_rate, 0);
    uint64_t rate = fixed_mul_div(r->machine.link_raw_Bps, share, RATIO_ONE);
    return rate ? rate : r->machine.link_Bps;
}

/* Experts that the DRAM keeps cross the link whenever they are computed; those that the unit's memory
 * keeps crossed it when they were read, which is the loader's business. */
static enum status start_link(struct run *r, struct loader_setup *l, struct diag *dg)
{
    uint32_t link;
    if (!experts_leave_dram(r))
        return ST_OK;
    if (r->machine.link_Bps == 0)
        return diag_set(dg, ST_MISSING, "%s: the %s states no link_bandwidth",
                        r->setup.device->name, r->machine.unit);
    enum status st = flow_resource_add(r->net, r->machine.link_Bps, &link, dg);
    if (st != ST_OK)
        return st;
    if (r->profile->cache_home == HOME_VRAM) {
        l->link = link;
        l->link_Bps = link_rate(r);
        l->link_sync_ns = run_amount(&r->profile->copy_sync, 0);
        return ST_OK;
    }
    r->link_Bps = link_rate(r);
    r->link_sync_ns = run_amount(&r->profile->copy_sync, 0);
    uint32_t path[] = {r->dram, link};
    return flow_class_add(r->net, &(struct flow_class){path, 2, r->link_Bps, 1}, &r->link_class,
                          dg);
}

/* The largest request that reaches the drive: the engine's own limit, or what the kernel reads ahead. */
static uint64_t request_max(const struct engine_profile *p)
{
    uint64_t own = run_amount(&p->request_max, 0);
    uint64_t ahead = p->io == IO_DIRECT ? 0 : run_amount(&p->readahead, 0);
    return own && (!ahead || own < ahead) ? own : ahead;
}

/* When a token's I/O time is given, its bytes (one token cycle, or the share of it that a fixed hit ratio
 * leaves) take that long. */
static uint64_t given_Bps(const struct run *r)
{
    bool fixed = !r->setup.trace && !r->setup.params;
    uint64_t cycle = 0;
    for (size_t l = 0; l < r->model->layer_count; l++)
        cycle += r->top_k * r->expert_bytes[l];
    if (fixed)
        cycle = fixed_mul_div(cycle, RATIO_ONE - r->setup.hit_ratio, RATIO_ONE);
    uint64_t rate =
        r->setup.given_io_ns ? fixed_mul_div(cycle, 1000000000, r->setup.given_io_ns) : 0;
    return r->setup.given_io_ns && rate == 0 ? 1 : rate;
}

/* What one copying thread moves, reads and writes both counted. Where the device does not say it: four threads
 * took 29 to 32 GB/s out of the page cache of an M3 Max (flash-moe), so one moves twice 7.5 GB/s. */
static uint64_t copy_Bps(const struct run *r)
{
    const struct value *thread = &r->setup.device->dram.thread_bandwidth;
    uint64_t usual = UINT64_C(15000000000), share = r->machine.dram_Bps / 4;
    return thread->given ? thread->amount : share < usual ? share : usual;
}

static enum status start_loader(struct run *r, struct diag *dg)
{
    const struct engine_profile *p = r->profile;
    uint64_t keys = r->model->layer_count * r->experts;
    uint64_t slots = keys + r->experts;
    struct loader_setup l = {
        .array = r->array,
        .given_Bps = given_Bps(r),
        .unit = r->unit,
        .net = r->net,
        .dram = r->dram,
        .dram_weight = 1,
        .copy_Bps = copy_Bps(r),
        .page_cache = p->io == IO_DIRECT ? NULL : r->page_cache,
        .mapped = p->io == IO_MMAP,
        .fault_bytes = run_amount(&p->fault_bytes, 0),
        .lanes = (uint32_t)r->lanes,
        .slots = (uint32_t)slots,
        .loads_max = (uint32_t)(2 * keys + r->experts + 64),
        .pieces = r->pieces,
        .request_max = request_max(p),
        .copies = run_amount(&p->copies, 0),
        .storage = r->setup.device->storage,
        .shares_cores = p->loader_shares_cores,
        .await_ahead = p->await_prefetch,
        .caller_issues = p->issuer == ISSUER_CALLER,
        .open_ns = run_amount(&p->open, 0),
        .submit_ns = run_amount(&p->submit, 0) + (p->io == IO_MMAP ? run_amount(&p->fault, 0) : 0),
        .complete_ns = run_amount(&p->complete, 0),
        .wake_ns = run_amount(&p->wake, 0),
        .wake_busy_ns = run_amount(&p->wake_busy, 0),
    };
    enum status st = start_link(r, &l, dg);
    return st == ST_OK ? loader_new(&r->loader, r->q, &l, dg) : st;
}

/* What the operating system may keep of the file: all that the run leaves of the memory. */
static enum status start_page_cache(struct run *r, struct diag *dg)
{
    if (r->profile->io == IO_DIRECT && r->profile->dense != DENSE_PAGE_CACHE)
        return ST_OK;
    uint32_t keys = (uint32_t)(r->model->layer_count * (r->experts + 1) + 2);
    return page_cache_new(&r->page_cache, keys, r->placement.spare, dg);
}

enum status run_start_resources(struct run *r, struct diag *dg)
{
    if (evq_new(&r->q, 4) != ST_OK)
        return diag_no_memory(dg);
    enum status st = flow_net_new(&r->net, r->q, (uint32_t)r->lanes * 4 + 64, dg);
    if (st == ST_OK)
        st = flow_resource_add(r->net, r->machine.dram_Bps, &r->dram, dg);
    if (st == ST_OK)
        st = start_array(r, dg);
    if (st == ST_OK)
        st = start_units(r, dg);
    if (st == ST_OK)
        st = start_page_cache(r, dg);
    return st == ST_OK ? start_loader(r, dg) : st;
}
