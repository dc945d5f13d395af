/* allocations.c -- see allocations.h. The program's malloc takes the place of the C library's,
 * which glibc allows, and passes on to it. */
#include "tests/allocations.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __has_feature
#define CLANG_ASAN (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define CLANG_ASAN 0
#endif

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || CLANG_ASAN

bool allocations_counted(void)
{
    return false;
}

size_t allocations_count(void)
{
    return 0;
}

size_t allocations_alive(void)
{
    return 0;
}

void allocations_fail_at(size_t n)
{
    (void)n;
}

#else

static _Atomic size_t calls, fatal_call, alive;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *p);

bool allocations_counted(void)
{
    return true;
}

size_t allocations_count(void)
{
    return calls;
}

size_t allocations_alive(void)
{
    return alive;
}

void allocations_fail_at(size_t n)
{
    fatal_call = n ? calls + n : 0;
}

static bool refused(void)
{
    if (++calls != fatal_call)
        return false;
    errno = ENOMEM;
    return true;
}

static void *given(void *p)
{
    alive += p != NULL;
    return p;
}

void *malloc(size_t bytes)
{
    return refused() ? NULL : given(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    return refused() ? NULL : given(__libc_calloc(count, bytes));
}

void *realloc(void *old, size_t bytes)
{
    if (refused())
        return NULL;
    void *p = __libc_realloc(old, bytes);
    return old ? p : given(p);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return refused() ? NULL : given(__libc_memalign(alignment, bytes));
}

void free(void *p)
{
    alive -= p != NULL;
    __libc_free(p);
}

#endif
