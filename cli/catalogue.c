/* catalogue.c -- where the descriptions lie: beside the program, or in share/memwall of its prefix. */
#include "cli/command.h"

#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of the running program, without a closing slash. */
static const char *program_dir(char *buffer, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", buffer, size - 1);
    if (n <= 0)
        return ".";
    buffer[n] = 0;
    return dirname(buffer);
}

const char *catalogue_dir(char *buffer, size_t size, const char *what)
{
    static const char *const between[] = {"", "../share/memwall/", "../../"};
    char program[3072];
    const char *dir = program_dir(program, sizeof program);
    struct stat info;
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        snprintf(buffer, size, "%s/%s%s", dir, between[i], what);
        if (stat(buffer, &info) == 0 && S_ISDIR(info.st_mode))
            return buffer;
    }
    snprintf(buffer, size, "%s", what);
    return buffer;
}
