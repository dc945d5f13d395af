/* capture.c -- see capture.h. */
#include "cli/capture.h"

#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As many things of all kinds together. What was not used for longest makes room, but never
 * what the current run uses. */
enum { SHELF_ROOM = 16 };

struct shelf {
    struct {
        char *name; /* kind, blank, key */
        void *thing;
        void (*release)(void *);
        uint64_t run; /* that used it last */
    } place[SHELF_ROOM];
};

enum status capture_new(struct capture **out, struct diag *dg)
{
    struct capture *c = calloc(1, sizeof *c);
    if (c)
        c->shelf = calloc(1, sizeof *c->shelf);
    if (!c || !c->shelf) {
        free(c);
        return diag_no_memory(dg);
    }
    *out = c;
    return ST_OK;
}

void capture_reset(struct capture *c)
{
    for (size_t i = 0; i < c->cell_count; i++)
        free(c->cell[i]);
    free(c->cell);
    c->cell = NULL;
    c->cell_count = c->row_count = 0;
    c->note[0] = 0;
    c->run++;
}

static void clear_place(struct shelf *s, size_t i)
{
    if (s->place[i].name)
        s->place[i].release(s->place[i].thing);
    free(s->place[i].name);
    s->place[i].name = NULL;
}

void capture_free(struct capture *c)
{
    if (!c)
        return;
    capture_reset(c);
    for (size_t i = 0; i < SHELF_ROOM; i++)
        clear_place(c->shelf, i);
    free(c->shelf);
    free(c);
}

void note(const struct args *a, const char *format, ...)
{
    struct capture *c = args_capture(a);
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (!c)
        say("%s", text);
    else if (!c->note[0])
        memcpy(c->note, text, sizeof text);
}

static char *name_of(const char *kind, const char *key)
{
    size_t room = strlen(kind) + strlen(key) + 2;
    char *name = malloc(room);
    if (name)
        snprintf(name, room, "%s %s", kind, key);
    return name;
}

void *shelf_find(const struct args *a, const char *kind, const char *key)
{
    struct capture *c = args_capture(a);
    char *name = c ? name_of(kind, key) : NULL;
    void *found = NULL;
    for (size_t i = 0; name && !found && i < SHELF_ROOM; i++)
        if (c->shelf->place[i].name && strcmp(c->shelf->place[i].name, name) == 0) {
            found = c->shelf->place[i].thing;
            c->shelf->place[i].run = c->run;
        }
    free(name);
    return found;
}

bool shelf_put(const struct args *a, const char *kind, const char *key, void *thing,
               void (*release)(void *))
{
    struct capture *c = args_capture(a);
    char *name = c ? name_of(kind, key) : NULL;
    if (!name)
        return false;
    struct shelf *s = c->shelf;
    size_t i = 0;
    for (size_t j = 1; j < SHELF_ROOM && s->place[i].name; j++)
        if (!s->place[j].name || s->place[j].run < s->place[i].run)
            i = j;
    if (s->place[i].name && s->place[i].run == c->run) {
        free(name);
        return false;
    }
    clear_place(s, i);
    s->place[i].run = c->run;
    s->place[i].name = name;
    s->place[i].thing = thing;
    s->place[i].release = release;
    return true;
}

static void release_trace(void *trace)
{
    trace_free(trace);
}

enum status captured_trace(struct trace **out, bool *kept, const struct args *a, struct diag *dg)
{
    const char *path = args_text(a, "trace");
    *out = shelf_find(a, "trace", path);
    *kept = *out != NULL;
    if (*kept)
        return ST_OK;
    enum status st = trace_load(out, path, dg);
    if (st == ST_OK)
        *kept = shelf_put(a, "trace", path, *out, release_trace);
    return st;
}
