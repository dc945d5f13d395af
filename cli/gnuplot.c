/* gnuplot.c -- see gnuplot.h. */
#include "cli/gnuplot.h"

#include "base/outfile.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_ROOM = 4400 };
static const char picture_name[2][16] = {"picture.svg", "picture.png"};
extern char **environ;

static void path_of(char path[PATH_ROOM], const struct gnuplot *g, const char *file)
{
    snprintf(path, PATH_ROOM, "%s/%s", g->folder, file);
}

static FILE *open_in(const struct gnuplot *g, const char *file, const char *mode)
{
    char path[PATH_ROOM];
    path_of(path, g, file);
    return fopen(path, mode);
}

enum status gnuplot_open(struct gnuplot *g, struct diag *dg)
{
    *g = (struct gnuplot){0};
    enum status st = scratch_open(g->folder, "plot", dg);
    if (st != ST_OK)
        return st;
    g->data = open_in(g, "data.csv", "w");
    g->variables = open_in(g, "figure.gp", "w");
    if (!g->data || !g->variables)
        return diag_errno(dg, g->folder, "cannot be written");
    return ST_OK;
}

/* In single quotes, where nothing has a meaning but the quote itself: between double ones gnuplot would run
 * what stands in backquotes. */
void gnuplot_set(struct gnuplot *g, const char *name, const char *text)
{
    fprintf(g->variables, "%s = '", name);
    for (const char *c = text; *c; c++) {
        if (*c == '\n')
            fputs("'.\"\\n\".'", g->variables);
        else if ((unsigned char)*c < ' ')
            fputc(' ', g->variables);
        else if (*c == '\'')
            fputs("''", g->variables);
        else
            fputc(*c, g->variables);
    }
    fputs("'\n", g->variables);
}

void gnuplot_number(struct gnuplot *g, const char *name, double value)
{
    fprintf(g->variables, "%s = %.9g\n", name, value);
}

static enum status write_calls(struct gnuplot *g, const char *scripts, const char *kind,
                               const char *picture, struct diag *dg)
{
    char path[PATH_ROOM];
    path_of(path, g, "data.csv");
    gnuplot_set(g, "data", path);
    gnuplot_set(g, "out", picture);
    snprintf(path, sizeof path, "%s/style.gp", scripts);
    gnuplot_set(g, "style_script", path);
    snprintf(path, sizeof path, "%s/%s.gp", scripts, kind);
    gnuplot_set(g, "kind_script", path);
    fputs("load style_script\nload kind_script\n", g->variables);
    bool failed = fclose(g->data) != 0;
    failed |= fclose(g->variables) != 0;
    g->data = g->variables = NULL;
    return failed ? diag_errno(dg, g->folder, "cannot be written") : ST_OK;
}

/* The last line that says what is wrong, without the script and its line: gnuplot prints the command and a caret before
 * it. */
static enum status tell_error(const struct gnuplot *g, struct diag *dg)
{
    char line[512], told[512] = "no reason given";
    FILE *f = open_in(g, "errors", "r");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        const char *place = strstr(line, " line "), *reason = place ? strchr(place, ':') : NULL;
        if (reason)
            snprintf(told, sizeof told, "%s", reason + 1 + strspn(reason + 1, " "));
    }
    if (f)
        fclose(f);
    return diag_set(dg, ST_UNSUPPORTED, "%s: gnuplot cannot draw it: %s",
                    g->source ? g->source : g->folder, told);
}

static enum status run(const struct gnuplot *g, struct diag *dg)
{
    char script[PATH_ROOM], errors[PATH_ROOM];
    path_of(script, g, "figure.gp");
    path_of(errors, g, "errors");
    char program[] = "gnuplot", defaults[] = "-d"; /* reads no file of the user's */
    char *argv[] = {program, defaults, script, NULL};
    posix_spawn_file_actions_t files;
    pid_t child;
    int state = 0;
    if (posix_spawn_file_actions_init(&files) != 0)
        return diag_no_memory(dg);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors, O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    int failed = posix_spawnp(&child, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed == ENOENT)
        return diag_set(
            dg, ST_MISSING,
            "figures need gnuplot, which is not installed: apt-get install gnuplot-nox");
    errno = failed;
    if (failed)
        return diag_errno(dg, "gnuplot", "cannot be run");
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            return diag_errno(dg, "gnuplot", "cannot be waited for");
    if (WIFEXITED(state) && WEXITSTATUS(state) == 127)
        return diag_set(
            dg, ST_MISSING,
            "figures need gnuplot, which is not installed: apt-get install gnuplot-nox");
    return WIFEXITED(state) && WEXITSTATUS(state) == 0 ? ST_OK : tell_error(g, dg);
}

/* gnuplot exits with 0 even where the disk was full: only the picture's last bytes say that it is whole. */
static bool is_whole(const char *bytes, size_t count)
{
    static const char png_end[] = "IEND\xae\x42\x60\x82", svg_end[] = "</svg>";
    size_t png = sizeof png_end - 1, svg = sizeof svg_end - 1;
    while (count > 0 && strchr("\n\r ", bytes[count - 1]))
        count--;
    return (count >= png && memcmp(bytes + count - png, png_end, png) == 0) ||
           (count >= svg && memcmp(bytes + count - svg, svg_end, svg) == 0);
}

static enum status copy_picture(const char *picture, FILE *to, const char *out, struct diag *dg)
{
    char buffer[1 << 14], end[64] = "";
    size_t got, held = 0;
    FILE *f = fopen(picture, "r");
    if (!f)
        return diag_errno(dg, picture, "cannot be read");
    while ((got = fread(buffer, 1, sizeof buffer, f)) > 0) {
        if (fwrite(buffer, 1, got, to) != got) {
            enum status st = diag_errno(dg, out, "cannot be written");
            fclose(f);
            return st;
        }
        size_t new = got < sizeof end ? got : sizeof end;
        size_t old = held < sizeof end - new ? held : sizeof end - new;
        memmove(end, end + held - old, old);
        memcpy(end + old, buffer + got - new, new);
        held = old + new;
    }
    bool failed = ferror(f) != 0;
    fclose(f);
    if (failed)
        return diag_errno(dg, picture, "cannot be read");
    return is_whole(end, held)
               ? ST_OK
               : diag_set(dg, ST_IO, "%s: gnuplot left no whole picture there: is the disk full?",
                          picture);
}

enum status gnuplot_draw(struct gnuplot *g, const char *scripts, const char *kind, const char *out,
                         struct diag *dg)
{
    char picture[PATH_ROOM];
    struct outfile *file;
    enum status st = outfile_open(&file, out, dg);
    if (st != ST_OK)
        return st;
    path_of(picture, g, picture_name[text_ends_with(out, ".png")]); /* its ending says the format */
    st = write_calls(g, scripts, kind, picture, dg);
    if (st == ST_OK)
        st = run(g, dg);
    if (st == ST_OK)
        st = copy_picture(picture, outfile_stream(file), out, dg);
    if (st == ST_OK)
        return outfile_commit(file, dg);
    outfile_abandon(file);
    return st;
}

void gnuplot_close(struct gnuplot *g)
{
    if (!g->folder[0])
        return;
    if (g->data)
        fclose(g->data);
    if (g->variables)
        fclose(g->variables);
    scratch_close(g->folder);
    g->folder[0] = 0;
}
