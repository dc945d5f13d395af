/* plan_print.h -- a plan for people: the one screen, the explanation, the inverse. */
#ifndef CLI_PLAN_PRINT_H
#define CLI_PLAN_PRINT_H

#include "sim/plan/measured.h"
#include "sim/plan/planner.h"

struct plan_page {
    const struct plan *plan;
    const struct measured_run *run;
    size_t run_count;
    bool changed_top_k;
};

void plan_print_screen(const struct plan_page *page);
/* Every figure with its formula, then the inputs with their kinds and sources. */
void plan_print_explain(const struct plan_page *page);
void plan_print_want(const struct plan *p, const char *want,
                     const struct answer answers[WISH_COUNT]);

/* Names of the inputs that are only assumed, joined by "; ". */
void plan_assumed(char *out, size_t size, const struct plan *p);
/* What binds most: flash, link, compute, DRAM or overhead. */
const char *plan_binds(const struct plan *p);
/* What lies outside of what was measured or trained. */
#define PLAN_NOTES 4
struct plan_note {
    char text[96];
};
size_t plan_outside(struct plan_note notes[PLAN_NOTES], const struct plan_page *page);

#endif
