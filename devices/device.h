/* device.h -- what a machine is: memory, storage, links, compute, power and heat, each value with
 * its kind and source.
 *
 * Filled from devices/desc/NAME.yaml (or any path). A storage entry may name a part (`part:
 * samsung-990-pro`, another file of the catalogue, of class storage, or of class memory with one
 * storage entry) and override its values.
 * Members that a description leaves out have .given = false: whoever needs one says so, nothing is
 * made up. docs/formats.md describes the file.
 *
 * compute[0] is what runs the model out of `dram`: the CPU of a machine; further units have
 * their own memory or share the DRAM. An accelerator (class accelerator) is described as the
 * machine that its own memory makes: dram is its HBM, compute[0] the accelerator, storage what
 * it reads over its link. */
#ifndef DEVICES_DEVICE_H
#define DEVICES_DEVICE_H

#include "base/arena.h"
#include "base/value.h"
#include "base/yaml.h"

enum device_class {
    DEVICE_PHONE,
    DEVICE_MAC,
    DEVICE_LAPTOP,
    DEVICE_DESKTOP,
    DEVICE_SERVER,
    DEVICE_BOARD,
    DEVICE_HANDHELD,
    DEVICE_ACCELERATOR,
    DEVICE_MEMORY,
    DEVICE_STORAGE
};

/* rate(c, q) = min(bandwidth, q*c/(latency + c/lane_bandwidth), iops*c)   SYSTEMS 1.4 */
enum storage_model { STORAGE_CURVE, STORAGE_NAND };
struct storage {
    const char *name;
    const char *part;            /* the catalogue file it came from, or NULL */
    int model;                   /* enum storage_model */
    struct value capacity;       /* bytes */
    struct value latency;        /* t0: fixed cost of a read, device and host together, ns */
    struct value lane_bandwidth; /* B1: one read's stream rate, B/s */
    struct value bandwidth;      /* B_max: the device's ceiling, cold random reads >= 1 MiB, B/s */
    struct value sequential_bandwidth; /* as advertised; never used for random expert reads */
    struct value hot_bandwidth;        /* ceiling when throttled by heat */
    struct value queue_depth;          /* places in the device */
    struct value iops;                 /* small reads a second */
    struct value grain;                /* bytes served to one read before the next gets its turn */
    struct value dram_inflation; /* bytes of memory bandwidth that one byte read takes; else 1 */
    struct value write_bandwidth;
    struct value link_bandwidth; /* interface limit, where it is below the media */
    struct value read_power;     /* while reading at `bandwidth`, uW */
    /* STORAGE_NAND */
    struct value channels, dies_per_channel, planes, page_bytes, read_time, bus_bandwidth;
    struct value endurance_cycles;
};

struct memory {
    struct value capacity;             /* bytes */
    struct value bandwidth;            /* peak of the data sheet, B/s */
    struct value measured_bandwidth;   /* what reads reach with all threads */
    struct value thread_bandwidth;     /* what one thread reaches */
    struct value read_energy_per_byte; /* pJ */
    struct value latency;              /* ns */
};

/* What products with weights of one format reach on this unit, as measured: bytes of weights a second, and
 * what a call costs beside them (fork, join, gating). Weights that fit the last-level cache come from it. */
enum kernel_layout { KERNEL_BLOCKS, KERNEL_PACKED };
struct kernel_rate {
    const char *format;      /* slug of models/quant.h */
    int layout;              /* enum kernel_layout: as GGUF stores it, or packed */
    uint64_t threads;        /* that shared it */
    uint64_t tokens;         /* a weight was multiplied with */
    struct value rate;       /* out of memory, B/s */
    struct value cache_rate; /* out of the last-level cache, B/s */
    struct value call;       /* ns */
};

struct compute {
    const char *name; /* cpu, gpu, npu */
    struct value threads;
    struct value f32, f16, int8; /* peak operations/s, dense */
    struct value efficiency;     /* share of the peak reached by quantised GEMV and GEMM */
    struct value call_time;      /* launch and synchronisation of one kernel, ns */
    struct value energy_per_op;  /* pJ */
    struct memory memory;        /* its own (VRAM); capacity not given: shares the DRAM */
    struct value link_bandwidth; /* host <-> this unit, each way */
    struct yaml_list kernels; /* of struct kernel_rate; none: rates follow from peaks and shares */
};

