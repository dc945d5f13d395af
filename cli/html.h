/* html.h -- a page that needs nothing but itself: no script, no network, no font from elsewhere.
 *
 * Every text is escaped here and nowhere else, so whatever a file's cells hold comes out as text. The
 * page forbids itself scripts and requests (Content-Security-Policy), which browsers obey even if an
 * escape were forgotten. Its look is black on white with grey lines, so that paper shows what the screen
 * shows; what is folded on the screen is open on paper. */
#ifndef CLI_HTML_H
#define CLI_HTML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Escaped: markup characters and quotes as entities; control characters and what is no UTF-8 as
 * U+FFFD. A newline is kept. */
void html_text(FILE *f, const char *text);
void html_element(FILE *f, const char *name, const char *text); /* <name>text</name> */
void html_term(FILE *f, const char *term, const char *text);    /* of a <dl>; NULL text: nothing */

void html_begin(FILE *f, const char *title);
void html_end(FILE *f);

/* A table, cell by cell; numbers stand to the right. Of a table of HTML_ROWS_SHOWN and a few more rows
 * the first are shown and the others folded. */
#define HTML_ROWS_SHOWN 15
struct html_table {
    FILE *f;
    const char *const *name; /* of the columns; lives until html_table_end() */
    size_t columns, rows, at;
    bool plain; /* numbers to the left as well: of columns that mix them with words */
};
void html_table_begin(struct html_table *t, FILE *f, const char *caption, const char *const *name,
                      size_t columns, size_t rows);
void html_cell(struct html_table *t, const char *text); /* NULL is empty */
void html_table_end(struct html_table *t);              /* all rows * columns cells were given */

/* An SVG drawing in the page: what stands before <svg is left out, and ids get `prefix`, because those
 * of two drawings on one page must differ. Only elements that draw, without handlers, pass; any other
 * tag comes out as text. */
void html_svg(FILE *f, const char *svg, const char *prefix);

#endif
