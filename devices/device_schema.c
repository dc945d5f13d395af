/* device_schema.c -- see device_schema.h. */
#include "devices/device_schema.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static_assert(offsetof(struct device_reading, d) == 0, "the tables hold offsets into both structs");

#define VALUE(k, s, m, dimension, least, most, text)                                               \
    {                                                                                              \
        .key = k, .type = YAML_TYPE_VALUE, .offset = offsetof(struct s, m), .dim = dimension,      \
        .min = least, .max = most, .help = text                                                    \
    }
#define TEXT(k, s, m, need, text)                                                                  \
    {                                                                                              \
        .key = k, .type = YAML_TYPE_TEXT, .offset = offsetof(struct s, m), .required = need,       \
        .help = text                                                                               \
    }

#define MAX_BYTES UINT64_C(1000000000000000)    /* 1 PB */
#define MAX_RATE  UINT64_C(1000000000000000)    /* 1 PB/s */
#define MAX_TIME  UINT64_C(10000000000)         /* 10 s */
#define MAX_OPS   UINT64_C(1000000000000000000) /* 1 EOP/s */
#define MAX_POWER UINT64_C(1000000000000)       /* 1 MW in uW */
#define MAX_HEAT  UINT64_C(200000)              /* 200 C in mC */
#define MAX_RATIO UINT64_C(1000000000)          /* 1 */

const char *const device_class_names[] = {"phone",  "mac",     "laptop",   "desktop",
                                          "server", "board",   "handheld", "accelerator",
                                          "memory", "storage", NULL};
static const char *const model_names[] = {"curve", "nand", NULL};

const struct yaml_field memory_fields[] = {
    VALUE("capacity", memory, capacity, DIM_SIZE, 1, MAX_BYTES, "bytes"),
    VALUE("bandwidth", memory, bandwidth, DIM_RATE, 1, MAX_RATE, "peak of the data sheet"),
    VALUE("measured_bandwidth", memory, measured_bandwidth, DIM_RATE, 1, MAX_RATE,
          "what reads reach with all threads"),
    VALUE("thread_bandwidth", memory, thread_bandwidth, DIM_RATE, 1, MAX_RATE,
          "what one thread reaches"),
    VALUE("read_energy_per_byte", memory, read_energy_per_byte, DIM_ENERGY, 1, 1000000,
          "energy of one byte read"),
    VALUE("latency", memory, latency, DIM_TIME, 1, MAX_TIME, "of one access"),
    {.key = NULL}};

