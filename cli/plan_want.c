/* plan_want.c -- `memwall plan --want RATE` for people: the least of each resource, or how far it leads. */
#include "cli/plan_print.h"
#include "cli/plan_text.h"

#include "base/fixed.h"

#include <stdio.h>

struct amount {
    char at[QUANTITY_TEXT_MAX];
};

static struct amount amount_text(uint64_t amount, enum dimension dim)
{
    struct amount t;
    if (amount == UINT64_MAX)
        snprintf(t.at, sizeof t.at, "not by this alone");
    else if (amount == 0)
        snprintf(t.at, sizeof t.at, "none");
    else
        quantity_round(t.at, amount, dim);
    return t;
}

static void print_range(const struct answer *a)
{
    printf("  [%s .. %s]\n", amount_text(a->need_low, a->dim).at,
           amount_text(a->need_high, a->dim).at);
}

static void print_answer(const struct answer *a)
{
    printf("  %-18s now %-12s ", a->name, amount_text(a->now, a->dim).at);
    if (!a->reachable && a->best_ns == UINT64_MAX)
        printf("not by this alone\n");
    else if (!a->reachable)
        printf("not by this alone: the most of it gives %s tok/s\n", text_rate(a->best_ns).at);
    else if (a->need == 0)
        printf("not needed\n");
    else if (a->need <= a->now) {
        printf("enough; %s would do", amount_text(a->need, a->dim).at);
        print_range(a);
    } else {
        printf("needs %s", amount_text(a->need, a->dim).at);
        print_range(a);
    }
}

static void print_together(const struct plan *p, const struct together *t)
{
    printf("\n  flash and memory   ");
    if (!t->reachable) {
        printf("not by both together: the most of both gives %s tok/s\n",
               t->best_ns == UINT64_MAX ? "0" : text_rate(t->best_ns).at);
        return;
    }
    unsigned hundredths = (unsigned)((t->factor + RATIO_ONE / 200) / (RATIO_ONE / 100));
    printf("%u.%02u times both: %s of memory", hundredths / 100, hundredths % 100,
           text_size(t->memory).at);
    if (p->machine.flash_given)
        printf(" and %s of flash rate", amount_text(t->flash, DIM_RATE).at);
    printf("\n");
}

void plan_print_want(const struct plan_page *page, const char *want,
                     const struct answer answers[WISH_COUNT], const struct together *together)
{
    const struct plan *p = page->plan;
    plan_print_title(page);
    printf("  %s, each alone, everything else as it is (now %s tok/s  [%s .. %s]%s):\n\n", want,
           text_rate(p->token_ns.mid).at, text_rate(p->token_ns.high).at,
           text_rate(p->token_ns.low).at, plan_routing_unknown(p) ? "  routing unknown" : "");
    for (size_t i = 0; i < WISH_COUNT; i++)
        if (answers[i].now || answers[i].best_ns)
            print_answer(&answers[i]);
    print_together(p, together);
    printf("\n  In brackets: if the estimate is as far off as the ends of its interval.\n");
}
