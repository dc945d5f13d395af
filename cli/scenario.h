/* scenario.h -- a model on a device, as roofline, plan and their like are asked for it.
 *
 * MODEL is the first positional argument. `--set PATH=VALUE` edits the description that PATH belongs
 * to: `device.` and `model.` say which; without them a path whose first key is one of a model
 * description (formats, ffn, attention, ...) is the model's, any other the device's. `top_k=N` is short
 * for all layers with experts, as is --top-k.
 */
#ifndef CLI_SCENARIO_H
#define CLI_SCENARIO_H

#include "cli/args.h"
#include "devices/device.h"
#include "models/model.h"

/* clang-format off */
#define SCENARIO_OPTIONS \
    {"device", OPTION_TEXT, "D", "machine: catalogue name or .yaml", NULL, NULL, 0, 0, true}, \
    {"quant", OPTION_TEXT, "Q", "weight format or mix: q4_k_m, mxfp4, mlx4-g64, ... (as published)", \
     NULL, NULL, 0, 0, false}, \
    {"expert-quant", OPTION_TEXT, "Q", "another format for the routed experts alone", NULL, NULL, 0, \
     0, false}, \
    {"top-k", OPTION_COUNT, "N", "experts a token chooses (the model's own)", NULL, NULL, 1, 65535, \
     false}, \
    {"state-format", OPTION_TEXT, "Q", "format of the KV cache: f16, fp8, q8_0, q4_0", "f16", NULL, 0, \
     0, false}, \
    {"unit", OPTION_TEXT, "U", "compute unit: cpu, gpu, gpu+cpu, ... (the fastest that fits)", NULL, NULL, 0, \
     0, false}, \
    {"lanes", OPTION_COUNT, "N", "reads in flight", "4", NULL, 1, 4096, false}, \
    {"pieces", OPTION_COUNT, "N", "reads an expert takes: 3 as files store it, 1 packed", "3", NULL, \
     1, 64, false}, \
    {"copies", OPTION_COUNT, "N", "memory copies a byte takes after its read", "0", NULL, 0, 16, \
     false}, \
    {"dense", OPTION_CHOICE, "resident|stream", "dense weights that do not fit: refuse, or read them " \
     "again for every token", "resident", scenario_dense, 0, 0, false}
/* clang-format on */
extern const char *const scenario_dense[];

struct scenario {
    struct model *model;
    struct device *device;
    bool model_kept, device_kept; /* by a capture, which releases them */
    uint32_t state_bits;
    bool changed_top_k; /* the model computes something else than was trained */
    const char *
        *profile; /* PATH=VALUE of `--set profile.PATH=VALUE`; live as long as the arguments */
    size_t profile_count;
};

MUST_CHECK enum status scenario_load(struct scenario *out, struct args *a, struct diag *dg);
/* The same for commands that name the model otherwise. */
MUST_CHECK enum status scenario_load_model(struct scenario *out, struct args *a, const char *model,
                                           struct diag *dg);
void scenario_free(struct scenario *s);

/* Gives every layer with experts this top_k. ST_RANGE if a layer has fewer experts. */
MUST_CHECK enum status scenario_set_top_k(struct model *m, uint64_t top_k, struct diag *dg);

/* A rate of tokens, "5tok/s", as the time of one in ns. */
MUST_CHECK enum status scenario_token_time(uint64_t *ns, const char *option, const char *text,
                                           struct diag *dg);

#endif
