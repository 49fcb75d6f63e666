// With AVX2, row products of codes of 3, 5 and 6 bits, and streaming products of these and of 2 and 8 bits. All other
// products are in cpu/matmul/avx2.cc, a unit of its own, so that both compile at the same time.
#define INGOT_ISA avx2
#include "cpu/simd/simd.h"

#include "cpu/matmul/stream/pair_stream_avx2.h"

namespace ingot::cpu {

void pair_product_avx2(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  switch (w.bits) {
    case 2:
      return avx2::pair_product<2>(w, x, n0, n1, y);
    case 3:
      return avx2::pair_product<3>(w, x, n0, n1, y);
    case 5:
      return avx2::pair_product<5>(w, x, n0, n1, y);
    case 8:
      return avx2::pair_product<8>(w, x, n0, n1, y);
    default:
      return avx2::pair_product<6>(w, x, n0, n1, y);
  }
}

}  // namespace ingot::cpu
