/* catalogue.c -- where the descriptions lie: beside the program, or in share/memwall of its prefix. */
#include "cli/command.h"

#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* All parts come from one root, the first that holds models: beside a program in build/CONFIG lie folders
 * of the same names, with objects in them. */
const char *catalogue_dir(char *buffer, size_t size, const char *what)
{
    static const char *const between[] = {"", "../share/memwall/", "../../"};
    char program[3072], path[PATH_MAX], real[PATH_MAX];
    const char *dir = program_dir(program, sizeof program);
    snprintf(buffer, size, "%s", what);
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        snprintf(path, sizeof path, "%s/%smodels/desc", dir, between[i]);
        if (!is_folder(path))
            continue;
        /* Without the "..", because this path stands in results and complaints. */
        snprintf(path, sizeof path, "%s/%s", dir, between[i]);
        snprintf(buffer, size, "%s/%s", realpath(path, real) ? real : path, what);
        break;
    }
    return buffer;
}

const char *catalogue_bundled_model(char buffer[CATALOGUE_PATH_MAX])
{
    char folder[CATALOGUE_PATH_MAX];
    snprintf(buffer, CATALOGUE_PATH_MAX, "%.4000s/tiny-q4_0.gguf",
             catalogue_dir(folder, sizeof folder, "models/tiny"));
    return buffer;
}
