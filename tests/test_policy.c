/* test_policy.c -- each replacement policy against a second form of it, written from its paper over plain
 * arrays: the same hits and the same victims, one by one, on streams with reuse, scans and repeats.
 *
 * The second forms spend a search on every step and know nothing of links or heaps, so a slip in either
 * shows as the first victim that differs. */
#include "tests/support.h"

#include "base/pcg.h"
#include "sim/policy/cache_policy.h"

enum { LAYERS = 4, EXPERTS = 16, KEYS = LAYERS * EXPERTS, BATCHES = 3000 };

/* ---- the second forms ---- */

struct row { /* keys in order, the oldest first */
    uint32_t key[KEYS];
    size_t count;
};

struct plain {
    uint32_t slots, target, layer;
    struct row one, two, ghost_one, ghost_two;
    size_t hand;
    uint32_t uses[KEYS], used_at[KEYS], visits[LAYERS], now, since_aging;
    bool adapted;
};

static size_t place(const struct row *r, uint32_t key)
{
    size_t i = 0;
    while (i < r->count && r->key[i] != key)
        i++;
    return i;
}

static bool has(const struct row *r, uint32_t key)
{
    return place(r, key) < r->count;
}

static uint32_t take_at(struct row *r, size_t i)
{
    uint32_t key = r->key[i];
    memmove(&r->key[i], &r->key[i + 1], (--r->count - i) * sizeof *r->key);
    return key;
}

static bool take(struct row *r, uint32_t key)
{
    bool found = has(r, key);
    if (found)
        take_at(r, place(r, key));
    return found;
}

static void put_at(struct row *r, size_t i, uint32_t key)
{
    memmove(&r->key[i + 1], &r->key[i], (r->count++ - i) * sizeof *r->key);
    r->key[i] = key;
}

static void put(struct row *r, uint32_t key)
{
    put_at(r, r->count, key);
}

static void renew(struct row *r, uint32_t key)
{
    if (take(r, key))
        put(r, key);
}

/* The oldest that is not held, taken out; NO_KEY if there is none. */
static uint32_t take_oldest(struct row *r, const uint8_t *held)
{
    for (size_t i = 0; i < r->count; i++)
        if (!held[r->key[i]])
            return take_at(r, i);
    return NO_KEY;
}

static void idle(struct plain *p, uint32_t key)
{
    (void)p, (void)key;
}

static void append(struct plain *p, uint32_t key)
{
    put(&p->one, key);
}

static void renew_one(struct plain *p, uint32_t key)
{
    renew(&p->one, key);
}

static uint32_t oldest(struct plain *p, const uint8_t *held, uint32_t incoming)
{
    (void)incoming;
    return take_oldest(&p->one, held);
}

/* CLOCK: a ring with a hand; what is new goes in just behind the hand. */
static void mark(struct plain *p, uint32_t key)
{
    p->uses[key] = 1;
}

static void clock_put(struct plain *p, uint32_t key)
{
    p->uses[key] = 0;
    put_at(&p->one, p->hand, key);
    p->hand = (p->hand + 1) % p->one.count;
}

static uint32_t clock_turn(struct plain *p, const uint8_t *held, uint32_t incoming)
{
    (void)incoming;
    for (;; p->hand = (p->hand + 1) % p->one.count) {
        uint32_t key = p->one.key[p->hand];
        if (held[key])
            continue;
        if (!p->uses[key]) {
            take_at(&p->one, p->hand);
            p->hand = p->one.count ? p->hand % p->one.count : 0;
            return key;
        }
        p->uses[key] = 0;
    }
}

/* SIEVE, algorithm 1: `hand` is one more than the place of the next candidate, 0 starts at the oldest. */
static void sieve_put(struct plain *p, uint32_t key)
{
    p->uses[key] = 0;
    put(&p->one, key);
}