const struct yaml_field storage_fields[] = {
    TEXT("name", storage, name, false, "what people call it; a part brings its own"),
    TEXT("part", storage, part, false,
         "a description of class storage (or memory) that gives the rest"),
    {.key = "model",
     .type = YAML_TYPE_CHOICE,
     .offset = offsetof(struct storage, model),
     .choices = model_names,
     .help = "curve (default) or nand"},
    VALUE("capacity", storage, capacity, DIM_SIZE, 1, MAX_BYTES, "bytes"),
    VALUE("latency", storage, latency, DIM_TIME, 1, MAX_TIME,
          "t0: fixed cost of a read, device and host together"),
    VALUE("lane_bandwidth", storage, lane_bandwidth, DIM_RATE, 1, MAX_RATE,
          "B1: stream rate of one read"),
    VALUE("bandwidth", storage, bandwidth, DIM_RATE, 1, MAX_RATE,
          "B_max: ceiling of cold random reads of 1 MiB and more"),
    VALUE("sequential_bandwidth", storage, sequential_bandwidth, DIM_RATE, 1, MAX_RATE,
          "as advertised; not used for random reads"),
    VALUE("hot_bandwidth", storage, hot_bandwidth, DIM_RATE, 1, MAX_RATE,
          "ceiling when throttled by heat"),
    VALUE("queue_depth", storage, queue_depth, DIM_COUNT, 1, 1048576, "places in the device"),
    VALUE("iops", storage, iops, DIM_FREQUENCY, 1, 1000000000000, "small reads a second"),
    VALUE("grain", storage, grain, DIM_SIZE, 512, MAX_BYTES,
          "bytes served to one read before the next gets its turn"),
    VALUE("dram_inflation", storage, dram_inflation, DIM_COUNT, 1, 1000,
          "bytes of memory bandwidth that one byte read takes from kernels"),
    VALUE("write_bandwidth", storage, write_bandwidth, DIM_RATE, 1, MAX_RATE, "sequential writes"),
    VALUE("link_bandwidth", storage, link_bandwidth, DIM_RATE, 1, MAX_RATE, "interface limit"),
    VALUE("read_power", storage, read_power, DIM_POWER, 1, MAX_POWER, "while reading at bandwidth"),
    VALUE("channels", storage, channels, DIM_COUNT, 1, 1048576, "nand: channels"),
    VALUE("dies_per_channel", storage, dies_per_channel, DIM_COUNT, 1, 65536, "nand: dies on one"),
    VALUE("planes", storage, planes, DIM_COUNT, 1, 65536, "nand: planes of a die"),
    VALUE("page_bytes", storage, page_bytes, DIM_SIZE, 64, 1073741824, "nand: bytes of a page"),
    VALUE("read_time", storage, read_time, DIM_TIME, 1, MAX_TIME, "nand: tR, array to register"),
    VALUE("bus_bandwidth", storage, bus_bandwidth, DIM_RATE, 1, MAX_RATE, "nand: of one channel"),
    VALUE("endurance_cycles", storage, endurance_cycles, DIM_COUNT, 1, 1000000000000,
          "program and erase cycles"),
    {.key = NULL}};

static const char *const layout_names[] = {"blocks", "packed", NULL};

static const struct yaml_field kernel_fields[] = {
    TEXT("format", kernel_rate, format, true, "format of the weights: q4_0, f16, ..."),
    {.key = "layout",
     .type = YAML_TYPE_CHOICE,
     .offset = offsetof(struct kernel_rate, layout),
     .required = true,
     .choices = layout_names,
     .help = "blocks, as a GGUF stores them, or packed"},
    {.key = "threads",
     .type = YAML_TYPE_COUNT,
     .offset = offsetof(struct kernel_rate, threads),
     .required = true,
     .min = 1,
     .max = 1048576,
     .help = "threads that shared the product"},
    {.key = "tokens",
     .type = YAML_TYPE_COUNT,
     .offset = offsetof(struct kernel_rate, tokens),
     .required = true,
     .min = 1,
     .max = 1048576,
     .help = "tokens that each weight was multiplied with"},
    VALUE("rate", kernel_rate, rate, DIM_RATE, 1, MAX_RATE, "weights out of memory"),
    VALUE("cache_rate", kernel_rate, cache_rate, DIM_RATE, 1, MAX_RATE,
          "weights out of the last-level cache"),
    VALUE("call", kernel_rate, call, DIM_TIME, 0, MAX_TIME, "of a product, beside its bytes"),
    {.key = NULL}};

static const struct yaml_field host_fields[] = {
    TEXT("engine", host_costs, engine, true, "the profile whose costs these are"),
    VALUE("submit", host_costs, submit, DIM_TIME, 0, MAX_TIME, "processor time to issue a read"),
    VALUE("complete", host_costs, complete, DIM_TIME, 0, MAX_TIME,
          "processor time to collect a read"),
    VALUE("wake", host_costs, wake, DIM_TIME, 0, MAX_TIME, "of a thread that slept on a read"),
    VALUE("wake_busy", host_costs, wake_busy, DIM_TIME, 0, MAX_TIME,
          "of a thread whose core computes"),
    VALUE("resume", host_costs, resume, DIM_TIME, 0, MAX_TIME,
          "what the kernel after a wait takes longer: threads that slept, caches gone cold"),
    VALUE("resume_layer", host_costs, resume_layer, DIM_TIME, 0, MAX_TIME,
          "what the fixed part of a layer takes longer after one that waited"),
    VALUE("predict", host_costs, predict, DIM_TIME, 0, MAX_TIME, "one prediction"),
    VALUE("layer_overhead", host_costs, layer_overhead, DIM_TIME, 0, MAX_TIME,
          "of a layer, beside its products' bytes"),
    VALUE("token_overhead", host_costs, token_overhead, DIM_TIME, 0, MAX_TIME,
          "of a token, beside its layers and its head's bytes"),
    {.key = NULL}};

