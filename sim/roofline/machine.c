#include "sim/roofline/machine.h"

#include "base/fixed.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static uint64_t part(uint64_t amount, uint64_t ratio)
{
    return fixed_mul_div(amount, ratio, RATIO_ONE);
}

static const struct value *peak_of(const struct compute *c, bool eight_bit, const char **key)
{
    bool cpu = strcmp(c->name, "cpu") == 0;
    if (cpu && eight_bit && c->int8.given)
        return *key = "int8", &c->int8;
    if (c->f16.given)
        return *key = "f16", &c->f16;
    if (c->f32.given)
        return *key = "f32", &c->f32;
    return c->int8.given ? (*key = "int8", &c->int8) : NULL;
}

static bool has_memory(const struct compute *c)
{
    return c->memory.capacity.given;
}

/* Greater is better; 0: cannot be used. */
static uint64_t rank_of(const struct compute *c, bool eight_bit)
{
    const char *key;
    const struct value *peak = peak_of(c, eight_bit, &key);
    if (!peak)
        return 0;
    uint64_t share = c->efficiency.given ? c->efficiency.amount : 0;
    uint64_t reached = fixed_mul_div(peak->amount, share, RATIO_ONE);
    return reached ? reached : 1 + peak->amount / 1000000000000;
}

static bool better_unit(const struct device *d, const struct machine_choice *choice, size_t i,
                        size_t best)
{
    const struct compute *c = &d->compute[i];
    bool holds = has_memory(c) && c->memory.capacity.amount >= choice->need_bytes / choice->cards;
    if (has_memory(c) && !holds && d->dram.capacity.given)
        return false;
    if (best == d->compute_count)
        return rank_of(c, choice->eight_bit) > 0;
    const struct compute *b = &d->compute[best];
    if (holds != has_memory(b))
        return holds && rank_of(c, choice->eight_bit) > 0;
    return rank_of(c, choice->eight_bit) > rank_of(b, choice->eight_bit);
}

