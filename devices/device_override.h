/* device_override.h -- `--set PATH=VALUE` on a device. Internal to devices/. */
#ifndef DEVICES_DEVICE_OVERRIDE_H
#define DEVICES_DEVICE_OVERRIDE_H

#include "base/yaml.h"
#include "devices/device.h"

/* Whether PATH leads to a value row (an amount with kind and source), rather than to a text or
 * choice. */
bool device_override_is_value(const char *override);

/* A text or choice: edits the document before it is read. */
MUST_CHECK enum status device_override_document(struct yaml_doc *doc, const char *override,
                                                struct diag *dg);

/* All value overrides, in order, into the device as read. VALUE is an amount (which becomes kind
 * assumed, source --set) or a whole `[amount, kind, source]`. What was measured beside an
 * overridden bandwidth is scaled by the same factor. Then the limits are checked again. */
MUST_CHECK enum status device_override_values(struct device *d, const struct yaml_doc *doc,
                                              const char *const *overrides, size_t count,
                                              struct diag *dg);

#endif