static uint32_t sieve_sift(struct plain *p, const uint8_t *held, uint32_t incoming)
{
    (void)incoming;
    size_t i = p->hand ? p->hand - 1 : 0;
    for (;; i = (i + 1) % p->one.count) {
        uint32_t key = p->one.key[i];
        if (!held[key] && !p->uses[key])
            break;
        if (!held[key])
            p->uses[key] = 0;
    }
    uint32_t key = take_at(&p->one, i);
    p->hand = i < p->one.count ? i + 1 : 0;
    return key;
}

/* SLRU: `one` probation, `two` protected. */
static void slru_use(struct plain *p, uint32_t key)
{
    size_t most = p->slots * 4 / 5;
    bool was_protected = has(&p->two, key);
    renew(&p->one, key);
    renew(&p->two, key);
    if (was_protected || most == 0)
        return;
    take(&p->one, key);
    put(&p->two, key);
    if (p->two.count > most)
        put(&p->one, take_at(&p->two, 0));
}

static void renew_both(struct plain *p, uint32_t key)
{
    renew(&p->one, key);
    renew(&p->two, key);
}

static uint32_t one_then_two(struct plain *p, const uint8_t *held, uint32_t incoming)
{
    (void)incoming;
    uint32_t key = take_oldest(&p->one, held);
    return key != NO_KEY ? key : take_oldest(&p->two, held);
}

/* S3-FIFO, algorithm 1: `one` small, `two` main. */
static uint32_t small_most(const struct plain *p)
{
    return p->slots >= 10 ? p->slots / 10 : 1;
}

static void s3fifo_use(struct plain *p, uint32_t key)
{
    p->uses[key] = p->uses[key] < 3 ? p->uses[key] + 1 : 3;
}

static void s3fifo_put(struct plain *p, uint32_t key)
{
    put(take(&p->ghost_one, key) ? &p->two : &p->one, key);
    p->uses[key] = 0;
}

static uint32_t s3fifo_small(struct plain *p, const uint8_t *held)
{
    uint32_t key;
    while ((key = take_oldest(&p->one, held)) != NO_KEY && p->uses[key] > 1) {
        put(&p->two, key);
        p->uses[key] = 0;
    }
    if (key != NO_KEY && p->slots > small_most(p)) {
        if (p->ghost_one.count == p->slots - small_most(p))
            take_at(&p->ghost_one, 0);
        put(&p->ghost_one, key);
    }
    return key;
}

static uint32_t s3fifo_main(struct plain *p, const uint8_t *held)
{
    uint32_t key;
    while ((key = take_oldest(&p->two, held)) != NO_KEY && p->uses[key] > 0) {
        put(&p->two, key);
        p->uses[key]--;
    }
    return key;
}

static uint32_t s3fifo_evict(struct plain *p, const uint8_t *held, uint32_t incoming)
{
    (void)incoming;
    uint32_t key = p->one.count >= small_most(p) ? s3fifo_small(p, held) : NO_KEY;
    key = key != NO_KEY ? key : s3fifo_main(p, held);
    return key != NO_KEY ? key : s3fifo_small(p, held);
}

/* ARC, figure 4: `one` T1, `two` T2 and their ghosts. */
static void arc_use(struct plain *p, uint32_t key)
{
    take(&p->one, key);
    take(&p->two, key);
    put(&p->two, key);
}

static void arc_adapt(struct plain *p, uint32_t key)
{
    uint32_t b1 = (uint32_t)p->ghost_one.count, b2 = (uint32_t)p->ghost_two.count;
    if (!p->adapted && has(&p->ghost_one, key)) {
        p->target += b1 >= b2 ? 1 : b2 / b1;
        p->target = p->target < p->slots ? p->target : p->slots;
    } else if (!p->adapted && has(&p->ghost_two, key)) {
        uint32_t step = b2 >= b1 ? 1 : b1 / b2;
        p->target = p->target > step ? p->target - step : 0;
    }
    p->adapted = true;
}

