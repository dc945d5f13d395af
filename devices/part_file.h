/* part_file.h -- writes a description of class storage, which a device can name as its part. */
#ifndef DEVICES_PART_FILE_H
#define DEVICES_PART_FILE_H

#include "devices/device.h"

/* The given values of `s` with kind, source and stated spread, exactly as device_load() reads
 * them back. `note` may be NULL. The file appears whole or not at all; "-" is standard output. */
MUST_CHECK enum status part_file_write(const char *path, const char *title, const char *note,
                                       const struct storage *s, struct diag *dg);

#endif
