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
    const char *const *override; /* as on the command line */
    size_t override_count;
};

/* Model and device, and what was overridden of them. */
void plan_print_title(const struct plan_page *page);
/* Nothing if there are no runs. */
void plan_print_runs(const struct plan_page *page);

void plan_print_screen(const struct plan_page *page);
/* Every figure with its formula, then the inputs with their kinds and sources. */
void plan_print_explain(const struct plan_page *page);
void plan_print_want(const struct plan_page *page, const char *want,
                     const struct answer answers[WISH_COUNT], const struct together *together);

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
