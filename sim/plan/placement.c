/* placement.c -- see placement.h. */
#include "sim/plan/placement.h"

#include "base/fixed.h"

#define ACTIVATION_BYTES 16 /* hidden state, normed copy, FFN and residual, 32 bits each */

uint64_t placement_buffers(const struct model *m, const struct placement_request *r)
{
    uint64_t expert = model_expert_bytes_max(m);
    uint64_t piece = r->pieces ? (expert + r->pieces - 1) / r->pieces : 0;
    return r->lanes * piece + r->chunk * m->hidden * ACTIVATION_BYTES + m->vocab * 4;
}

/* One layer's chosen experts: less than that no token can run. */
static uint64_t least_cache(const struct model *m)
{
    uint64_t least = 0;
    for (size_t i = 0; i < m->layer_count; i++) {
        const struct layer *l = &m->layers[i];
        uint64_t need = l->ffn.experts ? l->ffn.top_k * l->expert_bytes : 0;
        least = need > least ? need : least;
    }
    return least;
}

static uint64_t trunk_bytes(const struct model *m, size_t layer)
{
    uint64_t sum = 0;
    for (int g = 0; g < GROUP_MAX; g++)
        sum += g == GROUP_EXPERT ? 0 : m->layers[layer].weight_bytes[g];
    return sum;
}

static uint64_t largest_trunk(const struct model *m)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        largest = trunk_bytes(m, i) > largest ? trunk_bytes(m, i) : largest;
    return largest;
}

static enum status find_given(struct placement *p, const struct device *d,
                              const struct placement_request *r, uint64_t capacity, struct diag *dg)
{
    if (r->memory) {
        if (capacity && r->memory > capacity && !r->hypothetical) {
            char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
            return diag_set(dg, ST_MISFIT, "%s: %s of memory asked for, the device has %s", d->name,
                            quantity_print(a, r->memory, DIM_SIZE),
                            quantity_print(b, capacity, DIM_SIZE));
        }
        p->given = r->memory;
        return ST_OK;
    }
    if (!capacity)
        return diag_set(dg, ST_MISSING, "%s: the device states no memory capacity: give --dram",
                        d->name);
    p->reserve_by_rule = !d->reserve.given;
    p->reserve = d->reserve.given ? d->reserve.amount : capacity / 4;
    if (p->reserve >= capacity)
        return diag_set(dg, ST_MISFIT, "%s: the reserve takes the whole memory", d->name);
    p->given = capacity - p->reserve;
    return ST_OK;
}

static enum status refuse(const struct placement *p, const struct model *m, const char *where,
                          uint64_t need, const char *advice, struct diag *dg)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    return diag_set(dg, ST_MISFIT, "%s does not fit: it needs at least %s %s, %s is given%s",
                    m->name, quantity_round(a, need, DIM_SIZE), where,
                    quantity_round(b, p->given, DIM_SIZE), advice);
}

/* Resident: the embedding table can be left on flash at one row a token, so it goes first; of the rest
 * as much as fits stays, the remainder is read again in every pass. */
static enum status stream_dense(struct placement *p, const struct model *m,
                                const struct placement_request *r, uint64_t least, struct diag *dg)
{
    uint64_t table = m->tied_embeddings ? 0 : m->bytes_embedding;
    uint64_t head = m->bytes_head ? m->bytes_head : m->bytes_embedding;
    uint64_t window = 2 * largest_trunk(m), fixed = p->state + p->buffers + least;
    uint64_t need = fixed + (window > head ? window : head);
    if (p->given < need)
        return refuse(p, m, "even with dense weights streamed", need, "", dg);
    uint64_t wanted = p->dense - table, resident = p->given - fixed, rest = 0;
    if (r->dense_most && r->dense_most < resident) {
        rest = resident - r->dense_most;
        resident = r->dense_most;
    }
    if (resident >= wanted) {
        p->dense_resident = wanted;
        p->cache = resident - wanted + least + rest;
        return ST_OK;
    }
    p->dense_resident = resident;
    uint64_t missing = wanted - resident + (window < resident ? window : resident);
    uint64_t share = missing >= wanted ? RATIO_ONE : fixed_mul_div(missing, RATIO_ONE, wanted);
    p->stream_trunk = share;
    p->stream_bytes = fixed_mul_div(head, share, RATIO_ONE);
    p->cache = least + rest;
    return ST_OK;
}

