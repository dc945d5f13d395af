/* plan_text.h -- figures of a plan as short texts, three digits each. */
#ifndef CLI_PLAN_TEXT_H
#define CLI_PLAN_TEXT_H

#include "base/quantity.h"

#define PLAN_LABEL "  %-12s "

struct text {
    char at[QUANTITY_TEXT_MAX];
};
struct text text_size(uint64_t bytes);
struct text text_time(uint64_t ns); /* above two hours in hours, above two days in days */
struct text text_rate(uint64_t ns); /* 10^9/ns tokens a second, without the unit */

#endif
