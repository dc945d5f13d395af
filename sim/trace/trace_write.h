/* trace_write.h -- other programs' formats that a trace can be written in. */
#ifndef SIM_TRACE_TRACE_WRITE_H
#define SIM_TRACE_TRACE_WRITE_H

#include "sim/trace/trace.h"

/* libCacheSim's oracleGeneral: packed little-endian records {u32 clock = pass, u64 object = layer *
 * experts + expert, u32 size, i64 next access as a request number from 1, or -1}. One record a lookup:
 * unique experts of a (pass, layer) batch in slot order. `cachesim F oracleGeneral lru 4GB` replays it. */
MUST_CHECK enum status trace_save_oracle_general(const struct trace *t, const char *path,
                                                 struct diag *dg);

#endif
