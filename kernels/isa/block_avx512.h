/* block_avx512.h -- products straight from GGUF blocks for the formats that most files hold.
 *
 * The packed layout has a row a lane; blocks have a row in one piece. So four rows and four groups of
 * each are taken at a time: the dot-product instructions leave four partial sums a group and row, nine
 * instructions add these for all sixteen at once, and the result has lane (slot, row) where slot is the
 * sum of isa.h that the group belongs to. Codes are taken apart once for up to four tokens. */
#ifndef KERNELS_ISA_BLOCK_AVX512_H
#define KERNELS_ISA_BLOCK_AVX512_H

#include "kernels/isa/isa.h"

isa_product_fn block_avx512_q4_0;
isa_product_fn block_avx512_q8_0;
isa_product_fn block_avx512_iq4_nl;
isa_product_fn block_avx512_mxfp4;
isa_product_fn block_avx512_q4_k;
isa_product_fn block_avx512_q5_k;
isa_product_fn block_avx512_q6_k;

#endif
