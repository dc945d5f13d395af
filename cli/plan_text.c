#include "cli/plan_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HOUR_NS (UINT64_C(3600) * 1000000000)

struct text text_size(uint64_t bytes)
{
    struct text t;
    quantity_round(t.at, bytes, DIM_SIZE);
    return t;
}

struct text text_time(uint64_t ns)
{
    struct text t;
    uint64_t unit = ns > 48 * HOUR_NS ? 24 * HOUR_NS : HOUR_NS;
    uint64_t tenths = ns / (unit / 10) + (ns % (unit / 10) >= unit / 20);
    if (ns > 2 * HOUR_NS)
        snprintf(t.at, sizeof t.at, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
                 unit == HOUR_NS ? "h" : "days");
    else
        quantity_round(t.at, ns, DIM_TIME);
    return t;
}

struct text text_rate(uint64_t ns)
{
    struct text t;
    quantity_round(t.at, ns ? UINT64_C(1000000000000000) / ns : 0, DIM_TOKEN_RATE);
    char *unit = strstr(t.at, " tok/s");
    if (unit)
        *unit = 0;
    return t;
}
