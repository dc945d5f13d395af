/* status.c -- see status.h. */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum status diag_set(struct diag *dg, enum status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(dg->text, sizeof dg->text, format, args);
    va_end(args);
    for (char *c = dg->text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    dg->status = status;
    return status;
}

enum status diag_no_memory(struct diag *dg)
{
    return diag_set(dg, ST_NO_MEMORY, "out of memory");
}

enum status diag_errno(struct diag *dg, const char *path, const char *what)
{
    int error = errno;
    return diag_set(dg, ST_IO, "%s: %s: %s", path, what, strerror(error));
}
