/* machine.h -- the few numbers of a device that time depends on, each with where it came from.
 *
 * A prediction's interval, a what-if and an inverse all change one of these numbers and derive the
 * rates again; the device description itself is never touched. Integer arithmetic throughout.
 */
#ifndef SIM_ROOFLINE_MACHINE_H
#define SIM_ROOFLINE_MACHINE_H

#include "devices/device.h"

#define RATIO_ONE UINT64_C(1000000000) /* ratios are parts in 10^9, as DIM_RATIO */

enum input_id {
    INPUT_FLASH_LATENCY,
    INPUT_FLASH_LANE,
    INPUT_FLASH_BANDWIDTH,
    INPUT_FLASH_IOPS,
    INPUT_DRAM,      /* of the memory that holds streamed and cached experts */
    INPUT_UNIT_DRAM, /* the compute unit's own memory, where it has one */
    INPUT_LINK,
    INPUT_PEAK,
    INPUT_EFFICIENCY,
    INPUT_CALL,
    INPUT_GEMM,            /* share of the peak that products of many tokens reach */
    INPUT_HOST_PEAK,       /* of the unit that computes the experts, where that is another one */
    INPUT_HOST_EFFICIENCY, /* its share of the peak */
    INPUT_COUNT
};

struct machine_input {
    char path[32];    /* as in the description: "storage.0.bandwidth" */
    const char *what; /* for people: "flash rate" */
    struct value value;
    bool by_rule; /* not in the description: this program's rule, told in value.source */
};

enum rates {
    RATES_PEAK,   /* data sheet: what a bound is made of */
    RATES_REACHED /* measured, or the customary share of the peak: what a prediction is made of */
};

struct machine {
    struct machine_input input[INPUT_COUNT];
    struct storage flash; /* closed form; its values follow the inputs */
    bool flash_given;
    bool own_memory;  /* the unit computes from memory of its own (VRAM), behind a link */
    const char *unit; /* name of the compute unit */
    const char *host; /* the unit that computes the experts out of DRAM; NULL: `unit` does it too */
    uint64_t unit_idx;
    uint64_t dram_Bps;     /* holds the expert cache and receives reads */
    uint64_t memory_Bps;   /* what kernels read from: dram_Bps or the unit's own */
    uint64_t link_Bps;     /* 0: no link */
    uint64_t link_raw_Bps; /* as described, for who knows the share that copies reach */
    uint64_t peak_ops;     /* operations/s */
    uint64_t reached_ops;  /* peak x efficiency; = peak_ops with RATES_PEAK */
    uint64_t gemm_ops;     /* the same of products of many tokens, at least reached_ops */
    uint64_t host_ops;     /* reached by `host`; 0 if there is none */
    uint64_t host_gemm_ops;
    uint64_t call_ns;
    uint64_t memory_bytes; /* capacity of the memory kernels read from */
    uint64_t dram_bytes;   /* capacity of the DRAM */
    uint64_t cards;        /* equal machines that share each layer (tensor parallel) */
};

struct machine_choice {
    const char *unit; /* "cpu", "gpu", ...; NULL: see machine_init() */
    const char
        *host; /* computes the experts out of DRAM beside a unit of its own memory; NULL: none */
    uint64_t storage; /* index; which drive streams */
    uint64_t cards;   /* 1 unless tensor parallel: capacity, bandwidth and operations times this */
    uint64_t need_bytes; /* what must be resident for nothing to stream */
    enum rates rates;
    bool eight_bit; /* weights of 8 bits or fewer: a CPU then multiplies in int8 */
};

/* "gpu+cpu" into its two names, which live in `room`; NULL leaves both open. */
#define MACHINE_UNITS_MAX 64
void machine_name_units(struct machine_choice *choice, const char *text,
                        char room[MACHINE_UNITS_MAX]);

/* Rates reached. A link reaches 0.85 of the raw rate of its data sheet. The share of the peak that a
 * description states is that of decoding, one token at a time; products of many tokens unpack a weight
 * once for all of them, so their share grows with the tokens towards a quarter of the peak (where no
 * share is stated it is half of it, for one token as for many). These rules are inputs of kind assumed.
 *
 * A unit left open is one with memory of its own that holds need_bytes, if there is one; else the
 * fastest that shares the DRAM, those with a stated efficiency before the others. Latency, lane rate
 * and iops that a drive does not state do not limit; an efficiency that is not stated is half the
 * peak, a call costs nothing: these inputs are marked by_rule, of kind assumed. */

/* ST_MISSING if the device lacks a unit or a value that time depends on, ST_RANGE if its efficiency is > 1. */
MUST_CHECK enum status machine_init(struct machine *m, const struct device *d,
                                    const struct machine_choice *choice, struct diag *dg);
/* Derives the rates again after inputs were changed. */
void machine_derive(struct machine *m);
/* Operations/s of products of `rows_e3`/1000 tokens a weight, where one token reaches `one` and many reach
 * `many`; and the same by the unit or by `host` of a machine. */
uint64_t machine_rows_ops(uint64_t one, uint64_t many, uint64_t rows_e3);
uint64_t machine_ops(const struct machine *m, uint64_t rows_e3);
uint64_t machine_host_ops(const struct machine *m, uint64_t rows_e3);
/* Multiplies an input by parts in 10^9 and derives. */
void machine_scale(struct machine *m, enum input_id id, uint64_t factor);
/* Flash `factor` times as fast: ceiling, lane rate, small-read rate and interface together; latency
 * stays. */
void machine_scale_flash(struct machine *m, uint64_t factor);

#endif
