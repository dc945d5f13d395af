/* memory_limit.h -- what a control group of Linux lets its processes have together, of both versions:
 * a container's limit is no figure of /proc/meminfo. */
#ifndef KERNELS_GRAPH_MEMORY_LIMIT_H
#define KERNELS_GRAPH_MEMORY_LIMIT_H

#include <stdint.h>

/* The least limit of this process's groups (memory.max, memory.limit_in_bytes) and those above them; UINT64_MAX: there is
 * none. What cannot be read limits nothing. */
uint64_t memory_limit(void);
/* The same by the groups listed in the file `groups` (as /proc/self/cgroup), mounted under `root`. */
uint64_t memory_limit_of(const char *groups, const char *root);

#endif