static uint32_t arc_replace(struct plain *p, const uint8_t *held, uint32_t incoming)
{
    arc_adapt(p, incoming);
    bool returns = has(&p->ghost_two, incoming);
    bool recent = p->one.count > p->target || (returns && p->one.count == p->target);
    struct row *first = recent ? &p->one : &p->two, *second = recent ? &p->two : &p->one;
    uint32_t key = take_oldest(first, held);
    bool from_first = key != NO_KEY;
    key = from_first ? key : take_oldest(second, held);
    bool from_one = (first == &p->one) == from_first;
    if (key != NO_KEY)
        put(from_one ? &p->ghost_one : &p->ghost_two, key);
    return key;
}

static void arc_put(struct plain *p, uint32_t key)
{
    arc_adapt(p, key);
    p->adapted = false;
    bool known = take(&p->ghost_one, key);
    known |= take(&p->ghost_two, key);
    put(known ? &p->two : &p->one, key);
    while (p->ghost_one.count && p->one.count + p->ghost_one.count > p->slots)
        take_at(&p->ghost_one, 0);
    while (p->ghost_two.count &&
           p->one.count + p->two.count + p->ghost_one.count + p->ghost_two.count > 2 * p->slots)
        take_at(&p->ghost_two, 0);
}

/* LFU: all uses since the start, ties by the oldest use; aged: all halved every ten uses a slot. */
static void stamp(struct plain *p, uint32_t key)
{
    p->used_at[key] = ++p->now;
}

static void lfu_use(struct plain *p, uint32_t key)
{
    p->uses[key]++;
    stamp(p, key);
}

static void lfu_put(struct plain *p, uint32_t key)
{
    put(&p->one, key);
    lfu_use(p, key);
}

static void aged_use(struct plain *p, uint32_t key)
{
    lfu_use(p, key);
    if (++p->since_aging < 10 * p->slots)
        return;
    p->since_aging = 0;
    for (uint32_t k = 0; k < KEYS; k++)
        p->uses[k] /= 2;
}

static void aged_put(struct plain *p, uint32_t key)
{
    put(&p->one, key);
    aged_use(p, key);
}

static bool goes_before(const struct plain *p, uint32_t a, uint32_t b)
{
    return p->uses[a] != p->uses[b] ? p->uses[a] < p->uses[b] : p->used_at[a] < p->used_at[b];
}

static uint32_t least_used(struct plain *p, const uint8_t *held, uint32_t incoming)
{
    (void)incoming;
    uint32_t best = NO_KEY;
    for (size_t i = 0; i < p->one.count; i++) {
        uint32_t key = p->one.key[i];
        if (!held[key] && (best == NO_KEY || goes_before(p, key, best)))
            best = key;
    }
    if (best != NO_KEY)
        take(&p->one, best);
    return best;
}

/* Least stale: uses[] is the visit of its layer in which a key was last used. */
static void stale_use(struct plain *p, uint32_t key)
{
    renew(&p->one, key);
    p->uses[key] = p->visits[key / EXPERTS];
}

static void stale_put(struct plain *p, uint32_t key)
{
    put(&p->one, key);
    stale_use(p, key);
}

static uint32_t stalest(struct plain *p, const uint8_t *held, uint32_t incoming)
{
    (void)incoming;
    uint64_t best_rank = 0;
    uint32_t best = NO_KEY;
    for (size_t i = 0; i < p->one.count; i++) {
        uint32_t key = p->one.key[i], layer = key / EXPERTS;
        uint64_t age = p->visits[layer] - p->uses[key];
        uint64_t rank = 1 + age * LAYERS + (layer + LAYERS - p->layer - 1) % LAYERS;
        if (held[key] || rank <= best_rank)
            continue;
        best_rank = rank;
        best = key;
    }
    if (best != NO_KEY)
        take(&p->one, best);
    return best;
}

