/* progress.h -- a progress line on stderr, drawn only if stderr is a terminal. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *label;
    uint64_t total, done;
    uint64_t start_ns, drawn_ns;
    bool visible, in_bytes;
};

/* `label` must live until progress_end; `total` is the amount of work, in any unit. */
void progress_start(struct progress *p, const char *label, uint64_t total);
/* The same of work measured in bytes: the line shows the rate too. */
void progress_start_bytes(struct progress *p, const char *label, uint64_t total);
/* Redraws at most ten times a second, with the time left at the rate so far. */
void progress_add(struct progress *p, uint64_t amount);
/* Work a second since the start, on whatever stderr is; 0 if no time has passed. */
uint64_t progress_rate(const struct progress *p);
/* Erases the line. */
void progress_end(struct progress *p);

#endif
