/* part_file.c -- see part_file.h. */
#include "devices/part_file.h"

#include "base/outfile.h"
#include "base/yaml.h"
#include "devices/device_schema.h"

#include <inttypes.h>

static void write_value(FILE *f, const char *key, const struct value *v)
{
    char amount[QUANTITY_TEXT_MAX], spread[QUANTITY_TEXT_MAX];
    fprintf(f, "    %s: [%s, %s, ", key, quantity_print(amount, v->amount, v->dim),
            value_kind_name(v->kind));
    yaml_write_text(f, v->source);
    if (v->spread_given)
        fprintf(f, ", %s", quantity_print(spread, v->spread, DIM_RATIO));
    fputs("]\n", f);
}

enum status part_file_write(const char *path, const char *title, const char *note,
                            const struct storage *s, struct diag *dg)
{
    struct outfile *out;
    enum status st = outfile_open(&out, path, dg);
    if (st != ST_OK)
        return st;
    FILE *f = outfile_stream(out);
    fputs("title: ", f);
    yaml_write_text(f, title);
    fprintf(f, "\nclass: %s\n", device_class_name(DEVICE_STORAGE));
    if (note) {
        fputs("note: ", f);
        yaml_write_text(f, note);
        fputc('\n', f);
    }
    fputs("storage:\n  - name: ", f);
    yaml_write_text(f, s->name);
    fputc('\n', f);
    for (const struct yaml_field *row = storage_fields; row->key; row++) {
        const struct value *v = (const void *)((const char *)s + row->offset);
        if (row->type == YAML_TYPE_VALUE && v->given)
            write_value(f, row->key, v);
    }
    return outfile_commit(out, dg);
}