/* What this machine costs an engine beside kernels and drives, as measured with that engine; they take the place
 * of its profile's own figures (docs/profiles.md says what each key means). */
struct host_costs {
    const char *engine; /* the profile whose costs these are; NULL: none */
    struct value submit, complete, wake, wake_busy, predict; /* ns */
    struct value resume, resume_layer;                       /* ns; after a wait */
    struct value layer_overhead, token_overhead;             /* ns */
};

struct device {
    struct arena arena;
    const char *name, *title, *origin;
    int class_of; /* enum device_class */
    struct memory dram;
    struct value last_level_cache; /* bytes that the kernels' threads share */
    struct value reserve;          /* bytes the system and its apps keep */
    struct host_costs host;
    size_t storage_count;
    struct storage *storage;
    size_t compute_count;
    struct compute *compute;                                 /* [0]: see above */
    struct value idle_power, load_power, battery;            /* uW, uW, pJ */
    struct value thermal_resistance, heat_capacity, ambient; /* mK per W, mJ per K, mC */
    struct value throttle_start, throttle_full;              /* mC */
    struct value throttle_floor;                             /* ratio of the clock at full */
    const char *note;
};

/* DEVICE is a catalogue name or a path ending in .yaml; overrides are PATH=VALUE.
 *
 * Errors: ST_MISSING for a name that no file of the catalogue has (with the nearest), ST_PARSE
 * for a file that breaks the format (file:line), ST_RANGE for a value outside its limits or two
 * values that contradict each other. An override goes over what the file and its parts say, also
 * for a key that neither has. `storage.0.part=PART` swaps the drive: the new part's values replace
 * everything the file said of the old one but the link_bandwidth of its slot; a relative path of a
 * part starts at the current folder. Overriding a bandwidth scales what was measured beside it
 * (measured_bandwidth of a memory, hot_bandwidth of a storage) by the same factor, unless that
 * is overridden too. */
MUST_CHECK enum status device_load(struct device **out, const char *device, const char *catalogue,
                                   const char *const *overrides, size_t override_count,
                                   struct diag *dg);
void device_free(struct device *d); /* NULL is fine */
const char *device_class_name(int class_of);
/* In the order of enum device_class; ends with NULL. */
extern const char *const device_class_names[];

/* The catalogue's names in byte order; texts and array live in `arena`. */
MUST_CHECK enum status device_names(struct arena *arena, const char *catalogue,
                                    const char *const **names, size_t *count, struct diag *dg);

/* The closed form: the roofline's storage model, by 128-bit integers, exact but for one rounding
 * down.
 *
 *   rate(c, q) = min(bandwidth, link_bandwidth, q*c/(latency + c/lane_bandwidth), iops*c)
 *
 * in B/s, for reads of c = `bytes` with q = `depth` of them under way (0 counts as 1; never more
 * than queue_depth). A nand description is also bound by its buses, channels*bus_bandwidth, and
 * by its array, a page of every plane each read_time; its latency is the read_time unless
 * stated. Values that are not given do not limit; if none limits the result is UINT64_MAX. It
 * never falls when a bandwidth, the depth or the read size grows, nor when the latency shrinks. */
uint64_t storage_closed_rate_Bps(const struct storage *s, uint64_t bytes, uint64_t depth);
/* n reads of `bytes` each from idle, `depth` of them under way at a time, rounded up to whole ns:
 *
 *   t(n, c, q) = max(ceil(n/q)*(latency + c/lane_bandwidth), n*c/pipe, n/iops)
 *
 * An expert stored in p pieces makes n*p reads of c/p bytes. 0 for n = 0; saturates at
 * UINT64_MAX. */
uint64_t storage_closed_burst_ns(const struct storage *s, uint64_t n, uint64_t bytes,
                                 uint64_t depth);

/* DRAM rate to plan with: measured where there is one, else 0.8 of the peak (derived). */
struct value device_dram_rate(const struct device *d);

/* Calls back for every value of a device, with its path ("storage.0.bandwidth"): for listing
 * sources, counting assumptions and drawing the inputs of an interval. */
typedef void device_value_fn(void *self, const char *path, struct value *v);
void device_each_value(struct device *d, device_value_fn *fn, void *self);

#endif
