/* campaign_cells.c -- which cells the matrix has. Budgets are shares of all experts, from the least that a token needs to all
 * of them; everything else varies around one plain cell, and emulated flash is beside a cell without it. */
#include "validate/campaign.h"

struct matrix_of {
    struct measured_cell *cell;
    size_t count, room;
    const struct model *model;
    size_t threads;
};

static uint64_t budget(const struct matrix_of *m, unsigned percent)
{
    uint64_t all = model_experts_bytes(m->model), bytes = all / 100 * percent;
    uint64_t least = 4 * model_top_k(m->model) * model_expert_bytes_max(m->model);
    if (percent >= 100)
        return all;
    return bytes > least ? bytes : least < all ? least : all;
}

static struct measured_cell *add(struct matrix_of *m, const char *policy, const char *prefetch,
                                 unsigned percent)
{
    struct measured_cell *c = &m->cell[m->count < m->room ? m->count++ : m->room - 1];
    *c = (struct measured_cell){.policy = cache_policy_find(policy),
                                .prefetch = prefetch_policy_find(prefetch),
                                .cache_bytes = budget(m, percent),
                                .overlap = true,
                                .lanes = 16,
                                .threads = m->threads,
                                .base = -1};
    return c;
}

static int last(const struct matrix_of *m)
{
    return (int)m->count - 1;
}

/* The same cell with slower flash. */
static void intervene(struct matrix_of *m, int base, uint64_t rate_Bps, uint64_t latency_ns)
{
    if (m->count == m->room)
        return;
    m->cell[m->count] = m->cell[base];
    m->cell[m->count].limit_rate_Bps = rate_Bps;
    m->cell[m->count].add_latency_ns = latency_ns;
    m->cell[m->count].base = base;
    m->count++;
}

static void quick_cells(struct matrix_of *m)
{
    add(m, "lru", "none", 15);
    add(m, "lru", "none", 30);
    int plain = last(m);
    add(m, "lru", "none", 60);
    add(m, "lru", "none", 100);
    add(m, "lfu", "none", 30);
    add(m, "s3fifo", "none", 30);
    add(m, "lru", "none", 30)->overlap = false;
    add(m, "lru", "gate", 30);
    intervene(m, plain, 300000000, 0);
    intervene(m, plain, 0, 200000);
}

static void full_cells(struct matrix_of *m, bool packed)
{
    static const unsigned budgets[] = {10, 20, 35, 50, 75, 100};
    static const char *const policies[] = {"lru", "lfu", "s3fifo", "least-stale"};
    static const char *const prefetchers[] = {"gate", "frequency"};
    for (size_t b = 0; b < 6; b++)
        for (size_t p = 0; p < 4; p++)
            add(m, policies[p], "none", budgets[b]);
    for (size_t b = 0; b < 6; b++)
        for (size_t f = 0; f < 2; f++)
            add(m, "lru", prefetchers[f], budgets[b]);
    for (size_t b = 0; b < 5; b++)
        add(m, "lru", "none", budgets[b])->overlap = false;
    for (size_t b = 1; b < 4; b++)
        add(m, "lru", "none", budgets[b])->lanes = 2;
    for (size_t b = 1; b < 4; b++)
        add(m, "lru", "none", budgets[b])->lanes = 4;
    for (size_t b = 0; b < 6; b++)
        add(m, "lru", "none", budgets[b])->threads = 1;
    for (size_t b = 0; packed && b < 6; b++)
        add(m, "lru", "none", budgets[b])->packed = true;
    for (size_t b = 0; b < 5; b++) {
        int base = (int)(4 * b); /* lru at that budget */
        intervene(m, base, 1000000000, 0);
        intervene(m, base, 300000000, 0);
        intervene(m, base, 0, 300000);
    }
}

size_t measured_cells(struct measured_cell *cell, size_t room, const struct model *model,
                      const struct measured_setup *s)
{
    struct matrix_of m = {.cell = cell, .room = room, .model = model, .threads = host_processors()};
    if (s->quick)
        quick_cells(&m);
    else
        full_cells(&m, s->pack != NULL);
    return m.count;
}
