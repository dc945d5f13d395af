/* isa_list_x86_64.c -- see isa_list.h. */
#include "kernels/isa/isa_list.h"

#include "kernels/isa/isa_avx2.h"
#include "kernels/isa/isa_avx512.h"
#include "kernels/isa/isa_scalar.h"

const struct isa *const isa_list[] = {&isa_scalar, &isa_avx2, &isa_avx512};
const size_t isa_list_count = sizeof isa_list / sizeof isa_list[0];
