/* rate_table.h -- what a storage benchmark found: rate by read size and by reads under way.
 *
 * From a CSV file with the columns
 *   read_bytes                          size of a read
 *   lanes | depth                       reads under way (threads, queue depth, or their product)
 *   MiB_per_s | MB_per_s | rate_Bps     what all of them reached together
 *   state                               optional: cold, hot, ... ; one of them is picked
 * in any order, other columns ignored; or from fio (fio_import.h). */
#ifndef DEVICES_RATE_TABLE_H
#define DEVICES_RATE_TABLE_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct rate_row {
    uint64_t bytes;    /* > 0 */
    uint64_t depth;    /* > 0 */
    uint64_t rate_Bps; /* > 0 */
    size_t line;       /* of the file, 0 if it has none */
};

struct rate_table {
    struct arena arena;
    const char *name; /* the file */
    struct rate_row *rows;
    size_t count, room;
};

MUST_CHECK enum status rate_table_add(struct rate_table *t, struct rate_row row, struct diag *dg);
/* `state` NULL: the table must not mix states. ST_PARSE or ST_RANGE with the line of what is wrong,
 * ST_MISSING if no row is left. `t` is zeroed beforehand and freed by the caller on any outcome. */
MUST_CHECK enum status rate_table_read(struct rate_table *t, const char *path, const char *state,
                                       struct diag *dg);
void rate_table_free(struct rate_table *t);

#endif
