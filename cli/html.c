/* html.c -- see html.h. */
#include "cli/html.h"

#include "base/csv.h"
#include "base/utf8.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum { FOLD_LEAST = 5 }; /* fewer rows are not worth folding */

/* ---- texts ---- */

/* Writes one character of `text` and returns what follows it. */
static const char *put_character(FILE *f, const char *text)
{
    static const struct {
        char character;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    int length = utf8_length(text);
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
        if (*text == entities[i].character) {
            fputs(entities[i].entity, f);
            return text + 1;
        }
    if (length == 0 || (utf8_is_control(text, length) && *text != '\n'))
        fputs("\xef\xbf\xbd", f);
    else
        fwrite(text, 1, (size_t)length, f);
    return text + (length ? length : 1);
}

void html_text(FILE *f, const char *text)
{
    while (*text)
        text = put_character(f, text);
}

void html_element(FILE *f, const char *name, const char *text)
{
    fprintf(f, "<%s>", name);
    html_text(f, text);
    fprintf(f, "</%s>\n", name);
}

void html_term(FILE *f, const char *term, const char *text)
{
    if (!text)
        return;
    html_element(f, "dt", term);
    html_element(f, "dd", text);
}

/* ---- the page ---- */

static const char style[] =
    "body{font:15px/1.45 system-ui,sans-serif;color:#000;background:#fff;max-width:64em;"
    "margin:1.5em auto;padding:0 1em}\n"
    "h1{font-size:1.5em;line-height:1.25}h2{font-size:1.2em;margin-top:2em;"
    "border-bottom:1px solid #888}h3{font-size:1em}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.2em 1em}"
    "dt{font-weight:bold}dd{margin:0;overflow-wrap:anywhere}\n"
    ".wide{overflow-x:auto;margin:.8em 0}table{border-collapse:collapse;font-size:13px}\n"
    "caption{text-align:left;font-weight:bold;padding:.3em 0}\n"
    "th,td{border:1px solid #aaa;padding:.15em .5em;text-align:left;vertical-align:top}\n"
    "th{background:#eee}td.n{text-align:right;font-variant-numeric:tabular-nums;"
    "white-space:nowrap}\n"
    "summary{cursor:pointer;text-decoration:underline}figure{margin:1em 0}"
    "svg{max-width:100%;height:auto}\n"
    ".missing{border:1px dashed #555;padding:.6em}footer{margin-top:2em;font-size:13px;"
    "color:#444}\n"
    "@media print{body{max-width:none;margin:0;font-size:11px}table{font-size:8px}"
    "th,td{padding:.1em .25em;overflow-wrap:anywhere}.wide{overflow:visible}"
    "td.n{white-space:normal}tr,figure{break-inside:avoid}h2,h3{break-after:avoid}\n"
    "details::details-content{content-visibility:visible;display:block}}\n";

void html_begin(FILE *f, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
          f);
    html_element(f, "title", title);
    fprintf(f, "<style>\n%s</style>\n</head>\n<body>\n", style);
}

void html_end(FILE *f)
{
    fputs("<footer>memwall " MEMWALL_VERSION "</footer>\n</body>\n</html>\n", f);
}

/* ---- tables ---- */

static void table_head(const struct html_table *t, const char *caption)
{
    fputs("<div class=\"wide\"><table>\n", t->f);
    if (caption)
        html_element(t->f, "caption", caption);
    fputs("<thead><tr>", t->f);
    for (size_t c = 0; c < t->columns; c++) {
        fputs("<th scope=\"col\">", t->f);
        html_text(t->f, t->name[c]);
        fputs("</th>", t->f);
    }
    fputs("</tr></thead>\n<tbody>\n", t->f);
}

static void table_foot(const struct html_table *t)
{
    fputs("</tbody></table></div>\n", t->f);
}

static bool folds(const struct html_table *t)
{
    return t->rows >= HTML_ROWS_SHOWN + FOLD_LEAST;
}

