/* kernels_measured.h -- times of kernels from what products reached on a device (device.h, struct kernel_rate),
 * where its description has such rates for all weights that a kernel reads. */
#ifndef SIM_PIPELINE_KERNELS_MEASURED_H
#define SIM_PIPELINE_KERNELS_MEASURED_H

#include "models/work.h"
#include "sim/pipeline/run_state.h"

/* Sets k->measured_ns and k->cached for a kernel that reads weight_bytes[g] of each group, each weight
 * for `tokens` tokens, and `other_bytes` beside them at the memory's rate. Leaves the kernel as it is if the device has no
 * fitting rate for one of the groups. Experts are packed if they are read in one piece; dense
 * weights always are. */
void kernels_measure(const struct run *r, struct kernel *k, const uint64_t weight_bytes[GROUP_MAX],
                     uint64_t tokens, uint64_t other_bytes);

#endif
