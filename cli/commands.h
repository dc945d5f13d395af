/* commands.h -- every subcommand, as its file exports it. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/command.h"

extern const struct command command_plan;
extern const struct command command_roofline;
extern const struct command command_replay;
extern const struct command command_sim;
extern const struct command command_sweep;
extern const struct command command_plot;
extern const struct command command_report;
extern const struct command command_trace_info;
extern const struct command command_trace_convert;
extern const struct command command_trace_generate;
extern const struct command command_trace_mrc;
extern const struct command command_model_list;
extern const struct command command_model_show;
extern const struct command command_model_import;
extern const struct command command_device_list;
extern const struct command command_device_show;
extern const struct command command_device_import;
extern const struct command command_device_fit;
extern const struct command command_validate_published;
extern const struct command command_bench_replay;
extern const struct command command_bench_read;
extern const struct command command_bench_sim;
extern const struct command command_bench_sweep;
extern const struct command command_engine_synth;
extern const struct command command_engine_pack;
extern const struct command command_engine_heads;
extern const struct command command_engine_repair;
extern const struct command command_engine_run;
extern const struct command command_calibrate;
extern const struct command command_compare;
extern const struct command command_validate_measured;
extern const struct command command_validate_diff;
extern const struct command command_engine_bench_kernels;
extern const struct command command_engine_bench_loader;
extern const struct command command_engine_bench_decode;

#endif
