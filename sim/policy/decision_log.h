/* decision_log.h -- the calls a driver made to the decisions and the commands it got, as a text file.
 *
 * Ordered policies need no such thing: the routing trace says all that they see. A timed prefetcher is called
 * when the device happens to be idle, so only the order in which it was called tells what it did. With that
 * order in a file, the same calls made to fresh decisions must give every command again (tier E2).
 *
 *     # memwall-decisions 1
 *     # policy=lru                           then, in this order: prefetch, when (ordered or idle), scope, evict,
 *     # ...                                  layers, experts, cache_bytes, batch_bytes_max, prefetch_distance,
 *     # seed=0                               prefetch_experts_max, prefetch_bytes_max, seed
 *     # layer=0 expert_bytes=N               one a layer
 *     call,pass,layer,argument,commands
 *     batch,0,0,3 1 3,d3:0 d1:1              experts, of every token by its slots
 *     predict,0,0,1 2,p10:2                  target layer, then experts
 *     landed,0,0,10,                         key: its read was noticed to be over
 *     layer_end,0,0,,
 *     resize,0,0,4096,x10:2                  bytes of the cache from now on
 *     # end rows=5 arguments=HASH commands=HASH
 *
 * A command is a letter (d demand, p prefetch, x drop), its key, slot and, if there is one, victim. `arguments` is
 * a running hash_add, from HASH_SEED, of the preamble's numbers and names and of the numbers of each call;
 * `commands` is the command hash of decide.h. So no number of the file can change unnoticed.
 *
 * `landed` rows stand in logs of timed prefetchers alone (when=idle); without them a log is the same for any
 * machine. There, a guess is loaded only when all that was commanded before has landed, which is checked. */
#ifndef SIM_POLICY_DECISION_LOG_H
#define SIM_POLICY_DECISION_LOG_H

#include "sim/policy/decide.h"

struct decision_log;

/* The file appears under its path when it is closed. `s` and `batch_bytes_max` as they went into decide_new. ST_IO;
 * ST_UNSUPPORTED: a hot list (rank), which a log does not hold. */
MUST_CHECK enum status decision_log_open(struct decision_log **out, const char *path,
                                         const struct decide_setup *s, uint64_t batch_bytes_max,
                                         bool timed, struct diag *dg);
/* What the decisions were asked, and the `count` commands that they gave. A log that is NULL is none. */
void decision_log_batch(struct decision_log *l, uint32_t pass, uint32_t layer, const uint16_t *ids,
                        size_t n, const struct decision *d, size_t count);
void decision_log_predict(struct decision_log *l, uint32_t pass, uint32_t layer, uint32_t target,
                          const uint16_t *ids, size_t n, const struct decision *d, size_t count);
void decision_log_layer_end(struct decision_log *l, uint32_t pass, uint32_t layer,
                            const struct decision *d, size_t count);
void decision_log_resize(struct decision_log *l, uint64_t budget_bytes, const struct decision *d,
                         size_t count);
void decision_log_landed(struct decision_log *l, uint32_t key);
/* Frees the log either way. */
MUST_CHECK enum status decision_log_close(struct decision_log *l, uint64_t command_hash,
                                          struct diag *dg);
void decision_log_abandon(struct decision_log *l); /* writes no file; NULL is fine */

struct decision_log_result {
    const struct cache_policy *policy;
    const struct prefetch_policy *prefetch; /* NULL: none */
    enum scope scope;
    enum evict_when evict;
    bool timed;
    uint64_t cache_bytes, calls;
    struct decide_counts counts; /* of the fresh decisions */
    bool equal;
    struct diag difference; /* the first command that differs, with its line; empty if equal */
};

/* Makes the calls of the file to fresh decisions. Commands other than those of the file are no failure but
 * `equal` false. ST_PARSE, ST_RANGE, ST_MISFIT with file:line: this is no whole, unchanged log. */
MUST_CHECK enum status decision_log_replay(const char *path, struct decision_log_result *out,
                                           struct diag *dg);

#endif
