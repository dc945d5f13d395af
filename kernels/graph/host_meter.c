/* host_meter.c -- see host_meter.h. Linux's /proc. */
#include "kernels/graph/host_meter.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *slurp(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
    return text;
}

/* The number behind `label`, times `unit`. */
static uint64_t figure(const char *text, const char *label, uint64_t unit)
{
    const char *at = strstr(text, label);
    return at ? strtoull(at + strlen(label), NULL, 10) * unit : 0;
}

void host_meter_read(struct host_meter *h)
{
    char text[4096];
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    *h = (struct host_meter){.major_faults = (uint64_t)usage.ru_majflt};
    slurp("/proc/self/status", text, sizeof text);
    h->rss_bytes = figure(text, "VmRSS:", 1024);
    h->peak_rss_bytes = figure(text, "VmHWM:", 1024);
    slurp("/proc/meminfo", text, sizeof text);
    h->page_cache_bytes = figure(text, "\nCached:", 1024);
    h->available_bytes = figure(text, "MemAvailable:", 1024);
    slurp("/proc/stat", text, sizeof text);
    uint64_t stolen = 0;
    long ticks = sysconf(_SC_CLK_TCK);
    if (sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &stolen) == 1 && ticks > 0)
        h->stolen_ns = stolen * (1000000000u / (uint64_t)ticks);
}

unsigned host_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return CPU_COUNT(&set) > 0 ? (unsigned)CPU_COUNT(&set) : 1;
}
