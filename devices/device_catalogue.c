/* device_catalogue.c -- see device_catalogue.h; device_names() is promised by device.h. */
#include "devices/device_catalogue.h"

#include "base/nearest.h"
#include "devices/device.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX       ".yaml"
#define SUFFIX_BYTES (sizeof SUFFIX - 1)

static bool ends_with_suffix(const char *text)
{
    size_t n = strlen(text);
    return n > SUFFIX_BYTES && strcmp(text + n - SUFFIX_BYTES, SUFFIX) == 0;
}

/* Three texts as one, or NULL. */
static char *joined(struct arena *arena, const char *a, size_t a_bytes, const char *b,
                    const char *c)
{
    char *text = arena_alloc(arena, a_bytes + strlen(b) + strlen(c) + 1);
    if (text)
        sprintf(text, "%.*s%s%s", (int)a_bytes, a, b, c);
    return text;
}

const char *device_stem(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/');
    char *stem = arena_text(arena, slash ? slash + 1 : path);
    if (stem && ends_with_suffix(stem))
        stem[strlen(stem) - SUFFIX_BYTES] = 0;
    return stem;
}

struct name_list {
    const char **names;
    size_t count, room;
};

static bool name_add(struct name_list *l, struct arena *arena, const char *file)
{
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        const char **more = arena_alloc(arena, room * sizeof *more);
        if (!more)
            return false;
        if (l->count)
            memcpy(more, l->names, l->count * sizeof *more);
        l->names = more;
        l->room = room;
    }
    const char *name = device_stem(file, arena);
    if (name)
        l->names[l->count++] = name;
    return name != NULL;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum status device_names(struct arena *arena, const char *catalogue, const char *const **names,
                         size_t *count, struct diag *dg)
{
    DIR *dir = opendir(catalogue);
    if (!dir)
        return diag_errno(dg, catalogue, "cannot list the device catalogue");
    struct name_list l = {0};
    bool fits = true;
    for (const struct dirent *e; fits && (e = readdir(dir));)
        if (ends_with_suffix(e->d_name))
            fits = name_add(&l, arena, e->d_name);
    closedir(dir);
    if (!fits)
        return diag_no_memory(dg);
    if (l.count)
        qsort(l.names, l.count, sizeof *l.names, compare_names);
    *names = l.names;
    *count = l.count;
    return ST_OK;
}

/* A slug never leaves the catalogue: no '/', and not "..". */
static bool is_slug(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    return *name && *name != '.' && strspn(name, letters) == strlen(name);
}

static enum status name_missing(const char *name, const char *catalogue, struct arena *arena,
                                struct diag *dg)
{
    const char *const *names, *near = NULL;
    size_t count;
    enum status st = device_names(arena, catalogue, &names, &count, dg);
    if (st != ST_OK)
        return st;
    near = nearest_name(name, names, count);
    return diag_set(
        dg, ST_MISSING, "%s: no device of that name in %s%s%s%s (a path must end in %s)", name,
        catalogue, near ? "; nearest is '" : "", near ? near : "", near ? "'" : "", SUFFIX);
}

enum status device_path(const char **out, const char *name, const char *catalogue,
                        const char *beside, struct arena *arena, struct diag *dg)
{
    if (ends_with_suffix(name)) {
        const char *slash = beside && *name != '/' ? strrchr(beside, '/') : NULL;
        *out = joined(arena, beside, slash ? (size_t)(slash - beside) + 1 : 0, name, "");
        return *out ? ST_OK : diag_no_memory(dg);
    }
    if (!is_slug(name))
        return name_missing(name, catalogue, arena, dg);
    char *folder = joined(arena, catalogue, strlen(catalogue), "/", name);
    *out = folder ? joined(arena, folder, strlen(folder), SUFFIX, "") : NULL;
    if (!*out)
        return diag_no_memory(dg);
    if (access(*out, F_OK) != 0 && errno == ENOENT)
        return name_missing(name, catalogue, arena, dg);
    return ST_OK;
}
