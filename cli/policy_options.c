/* policy_options.c -- see policy_options.h. */
#include "cli/policy_options.h"

#include "base/nearest.h"

#include <string.h>

const char *const prefetch_names[] = {"none", "previous-token", "frequency", "co-activation",
                                      "gate", "heads",          "oracle",    NULL};

const char *const prefetch_when_names[] = {"ordered", "idle", NULL};

const char *prefetch_label(const struct prefetch_policy *p, bool timed)
{
    static const char *const labels[] = {"gate (timed)", "heads (timed)", "oracle (timed)"};
    if (!p)
        return "none";
    for (size_t i = 0; timed && i < sizeof labels / sizeof *labels; i++)
        if (strncmp(labels[i], p->name, strlen(p->name)) == 0)
            return labels[i];
    return p->name;
}

static enum status unknown_policy(const char *name, struct diag *dg)
{
    const char *names[32];
    size_t count = 0;
    for (const struct cache_policy *const *p = cache_policies; *p; p++)
        names[count++] = (*p)->name;
    const char *near = nearest_name(name, names, count);
    if (near)
        return diag_set(dg, ST_USAGE, "unknown policy '%s' (did you mean %s?)", name, near);
    return diag_set(dg, ST_USAGE, "unknown policy '%s'; there are none " POLICY_NAMES, name);
}

enum status policy_list_read(struct policy_list *out, struct args *a, struct diag *dg)
{
    const char *text = args_text(a, "policy");
    out->count = 0;
    if (strcmp(text, "all") == 0) {
        for (const struct cache_policy *const *p = cache_policies; *p; p++)
            out->policy[out->count++] = *p;
        return ST_OK;
    }
    size_t n;
    const char *const *names = args_split(a, text, &n);
    if (!names)
        return diag_no_memory(dg);
    for (size_t i = 0; i < n; i++) {
        const struct cache_policy *p = cache_policy_find(names[i]);
        if (!p)
            return unknown_policy(names[i], dg);
        if (out->count == sizeof out->policy / sizeof *out->policy)
            return diag_set(dg, ST_USAGE, "--policy: too many policies");
        out->policy[out->count++] = p;
    }
    return ST_OK;
}

enum status size_list_read(struct size_list *out, struct args *a, const char *option,
                           struct diag *dg)
{
    size_t n;
    const char *const *texts = args_split(a, args_text(a, option), &n);
    out->size = texts ? args_memory(a, n * sizeof *out->size) : NULL;
    if (!out->size)
        return diag_no_memory(dg);
    out->count = n;
    for (size_t i = 0; i < n; i++) {
        struct diag why;
        if (quantity_parse(&out->size[i], DIM_SIZE, texts[i], QUANTITY_BARE_ALLOWED, &why) != ST_OK)
            return diag_set(dg, ST_USAGE, "--%s: %s", option, why.text);
    }
    return ST_OK;
}

enum status prefetch_options_read(const struct args *a, const struct prefetch_policy **prefetch,
                                  uint32_t *distance, uint32_t *experts_max, uint64_t *bytes_max,
                                  struct diag *dg)
{
    const char *name = args_text(a, "prefetch");
    *prefetch = prefetch_policy_find(name);
    *distance = (uint32_t)args_count(a, "prefetch-distance");
    *experts_max = (uint32_t)args_count(a, "prefetch-experts");
    *bytes_max = args_count(a, "prefetch-budget");
    static const char *const needing[] = {"prefetch-distance", "prefetch-experts",
                                          "prefetch-budget"};
    for (size_t i = 0; !*prefetch && i < sizeof needing / sizeof *needing; i++)
        if (args_given(a, needing[i]))
            return diag_set(dg, ST_USAGE, "--%s needs --prefetch", needing[i]);
    return ST_OK;
}
