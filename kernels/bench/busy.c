/* busy.c -- see busy.h. */
#include "kernels/bench/busy.h"

#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The core for the number-th process, of those that this process may use. */
static void bind_to_core(size_t number)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    size_t skip = number % (size_t)CPU_COUNT(&all);
    for (int core = CPU_SETSIZE - 1; core >= 0; core--)
        if (CPU_ISSET(core, &all) && skip-- == 0) {
            CPU_SET(core, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

static _Noreturn void compute(size_t number, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    bind_to_core(number);
    for (volatile uint64_t i = 0;; i++)
        ;
}

enum status busy_start(struct busy *b, size_t count, struct diag *dg)
{
    assert(count <= BUSY_MAX);
    pid_t parent = getpid();
    for (b->count = 0; b->count < count; b->count++) {
        pid_t process = fork();
        if (process == 0)
            compute(b->count, parent);
        if (process < 0) {
            enum status st = diag_errno(dg, "busy process", "cannot be started");
            busy_stop(b);
            return st;
        }
        b->process[b->count] = process;
    }
    return ST_OK;
}

void busy_stop(struct busy *b)
{
    for (size_t i = 0; i < b->count; i++) {
        kill(b->process[i], SIGKILL);
        waitpid(b->process[i], NULL, 0);
    }
    b->count = 0;
}
