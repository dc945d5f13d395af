/* device_schema.h -- the tables behind the device format: one row a key, which is its parser, its
 * limits and its line of documentation. Internal to devices/; programs use device.h.
 *
 * device_read() does one file; device_check() is everything a table cannot say: what a class
 * needs, and which values contradict each other. */
#ifndef DEVICES_DEVICE_SCHEMA_H
#define DEVICES_DEVICE_SCHEMA_H

#include "base/yaml.h"
#include "devices/device.h"

/* A device while its file is read: the lists are not yet arrays of it. `d` must stay first,
 * since the tables hold offsets into both. */
struct device_reading {
    struct device d;
    yaml_node storage;
    struct yaml_list compute;
};

extern const struct yaml_field device_fields[];  /* over struct device_reading */
extern const struct yaml_field storage_fields[]; /* over struct storage */
extern const struct yaml_field compute_fields[]; /* over struct compute */
extern const struct yaml_field memory_fields[];  /* over struct memory */

/* The row of `key`, or NULL. `length` is that of the key, which need not end there. */
const struct yaml_field *device_field(const struct yaml_field *fields, const char *key,
                                      size_t length);

/* Called for every value row of a device, given or not, with its path. */
typedef enum status device_row_fn(void *self, const char *path, const struct yaml_field *field,
                                  struct value *v, struct diag *dg);
MUST_CHECK enum status device_each_row(struct device *d, device_row_fn *fn, void *self,
                                       struct diag *dg);

/* Limits of each value by its row. `doc` gives the line of what stands in the file. */
MUST_CHECK enum status device_check_limits(struct device *d, const struct yaml_doc *doc,
                                           struct diag *dg);
/* What the class needs, and values that contradict each other. */
MUST_CHECK enum status device_check(struct device *d, const struct yaml_doc *doc, struct diag *dg);

#endif
