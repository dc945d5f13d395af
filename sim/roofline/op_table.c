#include "sim/roofline/op_table.h"

#include "base/fixed.h"

static uint64_t part(uint64_t amount, uint64_t ratio)
{
    return fixed_mul_div(amount, ratio, RATIO_ONE);
}

static void take(struct op_row *row, uint64_t ns, const char *resource)
{
    if (ns > row->bound_ns) {
        row->bound_ns = ns;
        row->binds = resource;
    }
}

static void bound_row(struct op_row *row, const struct machine *m, uint64_t tokens)
{
    row->flash_ns = row->flash_bytes ? time_for(row->flash_bytes, m->flash.bandwidth.amount) : 0;
    row->dram_ns = time_for(row->dram_bytes, m->memory_Bps);
    row->link_ns = row->link_bytes ? time_for(row->link_bytes, m->link_Bps) : 0;
    row->compute_ns = time_for(row->ops, machine_ops(m, tokens * 1000));
    row->binds = "compute";
    row->bound_ns = row->compute_ns;
    take(row, row->dram_ns, "DRAM");
    take(row, row->link_ns, "link");
    take(row, row->flash_ns, "flash");
}

/* What a group reads from flash again: experts by misses; the head as the caller asked; else the
 * streamed share of a layer's weights. */
static uint64_t flash_bytes(enum tensor_group g, const struct workload *l, const struct regime *r)
{
    uint64_t in_layers = l->total.weight_bytes[g] - l->ends.weight_bytes[g];
    if (g == GROUP_EXPERT)
        return part(in_layers, RATIO_ONE - r->hit_ratio);
    if (g == GROUP_HEAD)
        return r->stream_bytes;
    return part(in_layers, r->stream_trunk);
}

static void fill_group(struct op_row *row, enum tensor_group g, const struct workload *l,
                       const struct machine *m, const struct regime *r)
{
    uint64_t weights = l->total.weight_bytes[g];
    *row = (struct op_row){.name = tensor_group_name(g), .ops = l->total.ops[g]};
    row->flash_bytes = flash_bytes(g, l, r);
    row->dram_bytes = weights;
    if (!m->own_memory) {
        row->dram_bytes += row->flash_bytes * (1 + 2 * r->copies);
        return;
    }
    row->link_bytes = g == GROUP_EXPERT && !r->experts_on_unit ? weights : row->flash_bytes;
    row->dram_bytes += row->link_bytes;
}

size_t op_table(struct op_row rows[OP_ROWS], const struct workload *l, const struct machine *m,
                const struct regime *r)
{
    size_t count = 0;
    for (int g = 0; g < GROUP_MAX; g++) {
        fill_group(&rows[count], (enum tensor_group)g, l, m, r);
        bound_row(&rows[count], m, l->tokens);
        count += rows[count].ops || rows[count].dram_bytes;
        if (g != GROUP_ATTENTION)
            continue;
        rows[count] = (struct op_row){
            .name = "state",
            .ops = l->total.attention_ops,
            .dram_bytes = l->total.state_read_bytes + l->total.state_write_bytes,
        };
        bound_row(&rows[count], m, l->tokens);
        count += rows[count].ops || rows[count].dram_bytes;
    }
    return count;
}
