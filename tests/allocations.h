/* allocations.h -- counts the calls of malloc and its relatives, and lets one of them fail.
 *
 * For two kinds of test: what promises not to allocate while it runs, and what must survive that
 * any one of its allocations fails. Under AddressSanitizer, which needs malloc for itself, nothing
 * is counted: such tests begin with NEED_ALLOCATIONS().
 */
#ifndef TESTS_ALLOCATIONS_H
#define TESTS_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

bool allocations_counted(void);
/* Calls that asked for memory since the program began (malloc, calloc, realloc, aligned_alloc). */
size_t allocations_count(void);
/* Blocks that were given and not yet freed; of use only in comparison. */
size_t allocations_alive(void);
/* The n-th such call from now (1 = the next) returns NULL, once; 0: none does. */
void allocations_fail_at(size_t n);

#define NEED_ALLOCATIONS()                                                                         \
    do {                                                                                           \
        if (!allocations_counted())                                                                \
            skip();                                                                                \
    } while (0)

#endif
