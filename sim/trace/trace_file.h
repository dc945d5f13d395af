/* trace_file.h -- the readers behind trace_load(), one a format, and the decimal weights they share. */
#ifndef SIM_TRACE_TRACE_FILE_H
#define SIM_TRACE_TRACE_FILE_H

#include "base/csv.h"
#include "sim/trace/trace.h"

MUST_CHECK enum status trace_read_memwall(struct trace **out, const char *path, struct diag *dg);
MUST_CHECK enum status trace_read_bmoe(struct trace **out, const char *path, struct diag *dg);
MUST_CHECK enum status trace_read_esft(struct trace **out, const char *dir, struct diag *dg);

/* A decimal ("0.0976991", "-3.2e-05", "" = 0) as parts in 10^9, rounded half away from zero; false if
 * it is none or beyond +-9e9. */
bool trace_weight_parse(struct csv_field f, int64_t *out);
/* The shortest decimal of it. */
#define TRACE_WEIGHT_TEXT_MAX 24
const char *trace_weight_print(char buffer[TRACE_WEIGHT_TEXT_MAX], int64_t weight);

/* `key=NUMBER` within a comment: finds " key=" and reads the number after it. */
bool trace_comment_u64(const char *text, size_t length, const char *key, uint64_t *out);
/* `key=TEXT` up to the next blank or, if `to_end`, to the end of the line; allocated. */
char *trace_comment_text(const char *text, size_t length, const char *key, bool to_end);
/* The name behind `model=`, which must be one and without control characters; allocated. */
MUST_CHECK enum status trace_comment_model(char **out, const char *path, size_t line,
                                           const char *text, size_t length, bool to_end,
                                           struct diag *dg);
/* A `# layer=L expert_bytes=N dense_bytes=N` line: checks that L is the next one. */
MUST_CHECK enum status trace_comment_layer(const char *path, size_t line, const char *text,
                                           size_t length, struct trace_layer *layer,
                                           uint32_t *layer_count, struct diag *dg);

#endif
