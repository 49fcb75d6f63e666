// With AVX2, row products of codes of 3, 5 and 6 bits, and streaming products of all integers. All other products are
// in cpu/matmul/avx2.cc, a unit of its own, so that both compile at the same time.
#define INGOT_ISA avx2
#include "cpu/simd/simd.h"

#include "cpu/matmul/stream/small_batch_avx2.h"

namespace ingot::cpu {

void stream_product_avx2(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  switch (w.bits) {
    case 2:
      return avx2::stream<avx2::Pairs<2>>(w, x, n0, n1, y);
    case 3:
      return avx2::pair_product<3>(w, x, n0, n1, y);
    case 4:
      return x.layout.mode == Mode::i16 ? avx2::stream<avx2::Nibbles<true>>(w, x, n0, n1, y)
                                        : avx2::stream<avx2::Nibbles<false>>(w, x, n0, n1, y);
    case 5:
      return avx2::pair_product<5>(w, x, n0, n1, y);
    case 6:
      return avx2::pair_product<6>(w, x, n0, n1, y);
    default:
      return avx2::stream<avx2::Bytes>(w, x, n0, n1, y);
  }
}

}  // namespace ingot::cpu
