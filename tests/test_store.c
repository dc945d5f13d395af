/* test_store.c -- what fits the arena by its bytes finds a place, keeps its content, and stays
 * while pinned. */
#include "tests/support.h"

#include "base/pcg.h"
#include "kernels/store/store.h"

static struct diag dg;

/* Random takes and drops of unequal sizes; each slot's bytes are its number. */
static void what_fits_by_its_bytes_fits_and_keeps_its_content(void **state)
{
    enum { SLOTS = 40, BLOCK = 512 };
    struct store *s;
    struct pcg chance;
    size_t held[SLOTS] = {0}, used = 0, arena = 100 * BLOCK;
    (void)state;
    pcg_seed(&chance, 3, 3);
    assert_ok(store_new(&s, arena + 77, BLOCK, SLOTS, &dg));
    assert_int_equal(store_arena_bytes(s), arena);
    for (int i = 0; i < 20000; i++) {
        uint32_t slot = pcg_below(&chance, SLOTS);
        size_t bytes = 1 + pcg_below(&chance, 9 * BLOCK);
        size_t rounded = (bytes + BLOCK - 1) / BLOCK * BLOCK;
        bool fits = used - held[slot] + rounded <= arena;
        assert_int_equal(store_take(s, slot, bytes), fits);
        used -= held[slot];
        held[slot] = fits ? rounded : 0;
        used += held[slot];
        if (fits) {
            assert_int_equal((uintptr_t)store_address(s, slot) % BLOCK, 0);
            memset(store_address(s, slot), (int)slot, rounded);
        }
        assert_int_equal(store_used_bytes(s), used);
        uint32_t other = pcg_below(&chance, SLOTS);
        const unsigned char *at = store_address(s, other);
        for (size_t k = 0; k < held[other]; k++)
            assert_int_equal(at[k], other);
    }
    assert_true(store_moved_bytes(s) > 0);
    store_free(s);
}

static void a_pinned_slot_does_not_move_and_room_comes_when_it_is_unpinned(void **state)
{
    struct store *s;
    (void)state;
    assert_ok(store_new(&s, 4 * 4096, 4096, 8, &dg));
    for (uint32_t i = 0; i < 4; i++)
        assert_true(store_take(s, i, 4096));
    store_drop(s, 0);
    store_drop(s, 2);
    void *before = store_address(s, 1);
    store_pin(s, 1);
    store_pin(s, 3);
    assert_false(store_take(s, 5, 8192));
    assert_null(store_address(s, 5));
    assert_ptr_equal(store_address(s, 1), before);
    store_unpin(s, 3);
    store_unpin(s, 1);
    assert_true(store_take(s, 5, 8192));
    store_free(s);
}

static void slots_of_one_size_never_move(void **state)
{
    struct store *s;
    (void)state;
    assert_ok(store_new(&s, 8 * 4096, 4096, 8, &dg));
    for (uint32_t i = 0; i < 8; i++)
        assert_true(store_take(s, i, 4000));
    void *third = store_address(s, 3);
    assert_true(store_take(s, 3, 4096));
    assert_ptr_equal(store_address(s, 3), third);
    store_drop(s, 3);
    assert_true(store_take(s, 3, 4096));
    assert_ptr_equal(store_address(s, 3), third);
    assert_int_equal(store_moved_bytes(s), 0);
    store_free(s);
}

static void the_arena_starts_at_a_huge_page(void **state)
{
    struct store *s;
    (void)state;
    assert_ok(store_new(&s, (5 << 20) + 12345, 4096, 1, &dg));
    assert_int_equal((uintptr_t)store_arena(s) % (2 << 20), 0);
    store_free(s);
    assert_int_equal(store_new(&s, 4095, 4096, 1, &dg), ST_RANGE);
    assert_int_equal(store_new(&s, (size_t)1 << 60, 4096, 1, &dg), ST_NO_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_by_its_bytes_fits_and_keeps_its_content),
        cmocka_unit_test(a_pinned_slot_does_not_move_and_room_comes_when_it_is_unpinned),
        cmocka_unit_test(slots_of_one_size_never_move),
        cmocka_unit_test(the_arena_starts_at_a_huge_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
