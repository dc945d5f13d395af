/* progress.c -- see progress.h. The line is drawn over itself with a carriage return, and first only
 * after a tenth of a second, so that short work shows nothing. */
#include "base/progress.h"

#include "base/fixed.h"
#include "base/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS    UINT64_C(1000000000)
#define REDRAW_NS    (SECOND_NS / 10)
#define ERASE_TO_END "\033[K"

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static void draw(const struct progress *p)
{
    uint64_t done = p->done < p->total ? p->done : p->total;
    if (done == 0)
        return;
    uint64_t left_ns = fixed_mul_div(p->drawn_ns - p->start_ns, p->total - done, done);
    fprintf(stderr, "\r%s %3" PRIu64 " %%, %" PRIu64 " s left", p->label,
            fixed_mul_div(done, 100, p->total), (left_ns + SECOND_NS - 1) / SECOND_NS);
    char rate[QUANTITY_TEXT_MAX];
    if (p->in_bytes)
        fprintf(stderr, ", %s",
                quantity_round(rate, fixed_mul_div(done, SECOND_NS, p->drawn_ns - p->start_ns),
                               DIM_RATE));
    fputs(ERASE_TO_END, stderr);
    fflush(stderr);
}

void progress_start(struct progress *p, const char *label, uint64_t total)
{
    *p = (struct progress){.label = label, .total = total, .visible = isatty(STDERR_FILENO)};
    p->start_ns = p->drawn_ns = clock_ns();
}

void progress_start_bytes(struct progress *p, const char *label, uint64_t total)
{
    progress_start(p, label, total);
    p->in_bytes = true;
}

void progress_add(struct progress *p, uint64_t amount)
{
    p->done += amount;
    if (!p->visible)
        return;
    uint64_t now_ns = clock_ns();
    if (now_ns - p->drawn_ns < REDRAW_NS)
        return;
    p->drawn_ns = now_ns;
    draw(p);
}

uint64_t progress_rate(const struct progress *p)
{
    uint64_t passed_ns = clock_ns() - p->start_ns;
    return passed_ns ? fixed_mul_div(p->done, SECOND_NS, passed_ns) : 0;
}

void progress_end(struct progress *p)
{
    if (p->visible && p->drawn_ns != p->start_ns) {
        fputs("\r" ERASE_TO_END, stderr);
        fflush(stderr);
    }
    p->visible = false;
}