static enum status set_cache(struct placement *p, const struct model *m,
                             const struct placement_request *r, uint64_t least, struct diag *dg)
{
    if (r->cache_given && p->experts) {
        char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
        uint64_t asked = r->cache < p->experts ? r->cache : p->experts;
        if (asked > p->cache)
            return diag_set(dg, ST_MISFIT, "%s: a cache of %s was asked for, %s is left for it",
                            m->name, quantity_print(a, r->cache, DIM_SIZE),
                            quantity_round(b, p->cache, DIM_SIZE));
        if (asked && asked < least)
            return diag_set(dg, ST_MISFIT, "%s: a cache holds at least one layer's experts, %s",
                            m->name, quantity_round(a, least, DIM_SIZE));
        p->cache = asked;
    }
    if (p->cache > p->experts)
        p->cache = p->experts;
    return ST_OK;
}

static enum status place_rest(struct placement *p, const struct model *m, const char *where,
                              const struct placement_request *r, struct diag *dg)
{
    uint64_t least = least_cache(m), fixed = p->dense + p->state + p->buffers;
    p->minimum = fixed + least;
    p->dense_resident = p->dense;
    enum status st = ST_OK;
    bool held_back = r->stream_dense && r->dense_most && r->dense_most < p->dense;
    if (p->given >= p->minimum && !held_back)
        p->cache = p->given - fixed;
    else if (r->stream_dense)
        st = stream_dense(p, m, r, least, dg);
    else
        return refuse(p, m, where, p->minimum,
                      p->experts
                          ? "; with --dense stream what does not fit is read again for every token"
                          : "; --quant with fewer bits needs less, --dense stream reads what does "
                            "not fit again for every token",
                      dg);
    if (st == ST_OK)
        st = set_cache(p, m, r, least, dg);
    if (st != ST_OK)
        return st;
    uint64_t used = p->dense_resident + p->state + p->buffers + p->cache;
    p->spare = p->given > used ? p->given - used : 0;
    p->fits = p->cache == p->experts && !p->stream_trunk && !p->stream_bytes;
    return ST_OK;
}

/* Dense weights beside the unit, experts in DRAM. */
static enum status place_apart(struct placement *p, const struct model *m, const struct device *d,
                               const struct machine *machine, const struct placement_request *r,
                               struct diag *dg)
{
    uint64_t unit_need = p->dense + p->state + p->buffers;
    bool streams = r->stream_dense && machine->memory_bytes < unit_need;
    if (streams) {
        uint64_t head = m->bytes_head ? m->bytes_head : m->bytes_embedding;
        p->stream_trunk = RATIO_ONE;
        p->stream_bytes = head;
        p->dense_resident = trunk_bytes(m, m->layer_count - 1) + head;
        unit_need = p->dense_resident + p->state + p->buffers;
    }
    if (machine->memory_bytes < unit_need) {
        p->given = machine->memory_bytes;
        return refuse(p, m, "in the memory of the unit", unit_need, "", dg);
    }
    if (!machine->dram_bytes || !machine->link_Bps) {
        p->given = machine->memory_bytes;
        return refuse(p, m, "in the memory of the unit", unit_need + p->experts,
                      " and the device states no DRAM and link to stream from", dg);
    }
    enum status st = find_given(p, d, r, machine->dram_bytes, dg);
    if (st != ST_OK)
        return st;
    p->minimum = least_cache(m);
    if (!streams)
        p->dense_resident = p->dense;
    if (p->given < p->minimum)
        return refuse(p, m, "of DRAM", p->minimum, "", dg);
    p->cache = p->given;
    st = set_cache(p, m, r, p->minimum, dg);
    p->spare = st == ST_OK ? p->given - p->cache : 0;
    return st;
}

enum status placement_find(struct placement *out, const struct model *m, const struct device *d,
                           const struct machine *machine, const struct placement_request *r,
                           struct diag *dg)
{
    struct placement *p = out;
    *p = (struct placement){.weights = model_weight_bytes(m), .experts = model_experts_bytes(m)};
    p->dense = p->weights - p->experts;
    p->state = state_bytes(m, r->context, r->state_bits);
    p->buffers = placement_buffers(m, r);
    if (!machine->own_memory) {
        enum status st = find_given(p, d, r, machine->dram_bytes, dg);
        return st == ST_OK ? place_rest(p, m, "of memory", r, dg) : st;
    }
    p->experts_on_unit =
        !machine->host && p->weights + p->state + p->buffers <= machine->memory_bytes;
    if (!p->experts_on_unit)
        return place_apart(p, m, d, machine, r, dg);
    p->given = machine->memory_bytes;
    return place_rest(p, m, "in the memory of the unit", r, dg);
}
