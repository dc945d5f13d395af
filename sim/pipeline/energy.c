/* energy.c -- see energy.h. */
#include "sim/pipeline/energy.h"

#include "base/fixed.h"
#include "sim/core/wide.h"

#include <assert.h>
#include <stdio.h>

#define PJ_PER_UJ UINT64_C(1000000)

static uint64_t narrow(wide x)
{
    return x > UINT64_MAX ? UINT64_MAX : (uint64_t)x;
}

/* uW x ns = fJ. */
static wide power_over(uint64_t power_uW, uint64_t ns)
{
    return wide_mul(power_uW, ns) / 1000;
}

static wide flash_energy(const struct device *d, const uint64_t *bytes, unsigned *missing)
{
    wide sum = 0;
    for (size_t i = 0; bytes && i < d->storage_count; i++) {
        const struct storage *s = &d->storage[i];
        if (bytes[i] == 0)
            continue;
        if (!s->read_power.given || !s->bandwidth.given) {
            *missing |= ENERGY_NO_READ_POWER;
            continue;
        }
        assert(s->read_power.amount < UINT64_C(1) << 44); /* 17 MW */
        sum += wide_mul(bytes[i], s->read_power.amount) * PJ_PER_UJ / s->bandwidth.amount;
    }
    return sum;
}

static const struct memory *unit_memory(const struct device *d, const struct compute *unit)
{
    return unit->memory.capacity.given ? &unit->memory : &d->dram;
}

void energy_of(struct energy *out, const struct device *d, size_t unit,
               const struct energy_use *use)
{
    assert(unit < d->compute_count && use->busy_ns <= use->span_ns);
    const struct compute *c = &d->compute[unit];
    uint64_t idle_uW = d->idle_power.given ? d->idle_power.amount : 0;
    *out = (struct energy){.missing = use->link_bytes > 0 ? ENERGY_NO_LINK : 0};
    wide flash = flash_energy(d, use->flash_bytes, &out->missing), dram = 0, compute = 0;
    if (c->energy_per_op.given) {
        const struct value *per_byte = &unit_memory(d, c)->read_energy_per_byte;
        out->form = ENERGY_PARTS;
        compute = wide_mul(c->energy_per_op.amount, use->operations);
        if (per_byte->given)
            dram = wide_mul(per_byte->amount, use->dram_bytes);
        else if (use->dram_bytes > 0)
            out->missing |= ENERGY_NO_DRAM;
    } else if (d->load_power.given) {
        assert(d->load_power.amount >= idle_uW);
        out->form = ENERGY_LOAD;
        compute = power_over(d->load_power.amount - idle_uW, use->busy_ns);
    } else if (use->operations > 0 || use->busy_ns > 0) {
        out->missing |= ENERGY_NO_COMPUTE;
    }
    wide idle = power_over(idle_uW, use->span_ns);
    if (!d->idle_power.given && use->span_ns > 0)
        out->missing |= ENERGY_NO_IDLE;
    out->flash_pJ = narrow(flash);
    out->dram_pJ = narrow(dram);
    out->compute_pJ = narrow(compute);
    out->idle_pJ = narrow(idle);
    out->total_pJ = narrow((wide)out->flash_pJ + out->dram_pJ + out->compute_pJ + out->idle_pJ);
}

const char *energy_form_name(enum energy_form form)
{
    static const char *const names[] = {"unknown", "parts", "load"};
    return names[form];
}

const char *energy_missing_text(char buffer[ENERGY_MISSING_MAX], unsigned missing)
{
    static const char *const names[ENERGY_INPUTS] = {
        "storage read_power", "dram.read_energy_per_byte", "energy of a link",
        "compute energy_per_op or load_power", "idle_power"};
    size_t length = 0;
    buffer[0] = 0;
    for (unsigned i = 0; i < ENERGY_INPUTS; i++)
        if (missing >> i & 1)
            length += (size_t)snprintf(buffer + length, ENERGY_MISSING_MAX - length, "%s%s",
                                       length ? ", " : "", names[i]);
    assert(length < ENERGY_MISSING_MAX);
    return buffer;
}

uint64_t energy_mean_uW(uint64_t energy_pJ, uint64_t span_ns)
{
    return span_ns ? fixed_mul_div(energy_pJ, 1000, span_ns) : 0;
}

bool energy_battery_ms(uint64_t *out, const struct device *d, uint64_t mean_uW)
{
    if (!d->battery.given || mean_uW == 0)
        return false;
    *out = d->battery.amount / 1000 / mean_uW;
    return true;
}
