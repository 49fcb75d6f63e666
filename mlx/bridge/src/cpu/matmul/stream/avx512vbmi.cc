// Row and streaming products of codes of 3, 5 and 6 bits with AVX512_VBMI, which unpacks them in three instructions
// instead of seven. All other products are those of avx512.
#define INGOT_ISA avx512vbmi
#include "cpu/simd/simd.h"

#include "cpu/matmul/stream/stream_avx512.h"

namespace ingot::cpu {

void unpacking_row_product_avx512(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  avx512vbmi::unpacking_row_product(w, x, n0, n1, y);
}

}  // namespace ingot::cpu
