/* scratch.c -- see scratch.h. What the handler calls is safe in a signal: system calls alone, no memory. */
#include "cli/scratch.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FOLDERS_MAX = 8 };

/* A path is written before `used` is set. Folders are made by the main thread alone. */
static struct {
    char path[SCRATCH_PATH_MAX];
    volatile sig_atomic_t used;
} folders[FOLDERS_MAX];

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};

/* As the kernel writes it; opendir() would take memory. */
struct entry {
    uint64_t inode;
    int64_t next;
    unsigned short length;
    unsigned char type;
    char name[];
};

static void remove_folder(const char *path)
{
    _Alignas(struct entry) char room[4096];
    long bytes;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && (bytes = syscall(SYS_getdents64, fd, room, sizeof room)) > 0)
        for (long at = 0; at < bytes; at += ((const struct entry *)(room + at))->length)
            unlinkat(fd, ((const struct entry *)(room + at))->name, 0);
    if (fd >= 0)
        close(fd);
    rmdir(path);
}

static void on_signal(int signal_number)
{
    for (size_t i = 0; i < FOLDERS_MAX; i++)
        if (folders[i].used)
            remove_folder(folders[i].path);
    signal(signal_number, SIG_DFL);
    raise(signal_number); /* delivered when this returns */
}

void scratch_watch(void)
{
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        struct sigaction before, mine = {.sa_handler = on_signal};
        sigfillset(&mine.sa_mask);
        if (sigaction(watched[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(watched[i], &mine, NULL);
    }
}

enum status scratch_open(char path[SCRATCH_PATH_MAX], const char *name, struct diag *dg)
{
    size_t i = 0;
    sigset_t all, before;
    while (i < FOLDERS_MAX - 1 && folders[i].used)
        i++;
    assert(!folders[i].used);
    snprintf(folders[i].path, SCRATCH_PATH_MAX, "/tmp/memwall-%s-XXXXXX", name);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    bool made = mkdtemp(folders[i].path) != NULL;
    folders[i].used = made;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!made)
        return diag_errno(dg, "/tmp", "no folder can be made in it");
    strcpy(path, folders[i].path);
    return ST_OK;
}

void scratch_close(const char *path)
{
    remove_folder(path);
    for (size_t i = 0; i < FOLDERS_MAX; i++)
        if (folders[i].used && !strcmp(folders[i].path, path))
            folders[i].used = 0;
}
