/* trace_convert.c -- `memwall trace convert`: any trace that can be read, in the memwall format or as
 * libCacheSim's oracleGeneral. */
#include "cli/commands.h"

#include "sim/trace/trace.h"
#include "sim/trace/trace_write.h"

static const char *const targets[] = {"memwall", "oracle-general", NULL};

static const struct option options[] = {
    {"to", OPTION_CHOICE, "memwall|oracle-general", "format of the result", "memwall", targets, 0,
     0, false},
    {"out", OPTION_TEXT, "FILE", "where to write it (- is standard output)", "-", NULL, 0, 0,
     false},
    {"expert-bytes", OPTION_SIZE, "SIZE", "size of every expert, in place of what the trace says",
     NULL, NULL, 1, TRACE_EXPERT_BYTES_MAX, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static enum status trace_convert(struct args *a, struct diag *dg)
{
    struct trace *t;
    enum status st = trace_load(&t, args_positional(a, 0), dg);
    if (st != ST_OK)
        return st;
    for (uint32_t l = 0; args_given(a, "expert-bytes") && l < t->layers; l++)
        if (t->layer[l].expert_bytes > 0)
            t->layer[l].expert_bytes = args_count(a, "expert-bytes");
    if (args_count(a, "to") == 0)
        st = trace_save(t, args_text(a, "out"), dg);
    else
        st = trace_save_oracle_general(t, args_text(a, "out"), dg);
    trace_free(t);
    return st;
}

const struct command command_trace_convert = {
    .name = "trace convert",
    .summary =
        "any trace in the memwall format, or written (not read) as libCacheSim oracleGeneral",
    .usage = "TRACE [--to memwall|oracle-general] [--out FILE]",
    .example =
        "memwall trace convert tests/data/demo.trace.csv --to oracle-general --out demo.oracle",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .no_set = true,
    .run = trace_convert,
};