const struct yaml_field compute_fields[] = {
    TEXT("name", compute, name, true, "cpu, gpu or npu"),
    VALUE("threads", compute, threads, DIM_COUNT, 1, 1048576, "threads that run kernels"),
    VALUE("f32", compute, f32, DIM_COMPUTE, 1, MAX_OPS, "peak, dense"),
    VALUE("f16", compute, f16, DIM_COMPUTE, 1, MAX_OPS, "peak, dense, f32 sums"),
    VALUE("int8", compute, int8, DIM_COMPUTE, 1, MAX_OPS, "peak, dense"),
    VALUE("efficiency", compute, efficiency, DIM_RATIO, 1, MAX_RATIO,
          "share of the peak that quantised products reach"),
    VALUE("call_time", compute, call_time, DIM_TIME, 1, MAX_TIME,
          "launch and synchronisation of one kernel"),
    VALUE("energy_per_op", compute, energy_per_op, DIM_ENERGY, 1, 1000000, "of one operation"),
    {.key = "memory",
     .type = YAML_TYPE_MAP,
     .offset = offsetof(struct compute, memory),
     .fields = memory_fields,
     .help = "its own memory; absent: it shares the DRAM"},
    VALUE("link_bandwidth", compute, link_bandwidth, DIM_RATE, 1, MAX_RATE,
          "host to this unit, each way"),
    {.key = "kernels",
     .type = YAML_TYPE_LIST,
     .offset = offsetof(struct compute, kernels),
     .fields = kernel_fields,
     .item_bytes = sizeof(struct kernel_rate),
     .help = "measured products: list of rates by format, layout, threads and tokens"},
    {.key = NULL}};

const struct yaml_field device_fields[] = {
    TEXT("title", device, title, true, "for people"),
    {.key = "class",
     .type = YAML_TYPE_CHOICE,
     .offset = offsetof(struct device, class_of),
     .required = true,
     .choices = device_class_names,
     .help = "phone, mac, laptop, desktop, server, board, handheld, accelerator, memory, storage"},
    TEXT("note", device, note, false, "what a reader must know of the sources"),
    {.key = "dram",
     .type = YAML_TYPE_MAP,
     .offset = offsetof(struct device, dram),
     .fields = memory_fields,
     .help = "main memory"},
    VALUE("last_level_cache", device, last_level_cache, DIM_SIZE, 1, MAX_BYTES,
          "that the threads of the kernels share"),
    VALUE("reserve", device, reserve, DIM_SIZE, 0, MAX_BYTES, "what the system and its apps keep"),
    {.key = "host",
     .type = YAML_TYPE_MAP,
     .offset = offsetof(struct device, host),
     .fields = host_fields,
     .help = "what an engine pays on this machine beside kernels and drives"},
    {.key = "storage",
     .type = YAML_TYPE_NODE,
     .offset = offsetof(struct device_reading, storage),
     .help = "list of storage entries"},
    {.key = "compute",
     .type = YAML_TYPE_LIST,
     .offset = offsetof(struct device_reading, compute),
     .fields = compute_fields,
     .item_bytes = sizeof(struct compute),
     .help = "list of compute units"},
    VALUE("idle_power", device, idle_power, DIM_POWER, 1, MAX_POWER, "whole device, idle"),
    VALUE("load_power", device, load_power, DIM_POWER, 1, MAX_POWER, "whole device, under load"),
    VALUE("battery", device, battery, DIM_ENERGY, 1, UINT64_MAX, "energy of a full charge"),
    VALUE("thermal_resistance_mK_per_W", device, thermal_resistance, DIM_COUNT, 1, 1000000,
          "chip to ambient"),
    VALUE("heat_capacity_mJ_per_K", device, heat_capacity, DIM_COUNT, 1, 1000000000,
          "of the heated mass"),
    VALUE("ambient", device, ambient, DIM_TEMPERATURE, 0, MAX_HEAT, "temperature around it"),
    VALUE("throttle_start", device, throttle_start, DIM_TEMPERATURE, 1, MAX_HEAT,
          "where clocks begin to fall"),
    VALUE("throttle_full", device, throttle_full, DIM_TEMPERATURE, 1, MAX_HEAT,
          "where they have reached the floor"),
    VALUE("throttle_floor", device, throttle_floor, DIM_RATIO, 1, MAX_RATIO,
          "share of the clock left there"),
    {.key = NULL}};

