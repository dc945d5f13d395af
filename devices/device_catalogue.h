/* device_catalogue.h -- from the name of a device or part to its file. Internal to devices/. */
#ifndef DEVICES_DEVICE_CATALOGUE_H
#define DEVICES_DEVICE_CATALOGUE_H

#include "base/arena.h"
#include "base/status.h"

/* `name` ends in .yaml: a path, taken relative to the folder of `beside` unless that is NULL or
 * `name` is absolute. Otherwise a slug (lower case letters, digits, '-' and '.') of the
 * catalogue. The result lives in `arena`. ST_MISSING, with the nearest name, if the catalogue
 * has no such file. */
MUST_CHECK enum status device_path(const char **out, const char *name, const char *catalogue,
                                   const char *beside, struct arena *arena, struct diag *dg);

/* The last part of a path without .yaml; NULL when there is no memory. */
const char *device_stem(const char *path, struct arena *arena);

#endif