void html_table_begin(struct html_table *t, FILE *f, const char *caption, const char *const *name,
                      size_t columns, size_t rows)
{
    *t = (struct html_table){f, name, columns, rows, 0, false};
    table_head(t, caption);
}

/* A number, or one with a unit. */
static bool is_amount(const char *text)
{
    double number;
    size_t n = strcspn(text, " ");
    const char *unit = text + n + (text[n] == ' ');
    return csv_double((struct csv_field){text, n}, &number) && !strchr(unit, ' ');
}

void html_cell(struct html_table *t, const char *text)
{
    size_t column = t->at % t->columns, row = t->at / t->columns;
    const char *shown = text ? text : "";
    if (column == 0 && row == HTML_ROWS_SHOWN && folds(t)) {
        table_foot(t);
        fprintf(t->f, "<details><summary>the other %zu rows</summary>\n", t->rows - row);
        table_head(t, NULL);
    }
    fprintf(t->f, "%s<td%s>", column ? "" : "<tr>",
            !t->plain && is_amount(shown) ? " class=\"n\"" : "");
    html_text(t->f, shown);
    fputs("</td>", t->f);
    if (++t->at % t->columns == 0)
        fputs("</tr>\n", t->f);
}

void html_table_end(struct html_table *t)
{
    assert(t->at == t->rows * t->columns);
    table_foot(t);
    if (folds(t))
        fputs("</details>\n", t->f);
}

/* ---- drawings ---- */

static bool draws(const char *name, size_t length)
{
    static const char *const elements[] = {
        "svg",  "g",       "path",   "polygon", "polyline",    "rect",     "circle",
        "line", "ellipse", "text",   "tspan",   "title",       "desc",     "defs",
        "use",  "pattern", "filter", "feFlood", "feComposite", "clipPath", NULL};
    for (const char *const *e = elements; *e; e++)
        if (strlen(*e) == length && memcmp(*e, name, length) == 0)
            return true;
    return false;
}

/* The length of the tag at `at`, from '<' to '>', or 0 if it is none that may pass. An attribute's
 * name stands after a blank; handlers begin with "on". */
static size_t passing_tag(const char *at)
{
    const char *name = at + 1 + (at[1] == '/');
    size_t length = strcspn(at, ">"), named = strcspn(name, " \t\n/>");
    if (at[length] != '>' || !draws(name, named))
        return 0;
    for (const char *c = name + named; c < at + length; c++)
        if (strchr(" \t\n/\"'", *c) && strncasecmp(c + 1, "on", 2) == 0)
            return 0;
    return length + 1;
}

/* Whether what ends at tag[i] says that an id, or a reference to one, comes next. */
static bool id_follows(const char *tag, size_t i)
{
    static const char *const before[] = {"id=\"", "id='", "href=\"#", "href='#", "url(#"};
    for (size_t k = 0; k < sizeof before / sizeof *before; k++) {
        size_t n = strlen(before[k]);
        if (n <= i && memcmp(tag + i - n, before[k], n) == 0)
            return true;
    }
    return false;
}

static void put_tag(FILE *f, const char *tag, size_t length, const char *prefix)
{
    for (size_t i = 0; i < length; i++) {
        if (id_follows(tag, i))
            fputs(prefix, f);
        fputc(tag[i], f);
    }
}

static bool is_entity(const char *at)
{
    size_t n = 1 + (at[1] == '#');
    size_t name = strspn(at + n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    return name > 0 && at[n + name] == ';';
}

void html_svg(FILE *f, const char *svg, const char *prefix)
{
    const char *at = strstr(svg, "<svg");
    while (at && *at) {
        size_t tag = *at == '<' ? passing_tag(at) : 0;
        if (tag) {
            put_tag(f, at, tag, prefix);
            at += tag;
        } else if (*at == '&' && is_entity(at)) {
            fputc(*at++, f); /* the drawing's own escape */
        } else {
            at = put_character(f, at);
        }
    }
    fputc('\n', f);
}