const char *device_class_name(int class_of)
{
    return device_class_names[class_of];
}

const struct yaml_field *device_field(const struct yaml_field *fields, const char *key,
                                      size_t length)
{
    for (const struct yaml_field *f = fields; f->key; f++)
        if (strlen(f->key) == length && memcmp(f->key, key, length) == 0)
            return f;
    return NULL;
}

#define PATH_MAX_BYTES 160

struct walk {
    device_row_fn *fn;
    void *self;
    struct diag *dg;
};

static enum status walk_rows(const struct walk *w, const char *prefix,
                             const struct yaml_field *fields, void *base)
{
    for (const struct yaml_field *f = fields; f->key; f++) {
        char path[PATH_MAX_BYTES];
        void *member = (char *)base + f->offset;
        snprintf(path, sizeof path, "%s%s", prefix, f->key);
        enum status st = ST_OK;
        if (f->type == YAML_TYPE_VALUE) {
            st = w->fn(w->self, path, f, member, w->dg);
        } else if (f->type == YAML_TYPE_MAP) {
            strcat(path, ".");
            st = walk_rows(w, path, f->fields, member);
        }
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

enum status device_each_row(struct device *d, device_row_fn *fn, void *self, struct diag *dg)
{
    const struct walk w = {fn, self, dg};
    char prefix[PATH_MAX_BYTES / 2];
    enum status st = walk_rows(&w, "", device_fields, d);
    for (size_t i = 0; i < d->storage_count && st == ST_OK; i++) {
        snprintf(prefix, sizeof prefix, "storage.%zu.", i);
        st = walk_rows(&w, prefix, storage_fields, &d->storage[i]);
    }
    for (size_t i = 0; i < d->compute_count && st == ST_OK; i++) {
        snprintf(prefix, sizeof prefix, "compute.%zu.", i);
        st = walk_rows(&w, prefix, compute_fields, &d->compute[i]);
        struct kernel_rate *kernel = d->compute[i].kernels.items;
        for (size_t k = 0; k < d->compute[i].kernels.count && st == ST_OK; k++) {
            snprintf(prefix, sizeof prefix, "compute.%zu.kernels.%zu.", i, k);
            st = walk_rows(&w, prefix, kernel_fields, &kernel[k]);
        }
    }
    return st;
}

struct each_value {
    device_value_fn *fn;
    void *self;
};

static enum status each_given(void *self, const char *path, const struct yaml_field *field,
                              struct value *v, struct diag *dg)
{
    (void)field, (void)dg;
    const struct each_value *e = self;
    if (v->given)
        e->fn(e->self, path, v);
    return ST_OK;
}

void device_each_value(struct device *d, device_value_fn *fn, void *self)
{
    struct each_value e = {fn, self};
    struct diag unused;
    enum status st = device_each_row(d, each_given, &e, &unused);
    assert(st == ST_OK);
    (void)st;
}
