/* decision_log_inside.h -- what writing and reading a decision log share: its names, its numbers, its hash. */
#ifndef SIM_POLICY_DECISION_LOG_INSIDE_H
#define SIM_POLICY_DECISION_LOG_INSIDE_H

#include "sim/policy/decision_log.h"

#define LOG_MAGIC "# memwall-decisions 1"

/* Lines of the preamble: names first, then whole numbers. */
enum log_name { LOG_POLICY, LOG_PREFETCH, LOG_WHEN, LOG_SCOPE, LOG_EVICT, LOG_NAMES };
enum log_number {
    LOG_LAYERS,
    LOG_EXPERTS,
    LOG_CACHE,
    LOG_BATCH,
    LOG_DISTANCE,
    LOG_EXPERTS_MAX,
    LOG_BYTES_MAX,
    LOG_SEED,
    LOG_NUMBERS
};
extern const char *const log_name_keys[LOG_NAMES];
struct log_range {
    const char *key;
    uint64_t least, most;
};
extern const struct log_range log_numbers[LOG_NUMBERS];
extern const char *const log_when_names[]; /* ordered, idle */

#define LOG_EXPERT_BYTES_MAX ((uint64_t)1 << 40)
#define LOG_KEYS_MAX         ((uint64_t)1 << 22) /* layers * experts: sums of bytes stay below 2^63 */

/* Rows. */
enum log_call { LOG_CALL_BATCH, LOG_CALL_PREDICT, LOG_CALL_END, LOG_CALL_RESIZE, LOG_CALL_LANDED };
extern const char *const log_calls[]; /* ends with NULL */
enum log_column { LOG_CALL, LOG_PASS, LOG_LAYER, LOG_ARGUMENT, LOG_COMMANDS, LOG_COLUMNS };

/* A command as it stands in the file; returns its length. */
#define LOG_COMMAND_TEXT_MAX 40
int log_command_print(char text[LOG_COMMAND_TEXT_MAX], const struct decision *d);

/* Where the reader is, for reasons: `path:line: expected WHAT`, ST_PARSE. */
struct log_place {
    const char *path;
    size_t line;
};
enum status log_expected(const struct log_place *at, const char *what, struct diag *dg);
/* The index of a text in a list that ends with NULL, or -1. */
int log_index_of(const char *const *names, const char *text, size_t length);

/* The preamble as it is read, line by line behind the first; zeroed at the start. */
struct log_preamble {
    uint32_t lines;
    const char *name[LOG_NAMES];
    uint64_t number[LOG_NUMBERS];
    uint64_t *expert_bytes; /* allocated; the caller frees it */
    bool timed;
    struct decide_setup setup; /* whole after log_preamble_end */
};
MUST_CHECK enum status log_preamble_line(struct log_preamble *p, const struct log_place *at,
                                         const char *text, size_t length, struct diag *dg);
MUST_CHECK enum status log_preamble_end(struct log_preamble *p, const struct log_place *at,
                                        struct diag *dg);

uint64_t log_hash_setup(const char *const name[LOG_NAMES], const uint64_t number[LOG_NUMBERS],
                        const uint64_t *expert_bytes);
uint64_t log_hash_call(uint64_t h, enum log_call call, uint32_t pass, uint32_t layer);

#endif
