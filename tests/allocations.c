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

void allocations_fail_at(size_t n)
{
    (void)n;
}

#else

static _Atomic size_t calls, fatal_call;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

bool allocations_counted(void)
{
    return true;
}

size_t allocations_count(void)
{
    return calls;
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

void *malloc(size_t bytes)
{
    return refused() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return refused() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return refused() ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return refused() ? NULL : __libc_memalign(alignment, bytes);
}

#endif
