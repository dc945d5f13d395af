/* grid.c -- from the number of a point to what is set there; declared in experiment.h. */
#include "experiments/experiment.h"

#include "base/text.h"

#include <string.h>

size_t experiment_item(const struct experiment *e, uint64_t i, size_t axis)
{
    for (size_t a = e->axis_count - 1; a > axis; a--)
        i /= e->axis[a].count;
    return (size_t)(i % e->axis[axis].count);
}

size_t experiment_edits_max(const struct experiment *e)
{
    size_t most = e->edit_count;
    for (size_t a = 0; a < e->axis_count; a++) {
        size_t widest = 0;
        for (size_t i = 0; i < e->axis[a].count; i++)
            if (e->axis[a].item[i].edit_count > widest)
                widest = e->axis[a].item[i].edit_count;
        most += widest;
    }
    return most;
}

static size_t put(struct edit *room, size_t used, const struct edit *edit, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < used && strcmp(room[at].key, edit[i].key) != 0)
            at++;
        room[at] = edit[i];
        used += at == used;
    }
    return used;
}

size_t experiment_edits(const struct experiment *e, uint64_t i, struct edit *room)
{
    size_t used = put(room, 0, e->edit, e->edit_count);
    for (size_t a = 0; a < e->axis_count; a++) {
        const struct axis_item *item = &e->axis[a].item[experiment_item(e, i, a)];
        used = put(room, used, item->edit, item->edit_count);
    }
    return used;
}

void experiment_point_text(const struct experiment *e, uint64_t i, char *out, size_t size)
{
    out[0] = 0;
    for (size_t a = 0; a < e->axis_count; a++)
        text_list(out, size, ", ", "%s=%s", e->axis[a].name,
                  e->axis[a].item[experiment_item(e, i, a)].text);
}
