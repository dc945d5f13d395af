/* small_thread.h -- a thread with a small stack.
 *
 * The system's default of 8 MiB is hardly touched, yet counts in full against a limit of memory
 * (RLIMIT_DATA, RLIMIT_AS); some dozen threads would use up one in which the program runs well. */
#ifndef BASE_SMALL_THREAD_H
#define BASE_SMALL_THREAD_H

#include <pthread.h>

#define SMALL_THREAD_STACK_BYTES ((size_t)512 << 10)

/* As pthread_create: 0, or an errno. */
int small_thread_start(pthread_t *thread, void *(*function)(void *), void *argument);

#endif
