// Tile products of bfloat16 with AVX512_BF16; all other products are those of avx512.
#define INGOT_ISA avx512bf16
#include "cpu/matmul/bf16_x86.h"

namespace ingot::cpu {

void bf16_tile_product_avx512(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y,
                              const RowsCallback& done) {
  avx512bf16::bf16_tile_product(w, x, n0, m0, m1, y, done);
}

}  // namespace ingot::cpu
