/* model_print.h -- a model on one screen: parameters and bytes by tensor group, experts, state. */
#ifndef CLI_MODEL_PRINT_H
#define CLI_MODEL_PRINT_H

#include "models/model.h"

/* Prints to standard output. The state is that of `context` tokens. */
void model_print(const struct model *m, uint64_t context);

#endif