static const struct form {
    const char *policy;
    void (*hit)(struct plain *p, uint32_t key);
    void (*again)(struct plain *p, uint32_t key);
    void (*insert)(struct plain *p, uint32_t key);
    uint32_t (*victim)(struct plain *p, const uint8_t *held, uint32_t incoming);
} forms[] = {
    {"fifo", idle, idle, append, oldest},
    {"lru", renew_one, renew_one, append, oldest},
    {"clock", mark, idle, clock_put, clock_turn},
    {"lfu", lfu_use, stamp, lfu_put, least_used},
    {"lfu-aged", aged_use, stamp, aged_put, least_used},
    {"slru", slru_use, renew_both, append, one_then_two},
    {"sieve", mark, idle, sieve_put, sieve_sift},
    {"s3fifo", s3fifo_use, idle, s3fifo_put, s3fifo_evict},
    {"arc", arc_use, renew_both, arc_put, arc_replace},
    {"least-stale", stale_use, stale_use, stale_put, stalest},
};

/* ---- both beside each other ---- */

struct pair {
    const struct form *form;
    const struct cache_policy *policy;
    struct plain plain;
    void *state;
    uint8_t member[KEYS], held[KEYS];
    uint32_t count;
    size_t victims;
};

static void pair_open(struct pair *x, const struct form *form, uint32_t slots)
{
    struct policy_setup setup = {
        .keys = KEYS, .slots = slots, .layers = LAYERS, .experts = EXPERTS};
    *x = (struct pair){.form = form, .policy = cache_policy_find(form->policy)};
    assert_non_null(x->policy);
    x->plain.slots = slots;
    x->state = calloc(1, x->policy->state_bytes(&setup));
    assert_non_null(x->state);
    x->policy->start(x->state, &setup);
}

static void look_up(struct pair *x, uint32_t key, bool seen)
{
    struct guard guard = {x->held};
    if (seen) {
        if (x->policy->again)
            x->policy->again(x->state, key);
        x->form->again(&x->plain, key);
        return;
    }
    if (x->member[key]) {
        x->policy->hit(x->state, key);
        x->form->hit(&x->plain, key);
        return;
    }
    if (x->count == x->plain.slots) {
        uint32_t victim = x->policy->victim(x->state, &guard, key);
        assert_int_equal(victim, x->form->victim(&x->plain, x->held, key));
        assert_true(victim != NO_KEY && x->member[victim] && !x->held[victim]);
        x->member[victim] = 0;
        x->count--;
        x->victims++;
    }
    x->policy->insert(x->state, key);
    x->form->insert(&x->plain, key);
    x->member[key] = 1;
    x->count++;
}

/* While every member is held there is no victim, and asking for one changes nothing. */
static void ask_in_vain(struct pair *x)
{
    struct guard all = {x->member};
    assert_int_equal(x->policy->victim(x->state, &all, NO_KEY), NO_KEY);
}

static void run_batch(struct pair *x, uint32_t layer, const uint32_t *ids, size_t n)
{
    bool seen[KEYS] = {false};
    memset(x->held, 0, sizeof x->held);
    for (size_t i = 0; i < n; i++)
        x->held[ids[i]] = 1;
    x->plain.layer = layer;
    x->plain.visits[layer]++;
    if (x->policy->batch)
        x->policy->batch(x->state, layer);
    for (size_t i = 0; i < n; i++) {
        look_up(x, ids[i], seen[ids[i]]);
        seen[ids[i]] = true;
    }
}

/* Skewed choices, now and then a scan, and up to `distinct` experts with one repeat. */
static size_t draw_batch(struct pcg *chance, uint32_t layer, uint32_t batch, uint32_t distinct,
                         uint32_t *ids)
{
    size_t n = 1 + pcg_below(chance, distinct);
    bool scan = batch % 50 < 10;
    for (size_t i = 0; i < n; i++) {
        uint32_t reach = 1 + pcg_below(chance, EXPERTS);
        uint32_t expert = scan ? (batch + (uint32_t)i) % EXPERTS : pcg_below(chance, reach);
        ids[i] = layer * EXPERTS + expert;
    }
    ids[n] = ids[pcg_below(chance, (uint32_t)n)];
    return n + pcg_below(chance, 2);
}