/* "cpu, gpu": what there is to choose from. */
static const char *unit_names(char *out, size_t size, const struct device *d)
{
    size_t used = 0;
    *out = 0;
    for (size_t i = 0; i < d->compute_count && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", d->compute[i].name);
    return out;
}

static enum status named_unit(size_t *out, const struct device *d, const char *name,
                              struct diag *dg)
{
    char names[128];
    for (size_t i = 0; i < d->compute_count; i++)
        if (strcmp(name, d->compute[i].name) == 0) {
            *out = i;
            return ST_OK;
        }
    return diag_set(dg, ST_MISSING, "%s: no compute unit named '%s'; it has %s", d->origin, name,
                    unit_names(names, sizeof names, d));
}

static enum status pick_unit(size_t *out, const struct device *d,
                             const struct machine_choice *choice, struct diag *dg)
{
    size_t best = d->compute_count;
    if (choice->unit)
        return named_unit(out, d, choice->unit, dg);
    for (size_t i = 0; i < d->compute_count; i++)
        if (better_unit(d, choice, i, best))
            best = i;
    if (best == d->compute_count)
        return diag_set(dg, ST_MISSING,
                        "%s: a compute unit with a peak (f32, f16 or int8) is needed", d->origin);
    *out = best;
    return ST_OK;
}

/* Position of an input's part in the description, or NO_INDEX. */
#define NO_INDEX SIZE_MAX

static struct machine_input stated(const char *part, size_t i, const char *key, const char *what,
                                   struct value v)
{
    struct machine_input in = {.what = what, .value = v};
    if (i == NO_INDEX)
        snprintf(in.path, sizeof in.path, "%s.%s", part, key);
    else
        snprintf(in.path, sizeof in.path, "%s.%zu.%s", part, i, key);
    return in;
}

/* As stated, or what this program's rule says where the description is silent. */
static struct machine_input stated_or(const char *part, size_t i, const char *key, const char *what,
                                      struct value v, struct value rule)
{
    struct machine_input in = stated(part, i, key, what, v.given ? v : rule);
    in.by_rule = !v.given;
    return in;
}

static struct value ruled(uint64_t amount, enum dimension dim, const char *rule)
{
    return (struct value){
        .amount = amount, .source = rule, .kind = KIND_ASSUMED, .dim = dim, .given = true};
}

/* The rate to plan with is the measured one; a bound takes the data sheet. */
static struct value memory_rate(const struct memory *mem, enum rates rates)
{
    struct value v = mem->bandwidth;
    if (rates == RATES_PEAK && v.given)
        return v;
    if (mem->measured_bandwidth.given)
        return mem->measured_bandwidth;
    v.amount = fixed_mul_div(v.amount, 8, 10);
    v.kind = KIND_DERIVED;
    v.spread_given = false;
    return v;
}

static void read_flash(struct machine *m, const struct device *d, size_t i)
{
    const struct storage *s = &d->storage[i];
    struct machine_input *in = m->input;
    m->flash = *s;
    m->flash_given = s->bandwidth.given;
    in[INPUT_FLASH_LATENCY] = stated_or("storage", i, "latency", "flash read latency", s->latency,
                                        ruled(0, DIM_TIME, "rule: none stated"));
    in[INPUT_FLASH_LANE] =
        stated("storage", i, "lane_bandwidth", "rate of one read", s->lane_bandwidth);
    in[INPUT_FLASH_BANDWIDTH] = stated("storage", i, "bandwidth", "flash rate", s->bandwidth);
    in[INPUT_FLASH_IOPS] = stated("storage", i, "iops", "small reads a second", s->iops);
}

#define LINK_SHARE (RATIO_ONE / 100 * 85)

/* Packets have headers: a raw rate of a data sheet is not what copies reach. */
static struct value link_rate(const struct compute *c, enum rates rates)
{
    struct value v = c->link_bandwidth;
    if (rates == RATES_PEAK || !v.given || v.kind != KIND_DATASHEET)
        return v;
    v.amount = part(v.amount, LINK_SHARE);
    v.kind = KIND_ASSUMED;
    v.source = "rule: 0.85 of the raw rate";
    v.spread = RATIO_ONE / 10;
    v.spread_given = true;
    return v;
}

static struct value share_or_rule(const struct compute *c, enum rates rates)
{
    if (rates == RATES_PEAK)
        return ruled(RATIO_ONE, DIM_RATIO, "a bound: the whole peak");
    return c->efficiency;
}

/* Of products of many tokens; a stated share is that of one token at a time. A phone whose description
 * says 2.8 % computes a prompt of 34 tokens in at most 1.7 s (bmoe/bench/qwen_stream.log), 8 % at 4 tokens
 * an expert; dense models of 8B on phones reach 10 to 33 %. */
static struct machine_input gemm_share(size_t i, const struct machine_input *one)
{
    struct value rule =
        ruled(RATIO_ONE / 4, DIM_RATIO,
              "rule: a quarter of the peak, where the description states the share of one token");
    rule.spread = RATIO_ONE / 2;
    rule.spread_given = true;
    bool enough = one->by_rule || one->value.amount >= rule.amount;
    return stated_or("compute", i, "efficiency_gemm", "share of the peak reached by many tokens",
                     (struct value){.given = false}, enough ? one->value : rule);
}

static void read_compute(struct machine *m, const struct device *d, size_t i,
                         const struct machine_choice *choice)
{
    const struct compute *c = &d->compute[i];
    const char *key = "";
    struct machine_input *in = m->input;
    struct value share = share_or_rule(c, choice->rates);
    m->unit = c->name;
    m->unit_idx = i;
    m->own_memory = has_memory(c);
    in[INPUT_PEAK] =
        stated("compute", i, key, "peak operations", *peak_of(c, choice->eight_bit, &key));
    snprintf(in[INPUT_PEAK].path, sizeof in[INPUT_PEAK].path, "compute.%zu.%s", i, key);
    in[INPUT_EFFICIENCY] =
        stated_or("compute", i, "efficiency", "share of the peak reached", share,
                  ruled(RATIO_ONE / 2, DIM_RATIO, "rule: half the peak where none is stated"));
    in[INPUT_GEMM] = gemm_share(i, &in[INPUT_EFFICIENCY]);
    in[INPUT_CALL] = stated_or("compute", i, "call_time", "cost of a kernel call", c->call_time,
                               ruled(0, DIM_TIME, "rule: none stated"));
    in[INPUT_LINK] =
        stated("compute", i, "link_bandwidth", "link to the unit", link_rate(c, choice->rates));
    in[INPUT_UNIT_DRAM] = stated("compute", i, "memory.bandwidth", "memory rate of the unit",
                                 memory_rate(&c->memory, choice->rates));
}

/* The unit that computes the experts out of DRAM, beside one with memory of its own. */
static enum status read_host(struct machine *m, const struct device *d,
                             const struct machine_choice *choice, struct diag *dg)
{
    size_t i = 0;
    const char *key = "";
    struct machine_input *in = m->input;
    enum status st = named_unit(&i, d, choice->host, dg);
    if (st != ST_OK)
        return st;
    const struct compute *c = &d->compute[i];
    const struct value *peak = peak_of(c, choice->eight_bit, &key);
    if (!m->own_memory || has_memory(c) || !peak)
        return diag_set(dg, ST_MISSING,
                        "%s: experts on %s: a unit that shares the DRAM, with a peak, is needed, "
                        "beside one with memory of its own",
                        d->origin, c->name);
    m->host = c->name;
    in[INPUT_HOST_PEAK] = stated("compute", i, key, "peak operations of the host", *peak);
    in[INPUT_HOST_EFFICIENCY] =
        stated_or("compute", i, "efficiency", "share of its peak the host reaches",
                  share_or_rule(c, choice->rates),
                  ruled(RATIO_ONE / 2, DIM_RATIO, "rule: half the peak where none is stated"));
    return ST_OK;
}

static enum status check_inputs(const struct machine *m, const struct device *d, struct diag *dg)
{
    const struct value *share = &m->input[INPUT_EFFICIENCY].value;
    if (share->amount > RATIO_ONE || share->amount == 0)
        return diag_set(
            dg, ST_RANGE,
            "%s: %s: an efficiency is above 0 and at most 1: nothing beats its own peak", d->origin,
            m->unit);
    if (m->own_memory && !m->input[INPUT_UNIT_DRAM].value.given)
        return diag_set(dg, ST_MISSING, "%s: %s: memory.bandwidth is needed", d->origin, m->unit);
    if (!m->own_memory && !m->input[INPUT_DRAM].value.given)
        return diag_set(dg, ST_MISSING, "%s: dram.bandwidth is needed", d->origin);
    return ST_OK;
}

void machine_name_units(struct machine_choice *choice, const char *text,
                        char room[MACHINE_UNITS_MAX])
{
    choice->unit = choice->host = NULL;
    if (!text)
        return;
    snprintf(room, MACHINE_UNITS_MAX, "%s", text);
    char *plus = strchr(room, '+');
    if (plus)
        *plus++ = 0;
    choice->unit = room;
    choice->host = plus;
}

enum status machine_init(struct machine *m, const struct device *d,
                         const struct machine_choice *choice, struct diag *dg)
{
    assert(choice->cards >= 1);
    *m = (struct machine){.cards = choice->cards};
    size_t unit = 0;
    enum status st = pick_unit(&unit, d, choice, dg);
    if (st != ST_OK)
        return st;
    const struct compute *c = &d->compute[unit];
    const char *key;
    if (!peak_of(c, choice->eight_bit, &key))
        return diag_set(dg, ST_MISSING, "%s: %s: a peak (f32, f16 or int8) is needed", d->origin,
                        c->name);
    if (choice->storage < d->storage_count)
        read_flash(m, d, choice->storage);
    read_compute(m, d, unit, choice);
    st = choice->host ? read_host(m, d, choice, dg) : ST_OK;
    if (st != ST_OK)
        return st;
    m->link_raw_Bps = m->own_memory && c->link_bandwidth.given ? c->link_bandwidth.amount : 0;
    m->input[INPUT_DRAM] =
        stated("dram", NO_INDEX, "bandwidth", "DRAM rate",
               choice->rates == RATES_PEAK && d->dram.bandwidth.given ? d->dram.bandwidth
                                                                      : device_dram_rate(d));
    m->dram_bytes = d->dram.capacity.given ? d->dram.capacity.amount : 0;
    m->memory_bytes = m->own_memory ? c->memory.capacity.amount : m->dram_bytes;
    m->dram_bytes = fixed_mul(m->dram_bytes, m->cards);
    m->memory_bytes = fixed_mul(m->memory_bytes, m->cards);
    machine_derive(m);
    return check_inputs(m, d, dg);
}

static uint64_t reached(uint64_t peak, uint64_t share)
{
    return part(peak, share > RATIO_ONE ? RATIO_ONE : share);
}

/* A weight costs its unpacking once and a multiplication for each of n tokens, so the time of one token's
 * share is 1/many + (1/one - 1/many)/n. */
uint64_t machine_rows_ops(uint64_t one, uint64_t many, uint64_t rows_e3)
{
    const uint64_t most = UINT64_C(1) << 62;
    uint64_t grown = fixed_mul_div(one, rows_e3, 1000);
    if (rows_e3 <= 1000 || many <= one || many > most)
        return one;
    grown = grown < most ? grown : most;
    return fixed_mul_div(many, grown, grown + (many - one));
}

uint64_t machine_ops(const struct machine *m, uint64_t rows_e3)
{
    return machine_rows_ops(m->reached_ops, m->gemm_ops, rows_e3);
}

uint64_t machine_host_ops(const struct machine *m, uint64_t rows_e3)
{
    return machine_rows_ops(m->host_ops, m->host_gemm_ops, rows_e3);
}

void machine_derive(struct machine *m)
{
    struct machine_input *in = m->input;
    uint64_t share = in[INPUT_EFFICIENCY].value.amount;
    m->flash.latency = in[INPUT_FLASH_LATENCY].value;
    m->flash.lane_bandwidth = in[INPUT_FLASH_LANE].value;
    m->flash.bandwidth = in[INPUT_FLASH_BANDWIDTH].value;
    m->flash.iops = in[INPUT_FLASH_IOPS].value;
    m->dram_Bps = fixed_mul(in[INPUT_DRAM].value.amount, m->own_memory ? 1 : m->cards);
    m->memory_Bps =
        m->own_memory ? fixed_mul(in[INPUT_UNIT_DRAM].value.amount, m->cards) : m->dram_Bps;
    m->link_Bps = m->own_memory && in[INPUT_LINK].value.given ? in[INPUT_LINK].value.amount : 0;
    m->peak_ops = fixed_mul(in[INPUT_PEAK].value.amount, m->cards);
    m->reached_ops = reached(m->peak_ops, share);
    m->gemm_ops = fixed_max(m->reached_ops, reached(m->peak_ops, in[INPUT_GEMM].value.amount));
    uint64_t host = m->host ? in[INPUT_HOST_PEAK].value.amount : 0;
    m->host_ops = reached(host, in[INPUT_HOST_EFFICIENCY].value.amount);
    m->host_gemm_ops = fixed_max(m->host_ops, reached(host, in[INPUT_GEMM].value.amount));
    m->call_ns = in[INPUT_CALL].value.amount;
}

void machine_scale(struct machine *m, enum input_id id, uint64_t factor)
{
    struct value *v = &m->input[id].value;
    v->amount = fixed_mul_div(v->amount, factor, RATIO_ONE);
    machine_derive(m);
}

void machine_scale_flash(struct machine *m, uint64_t factor)
{
    machine_scale(m, INPUT_FLASH_LANE, factor);
    machine_scale(m, INPUT_FLASH_BANDWIDTH, factor);
    machine_scale(m, INPUT_FLASH_IOPS, factor);
    m->flash.link_bandwidth.amount = part(m->flash.link_bandwidth.amount, factor);
}
