/* isa_list_aarch64.c -- see isa_list.h. */
#include "kernels/isa/isa_list.h"

#include "kernels/isa/isa_neon.h"
#include "kernels/isa/isa_scalar.h"

const struct isa *const isa_list[] = {&isa_scalar, &isa_neon};
const size_t isa_list_count = sizeof isa_list / sizeof isa_list[0];
