/* pressure.c -- see pressure.h. */
#include "sim/pipeline/pressure.h"

#include "base/quantity.h"

#include <stdlib.h>
#include <string.h>

/* One entry, whose text may be changed. */
static enum status read_entry(struct pressure *out, char *text, struct diag *dg)
{
    char *at = strchr(text, '@');
    if (!at)
        return diag_set(dg, ST_PARSE, "'%s': expected SIZE@TIME, as in 2GiB@5s", text);
    *at = 0;
    enum status status = quantity_parse(&out->bytes, DIM_SIZE, text, QUANTITY_BARE_ALLOWED, dg);
    if (status == ST_OK && out->bytes == 0)
        status = diag_set(dg, ST_RANGE, "'%s': expected more than no memory", text);
    if (status == ST_OK)
        status = quantity_parse(&out->when_ns, DIM_TIME, at + 1, QUANTITY_UNIT_REQUIRED, dg);
    return status;
}

/* Into its place behind all that are not later: lists are short. */
static void insert(struct pressure *list, size_t count, struct pressure entry)
{
    size_t i = count;
    for (; i > 0 && list[i - 1].when_ns > entry.when_ns; i--)
        list[i] = list[i - 1];
    list[i] = entry;
}

enum status pressure_parse(struct pressure **out, size_t *count, const char *text, struct diag *dg)
{
    size_t entries = 1, read = 0;
    for (const char *c = text; *c; c++)
        entries += *c == ',';
    struct pressure *list = calloc(entries, sizeof *list);
    char *copy = strdup(text);
    enum status status = list && copy ? ST_OK : diag_no_memory(dg);
    for (char *rest = copy; status == ST_OK && read < entries;) {
        struct pressure entry;
        char *field = strsep(&rest, ",");
        status = read_entry(&entry, field, dg);
        if (status == ST_OK)
            insert(list, read++, entry);
    }
    free(copy);
    if (status != ST_OK) {
        free(list);
        return status;
    }
    *out = list;
    *count = entries;
    return ST_OK;
}
