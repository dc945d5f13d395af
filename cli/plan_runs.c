/* plan_runs.c -- measured runs beside a plan: the rate, what differs from what is asked, and whether the
 * plan's interval holds a run of the same model on the same device. */
#include "cli/plan_print.h"
#include "cli/plan_text.h"

#include "base/fixed.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* In microtokens/s; 0 if the table's text is no number. */
static uint64_t rate_of(const struct measured_run *r)
{
    double rate = strtod(r->tok_per_s, NULL) * 1e6 + 0.5;
    return rate > 0.5 && rate < 1e15 ? (uint64_t)rate : 0;
}

static bool inside(const struct plan *p, const struct measured_run *r)
{
    uint64_t rate = rate_of(r), ns = rate ? UINT64_C(1000000000000000) / rate : 0;
    return !ns || (p->token_ns.low <= ns && ns <= p->token_ns.high);
}

static bool near(uint64_t a, uint64_t b)
{
    uint64_t less = a < b ? a : b, more = a < b ? b : a;
    return more - less <= more / 10;
}

/* The run's values where they are not the plan's. */
static void differences(char *out, size_t size, const struct plan *p, const struct measured_run *r)
{
    const char *format = p->model->quant.name ? p->model->quant.name : "";
    const char *profile = p->request.profile == PROFILE_SERIAL ? "serial" : "expert";
    *out = 0;
    if (r->likeness == LIKE_DEVICE)
        text_append(out, size, " | %s", r->model);
    if (r->likeness == LIKE_MODEL)
        text_append(out, size, " | %s", r->device);
    if (strncasecmp(r->quant, format, strlen(format)) != 0 || !*format)
        text_append(out, size, " | %s", r->quant);
    if (r->cache_given && !near(r->cache, p->place.cache))
        text_append(out, size, " | cache %s", text_size(r->cache).at);
    if (r->top_k && r->top_k != model_top_k(p->model))
        text_append(out, size, " | top %" PRIu64, r->top_k);
    if (strcmp(r->overlap, profile) != 0 && strcmp(r->overlap, "unknown") != 0)
        text_append(out, size, " | %s reads", r->overlap);
}

void plan_print_runs(const struct plan_page *page)
{
    char outside[128] = "";
    for (size_t i = 0; i < page->run_count; i++) {
        const struct measured_run *r = &page->run[i];
        char other[256], rate[QUANTITY_TEXT_MAX];
        differences(other, sizeof other, page->plan, r);
        printf(PLAN_LABEL "%s %s%s%s%s\n", i ? "" : "measured", r->id,
               quantity_round(rate, rate_of(r), DIM_TOKEN_RATE), *r->engine ? ", " : "", r->engine,
               *other ? other : " | as asked");
        if (r->likeness == LIKE_BOTH && !inside(page->plan, r))
            text_list(outside, sizeof outside, ", ", "%s", r->id);
    }
    if (*outside)
        printf(PLAN_LABEL "outside the interval: %s\n", "", outside);
}
