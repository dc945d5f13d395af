/* arc.c -- ARC, the adaptive replacement cache (Megiddo and Modha, FAST 2003): one list for what was used
 * once, one for what was used more often, and ghost lists of what recently left each; a ghost's return
 * shifts the target `p` between recency and frequency. Sizes count slots, and the step of `p`, a ratio of
 * two ghost lists in the paper, is rounded down. The adaptation happens before room is made, as in
 * the paper's REPLACE, hence in victim() for the incoming key. */
#include "sim/policy/key_list.h"

enum list { NOWHERE, T1, T2, B1, B2, LISTS };

struct arc {
    uint32_t sentinel[LISTS];
    uint32_t count[LISTS];
    uint32_t slots, target, keys; /* target: the paper's p, wanted size of T1 */
    uint32_t adapted_for;         /* key whose return was already accounted for, or NO_KEY */
    struct key_link link[];       /* keys + LISTS; then one byte a key: its list */
};

static uint8_t *list_of(struct arc *a)
{
    return (uint8_t *)&a->link[a->keys + LISTS];
}

static size_t arc_state_bytes(const struct policy_setup *s)
{
    return sizeof(struct arc) + (s->keys + LISTS) * sizeof(struct key_link) + s->keys;
}

static void arc_start(void *state, const struct policy_setup *s)
{
    struct arc *a = state;
    a->keys = s->keys;
    a->slots = s->slots;
    a->adapted_for = NO_KEY;
    for (uint32_t l = NOWHERE; l < LISTS; l++) {
        a->sentinel[l] = s->keys + l;
        key_list_start(a->link, a->sentinel[l]);
    }
}

static void move_to(struct arc *a, enum list to, uint32_t key)
{
    enum list from = list_of(a)[key];
    if (from != NOWHERE) {
        key_list_remove(a->link, key);
        a->count[from]--;
    }
    list_of(a)[key] = (uint8_t)to;
    if (to == NOWHERE)
        return;
    key_list_push(a->link, a->sentinel[to], key);
    a->count[to]++;
}

static void arc_hit(void *state, uint32_t key)
{
    move_to(state, T2, key);
}

static void arc_again(void *state, uint32_t key)
{
    struct arc *a = state;
    key_list_to_front(a->link, a->sentinel[list_of(a)[key]], key);
}

static void adapt(struct arc *a, uint32_t key)
{
    if (a->adapted_for == key)
        return;
    a->adapted_for = key;
    uint32_t b1 = a->count[B1], b2 = a->count[B2];
    if (list_of(a)[key] == B1) {
        uint32_t step = b1 >= b2 ? 1 : b2 / b1;
        a->target = a->slots - a->target < step ? a->slots : a->target + step;
    } else if (list_of(a)[key] == B2) {
        uint32_t step = b2 >= b1 ? 1 : b1 / b2;
        a->target = a->target < step ? 0 : a->target - step;
    }
}

static void forget_oldest(struct arc *a, enum list ghost)
{
    move_to(a, NOWHERE, a->link[a->sentinel[ghost]].previous);
}

static void arc_insert(void *state, uint32_t key)
{
    struct arc *a = state;
    adapt(a, key);
    a->adapted_for = NO_KEY;
    enum list from = list_of(a)[key];
    move_to(a, from == B1 || from == B2 ? T2 : T1, key);
    while (a->count[B1] > 0 && a->count[T1] + a->count[B1] > a->slots)
        forget_oldest(a, B1);
    while (a->count[B2] > 0 &&
           a->count[T1] + a->count[T2] + a->count[B1] + a->count[B2] > 2 * a->slots)
        forget_oldest(a, B2);
}

static uint32_t arc_victim(void *state, const struct guard *g, uint32_t incoming)
{
    struct arc *a = state;
    bool from_b2 = false;
    if (incoming != NO_KEY) {
        adapt(a, incoming);
        from_b2 = list_of(a)[incoming] == B2;
    }
    bool recent =
        a->count[T1] > 0 && (a->count[T1] > a->target || (from_b2 && a->count[T1] == a->target));
    enum list first = recent ? T1 : T2, second = recent ? T2 : T1;
    uint32_t key = key_list_oldest(a->link, a->sentinel[first], g);
    if (key == NO_KEY)
        key = key_list_oldest(a->link, a->sentinel[second], g);
    if (key != NO_KEY)
        move_to(a, list_of(a)[key] == T1 ? B1 : B2, key);
    return key;
}

const struct cache_policy cache_arc = {
    .name = "arc",
    .summary = "adaptive balance of recency and frequency with ghost lists",
    .state_bytes = arc_state_bytes,
    .start = arc_start,
    .hit = arc_hit,
    .again = arc_again,
    .insert = arc_insert,
    .victim = arc_victim,
};
