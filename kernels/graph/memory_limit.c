/* memory_limit.c -- see memory_limit.h.
 *
 * A line of the list is NUMBER:CONTROLLERS:/GROUP; the one of version 2 has number 0 and no controllers. A container may
 * see its group under a name that its mount does not have, so missing folders are passed over on the way up to the
 * mount itself. */
#include "kernels/graph/memory_limit.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096

static void lower(uint64_t *limit, const char *folder, const char *name)
{
    char path[PATH_BYTES + 64];
    uint64_t bytes;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%" SCNu64, &bytes) == 1 && bytes < *limit) /* "max" is no number */
        *limit = bytes;
    if (f)
        fclose(f);
}

/* From the group up to the mount. */
static void climb(uint64_t *limit, const char *mount, const char *group, const char *name)
{
    char folder[PATH_BYTES];
    size_t root = strlen(mount);
    int n = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (n < 0 || (size_t)n >= sizeof folder)
        return;
    for (;;) {
        lower(limit, folder, name);
        char *slash = strrchr(folder, '/');
        if (!slash || slash < folder + root)
            return;
        *slash = 0;
    }
}

static bool has_controller(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; at; at = strchr(at, ','), at += at != NULL)
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == 0))
            return true;
    return false;
}

uint64_t memory_limit_of(const char *groups, const char *root)
{
    char line[PATH_BYTES], mount[PATH_BYTES];
    uint64_t limit = UINT64_MAX;
    FILE *f = fopen(groups, "re");
    while (f && fgets(line, sizeof line, f)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        group[strcspn(group, "\n")] = 0;
        if (controllers[1] == 0)
            climb(&limit, root, group, "memory.max");
        else if (has_controller(controllers + 1, "memory")) {
            snprintf(mount, sizeof mount, "%s/memory", root);
            climb(&limit, mount, group, "memory.limit_in_bytes");
        }
    }
    if (f)
        fclose(f);
    return limit;
}

uint64_t memory_limit(void)
{
    return memory_limit_of("/proc/self/cgroup", "/sys/fs/cgroup");
}