static void compare(const struct form *form, uint32_t slots, uint64_t seed)
{
    struct pair x;
    struct pcg chance;
    uint32_t ids[8], distinct = slots < 4 ? slots : 4;
    pair_open(&x, form, slots);
    pcg_stream(&chance, seed, "test/policy");
    for (uint32_t i = 0; i < BATCHES; i++) {
        uint32_t layer = i % LAYERS;
        run_batch(&x, layer, ids, draw_batch(&chance, layer, i, distinct, ids));
        if (i % 7 == 0)
            ask_in_vain(&x);
    }
    assert_true(slots == KEYS || x.victims > 10);
    free(x.state);
}

static void every_policy_evicts_what_its_paper_says(void **state)
{
    (void)state;
    static const uint32_t slots[] = {1, 2, 4, 5, 9, 10, 20, 37, 63, KEYS};
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (size_t s = 0; s < sizeof slots / sizeof *slots; s++)
            for (uint64_t seed = 1; seed <= 3; seed++)
                compare(&forms[f], slots[s], seed);
}

/* Eight members, one of them held: each of the other seven leaves in a seventh of the draws. The victim comes
 * back at once, so that the order of the members changes all the time. */
static void random_takes_every_member_that_is_not_held_equally_often(void **state)
{
    (void)state;
    enum { MEMBERS = 8, HELD = 3, DRAWS = 70000 };
    struct policy_setup setup = {
        .keys = MEMBERS, .slots = MEMBERS, .layers = 1, .experts = MEMBERS};
    const struct cache_policy *p = cache_policy_find("random");
    uint8_t held[MEMBERS] = {[HELD] = 1};
    const struct guard guard = {held};
    uint32_t left[MEMBERS] = {0};
    pcg_stream(&setup.chance, 1, "test/random");
    void *random = calloc(1, p->state_bytes(&setup));
    assert_non_null(random);
    p->start(random, &setup);
    for (uint32_t key = 0; key < MEMBERS; key++)
        p->insert(random, key);
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint32_t victim = p->victim(random, &guard, NO_KEY);
        assert_in_range(victim, 0, MEMBERS - 1);
        left[victim]++;
        p->insert(random, victim);
    }
    for (uint32_t key = 0; key < MEMBERS; key++) /* five standard errors of 93 */
        assert_close(left[key], key == HELD ? 0 : DRAWS / 7, key == HELD ? 0 : 465);
    free(random);
}

/* All of the table but those that need no such form: none, pinned and belady have laws in
 * test_replay.c, random has the one above. */
static void every_policy_has_a_second_form_or_a_law(void **state)
{
    (void)state;
    size_t count = 0;
    for (const struct cache_policy *const *p = cache_policies; *p; p++)
        count++;
    assert_int_equal(count, sizeof forms / sizeof *forms + 4);
}

/* Four slots: 5 drives out 2, because 1 was visited; then the hand goes on to 3, 4 and 5 and leaves 1 behind
 * it, where CLOCK and LRU would have evicted it by now. */
static void sieve_goes_on_where_it_stopped(void **state)
{
    (void)state;
    struct pair x;
    static const uint32_t string[] = {1, 2, 3, 4, 1, 5, 6, 7, 8};
    pair_open(&x, &forms[6], 4);
    assert_string_equal(x.policy->name, "sieve");
    for (size_t i = 0; i < sizeof string / sizeof *string; i++)
        run_batch(&x, 0, &string[i], 1);
    assert_true(x.member[1] && x.member[6] && x.member[7] && x.member[8]);
    free(x.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_evicts_what_its_paper_says),
        cmocka_unit_test(random_takes_every_member_that_is_not_held_equally_often),
        cmocka_unit_test(every_policy_has_a_second_form_or_a_law),
        cmocka_unit_test(sieve_goes_on_where_it_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
