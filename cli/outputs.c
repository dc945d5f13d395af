/* outputs.c -- see outputs.h. */
#include "cli/outputs.h"

#include "base/outfile.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The folder of a path that need not exist, and its last name. */
static bool folder_of(struct stat *folder, const char **name, const char *path)
{
    char text[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    *name = path + length;
    if (length >= sizeof text)
        return false;
    memcpy(text, path, length);
    text[length] = 0;
    return stat(length ? text : ".", folder) == 0;
}

/* Whether what is written to one would be found in the other: the same regular file, or the same name if there is
 * none yet. */
static bool same_file(const char *one, const char *other)
{
    struct stat a, b;
    const char *name_a, *name_b;
    if (!strcmp(one, "-") || !strcmp(other, "-"))
        return false;
    bool there = stat(one, &a) == 0;
    if (there != (stat(other, &b) == 0))
        return false;
    if (there)
        return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    return folder_of(&a, &name_a, one) && folder_of(&b, &name_b, other) && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino && !strcmp(name_a, name_b);
}

/* A path that is not there is no file in danger, perhaps a name of the catalogue. */
enum status outputs_spare(const struct args *a, const char *const *written, const char *path,
                          struct diag *dg)
{
    struct stat there;
    for (; stat(path, &there) == 0 && *written; written++)
        if (args_given(a, *written) && same_file(args_text(a, *written), path))
            return diag_set(dg, ST_USAGE, "--%s: %s would be replaced, and it is read by this run",
                            *written, path);
    return ST_OK;
}

static enum status check_pairs(const struct args *a, const char *const *written, struct diag *dg)
{
    for (const char *const *one = written; *one; one++)
        for (const char *const *other = one + 1; args_given(a, *one) && *other; other++)
            if (args_given(a, *other) && same_file(args_text(a, *one), args_text(a, *other)))
                return diag_set(dg, ST_USAGE, "--%s and --%s: two outputs in one file, %s", *one,
                                *other, args_text(a, *other));
    return ST_OK;
}

enum status outputs_check(const struct args *a, const char *const *written, const char *const *read,
                          struct diag *dg)
{
    enum status st = check_pairs(a, written, dg);
    for (size_t i = 0; st == ST_OK && i < args_positional_count(a); i++)
        st = outputs_spare(a, written, args_positional(a, i), dg);
    for (; st == ST_OK && *read; read++)
        if (args_text(a, *read))
            st = outputs_spare(a, written, args_text(a, *read), dg);
    for (; st == ST_OK && *written; written++)
        if (args_given(a, *written))
            st = outfile_check(args_text(a, *written), dg);
    return st;
}
