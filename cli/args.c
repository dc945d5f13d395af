/* args.c -- see args.h. Options of a command come from its table, those that every command has from
 * `common` below; both are parsed by the same loop and listed by the same help. */
#include "cli/args.h"

#include "base/nearest.h"
#include "base/text.h"
#include "cli/command.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 64, POSITIONALS_MAX = 1024 };

static const char *const formats[] = {"table", "csv", "json", NULL};
static const struct option common[] = {
    {"format", OPTION_CHOICE, "table|csv|json", "how results are printed", "table", formats, 0, 0,
     false},
    {"seed", OPTION_COUNT, "N", "seed of every random stream", "1", NULL, 0, UINT64_MAX, false},
    {"set", OPTION_REPEATED, "PATH=VALUE", "override a value of a description (may repeat)", NULL,
     NULL, 0, 0, false},
    {"help", OPTION_FLAG, NULL, "this text", NULL, NULL, 0, 0, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

struct setting {
    const struct option *option;
    const char *text; /* as given, or the fallback, or NULL */
    uint64_t number;
    const char **list; /* OPTION_REPEATED */
    size_t list_count;
    bool given;
};

struct owned {
    struct owned *next;
    void *memory;
};

struct args {
    struct setting setting[OPTIONS_MAX];
    size_t setting_count;
    const char *positional[POSITIONALS_MAX];
    size_t positional_count;
    struct owned *owned;
    struct capture *capture;
};

static void *keep(struct args *a, void *memory)
{
    struct owned *o = memory ? malloc(sizeof *o) : NULL;
    if (!o) {
        free(memory);
        return NULL;
    }
    *o = (struct owned){a->owned, memory};
    a->owned = o;
    return memory;
}

void args_free(struct args *a)
{
    if (!a)
        return;
    for (struct owned *o = a->owned, *next; o; o = next) {
        next = o->next;
        free(o->memory);
        free(o);
    }
    for (size_t i = 0; i < a->setting_count; i++)
        free(a->setting[i].list);
    free(a);
}

static void add_table(struct args *a, const struct option *table)
{
    for (; table && table->name; table++) {
        assert(a->setting_count < OPTIONS_MAX);
        a->setting[a->setting_count++] = (struct setting){.option = table, .text = table->fallback};
    }
}

static struct setting *find(const struct args *a, const char *name, size_t length)
{
    for (size_t i = 0; i < a->setting_count; i++)
        if (strlen(a->setting[i].option->name) == length &&
            memcmp(a->setting[i].option->name, name, length) == 0)
            return (struct setting *)&a->setting[i];
    return NULL;
}

static const struct setting *must_find(const struct args *a, const char *name)
{
    const struct setting *s = find(a, name, strlen(name));
    assert(s && "option is not in the command's table");
    return s;
}

static enum status unknown(const struct args *a, const char *word, struct diag *dg)
{
    const char *names[OPTIONS_MAX];
    for (size_t i = 0; i < a->setting_count; i++)
        names[i] = a->setting[i].option->name;
    const char *near = nearest_name(word, names, a->setting_count);
    if (near)
        return diag_set(dg, ST_USAGE, "unknown option --%s (did you mean --%s?)", word, near);
    return diag_set(dg, ST_USAGE, "unknown option --%s (--help lists them)", word);
}

static enum status read_number(struct setting *s, struct diag *dg)
{
    const struct option *o = s->option;
    struct diag why;
    enum dimension dim = o->type == OPTION_SIZE ? DIM_SIZE : DIM_COUNT;
    if (quantity_parse(&s->number, dim, s->text, QUANTITY_BARE_ALLOWED, &why) != ST_OK)
        return diag_set(dg, ST_USAGE, "--%s: %s", o->name, why.text);
    if (s->number < o->min)
        return diag_set(dg, ST_USAGE, "--%s must be at least %" PRIu64 ", not %s", o->name, o->min,
                        s->text);
    if (o->max && s->number > o->max)
        return diag_set(dg, ST_USAGE, "--%s must be at most %" PRIu64 ", not %s", o->name, o->max,
                        s->text);
    return ST_OK;
}

static enum status read_choice(struct setting *s, struct diag *dg)
{
    char listed[256] = "";
    for (const char *const *c = s->option->choices; *c; c++) {
        if (strcmp(*c, s->text) == 0) {
            s->number = (uint64_t)(c - s->option->choices);
            return ST_OK;
        }
        text_list(listed, sizeof listed, ", ", "%s", *c);
    }
    return diag_set(dg, ST_USAGE, "--%s must be one of %s, not '%s'", s->option->name, listed,
                    s->text);
}

static enum status take(struct setting *s, const char *text, struct diag *dg)
{
    if (s->option->type == OPTION_REPEATED) {
        const char **list = realloc(s->list, (s->list_count + 1) * sizeof *list);
        if (!list)
            return diag_no_memory(dg);
        s->list = list;
        s->list[s->list_count++] = text;
        s->given = true;
        return ST_OK;
    }
    if (s->given)
        return diag_set(dg, ST_USAGE, "--%s is given twice", s->option->name);
    s->given = true;
    s->text = text;
    if (s->option->type == OPTION_TEXT && strlen(text) < s->option->min)
        return diag_set(dg, ST_USAGE, "--%s needs a value (%s)", s->option->name,
                        s->option->argument);
    if (s->option->type == OPTION_COUNT || s->option->type == OPTION_SIZE)
        return read_number(s, dg);
    return s->option->type == OPTION_CHOICE ? read_choice(s, dg) : ST_OK;
}

enum status args_check_value(const struct option *o, const char *text, struct diag *dg)
{
    struct setting s = {.option = o};
    enum status st = take(&s, text, dg);
    free(s.list);
    return st;
}

struct capture *args_capture(const struct args *a)
{
    return a->capture;
}

void args_set_capture(struct args *a, struct capture *c)
{
    a->capture = c;
}

/* One `--name`, `--name=value` or `--name value`; *i moves past what it used. */
static enum status read_option(struct args *a, int argc, char **argv, int *i, struct diag *dg)
{
    const char *word = argv[*i] + 2;
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    struct setting *s = find(a, word, length);
    if (!s) {
        char *name = keep(a, strndup(word, length));
        return name ? unknown(a, name, dg) : diag_no_memory(dg);
    }
    if (s->option->type == OPTION_FLAG) {
        if (equals)
            return diag_set(dg, ST_USAGE, "--%s takes no value", s->option->name);
        s->given = true;
        return ST_OK;
    }
    if (!equals && *i + 1 >= argc)
        return diag_set(dg, ST_USAGE, "--%s needs a value (%s)", s->option->name,
                        s->option->argument);
    return take(s, equals ? equals + 1 : argv[++*i], dg);
}

static enum status read_words(struct args *a, int argc, char **argv, struct diag *dg)
{
    bool only_positionals = false;
    for (int i = 0; i < argc; i++) {
        if (!only_positionals && strcmp(argv[i], "--") == 0) {
            only_positionals = true;
        } else if (!only_positionals && strncmp(argv[i], "--", 2) == 0) {
            enum status st = read_option(a, argc, argv, &i, dg);
            if (st != ST_OK)
                return st;
        } else if (!only_positionals && strcmp(argv[i], "-h") == 0) {
            find(a, "help", strlen("help"))->given = true;
        } else if (!only_positionals && argv[i][0] == '-' && argv[i][1]) {
            return diag_set(dg, ST_USAGE, "unknown option %s (options start with --)", argv[i]);
        } else if (a->positional_count == POSITIONALS_MAX) {
            return diag_set(dg, ST_USAGE, "too many arguments");
        } else {
            a->positional[a->positional_count++] = argv[i];
        }
    }
    return ST_OK;
}

static enum status check_complete(struct args *a, const struct command *c, struct diag *dg)
{
    if (args_flag(a, "help"))
        return ST_OK;
    for (size_t i = 0; i < a->setting_count; i++) {
        struct setting *s = &a->setting[i];
        if (s->option->required && !s->given)
            return diag_set(dg, ST_USAGE, "--%s %s is required", s->option->name,
                            s->option->argument);
        bool fallback = !s->given && s->text;
        enum status st = ST_OK;
        if (fallback && (s->option->type == OPTION_COUNT || s->option->type == OPTION_SIZE))
            st = read_number(s, dg);
        else if (fallback && s->option->type == OPTION_CHOICE)
            st = read_choice(s, dg);
        if (st != ST_OK)
            return st;
    }
    if (c->no_set && args_given(a, "set"))
        return diag_set(dg, ST_USAGE, "--set: %s reads no description", c->name);
    if (a->positional_count < c->positional_min)
        return diag_set(dg, ST_USAGE, "an argument is missing: memwall %s %s", c->name, c->usage);
    if (a->positional_count > c->positional_max)
        return diag_set(dg, ST_USAGE, "unexpected argument '%s': memwall %s %s",
                        a->positional[c->positional_max], c->name, c->usage);
    return ST_OK;
}

enum status args_parse(struct args **out, const struct command *c, int argc, char **argv,
                       struct diag *dg)
{
    struct args *a = calloc(1, sizeof *a);
    if (!a)
        return diag_no_memory(dg);
    add_table(a, c->options);
    add_table(a, common);
    enum status st = read_words(a, argc, argv, dg);
    if (st == ST_OK)
        st = check_complete(a, c, dg);
    if (st != ST_OK) {
        args_free(a);
        return st;
    }
    *out = a;
    return ST_OK;
}

static void help_table(const struct option *o, bool no_set)
{
    for (; o && o->name; o++) {
        if (no_set && strcmp(o->name, "set") == 0)
            continue;
        char left[96];
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->argument ? " " : "",
                 o->argument ? o->argument : "");
        printf("  %-30s %s", left, o->help);
        if (o->fallback)
            printf(" (%s)", o->fallback);
        printf("\n");
    }
}

void args_help(const struct command *c)
{
    printf("memwall %s %s\n%s\n\n", c->name, c->usage, c->summary);
    help_table(c->options, false);
    help_table(common, c->no_set);
    printf("\nexample: %s\n", c->example);
}

bool args_given(const struct args *a, const char *name)
{
    return must_find(a, name)->given;
}

bool args_flag(const struct args *a, const char *name)
{
    return must_find(a, name)->given;
}

const char *args_text(const struct args *a, const char *name)
{
    return must_find(a, name)->text;
}

uint64_t args_count(const struct args *a, const char *name)
{
    return must_find(a, name)->number;
}

const char *const *args_list(const struct args *a, const char *name, size_t *count)
{
    const struct setting *s = must_find(a, name);
    *count = s->list_count;
    return s->list;
}

size_t args_positional_count(const struct args *a)
{
    return a->positional_count;
}

const char *args_positional(const struct args *a, size_t i)
{
    return i < a->positional_count ? a->positional[i] : NULL;
}

void *args_memory(struct args *a, size_t bytes)
{
    return keep(a, calloc(1, bytes ? bytes : 1));
}

const char *const *args_split(struct args *a, const char *text, size_t *count)
{
    char *copy = keep(a, strdup(text));
    size_t most = 1;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    const char **list = keep(a, calloc(most, sizeof *list));
    *count = 0;
    if (!copy || !list)
        return NULL;
    for (char *piece = copy; piece;) {
        char *comma = strchr(piece, ',');
        if (comma)
            *comma++ = 0;
        list[(*count)++] = piece;
        piece = comma;
    }
    return list;
}
