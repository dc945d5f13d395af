/* small_thread.c -- see small_thread.h. */
#include "base/small_thread.h"

int small_thread_start(pthread_t *thread, void *(*function)(void *), void *argument)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    error = pthread_attr_setstacksize(&attributes, SMALL_THREAD_STACK_BYTES);
    if (!error)
        error = pthread_create(thread, &attributes, function, argument);
    pthread_attr_destroy(&attributes);
    return error;
}
