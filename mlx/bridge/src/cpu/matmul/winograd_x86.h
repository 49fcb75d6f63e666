// Integer tile products with Winograd's inner product, which needs half of the multiplications (S. Winograd, A New
// Algorithm for Inner Product, IEEE Transactions on Computers C-17, 1968).
//
// A dword holds a pair of int16, and dot16 computes the dot product of two pairs. For pairs of activations x0 and x1
// and the pairs of codes w0 and w1 that belong to them,
//   (x0 + w1) . (x1 + w0)  =  x0 . w0 + x1 . w1  +  x0 . x1  +  w0 . w1
// The first two terms are wanted. The last two are correction terms: x0 . x1 is the same for all weight rows, and
// w0 . w1 for all activation rows, so each is summed once per block of columns and subtracted. Two additions replace a
// multiplication.
//
// The result is exact: sums are correct modulo 2^32, and the wanted sum fits in 32 bits. The method is faster where the
// processor executes more vector additions per cycle than multiplications: with 256-bit vectors (AVX2), and with
// 512-bit vectors on AMD (zen4).
#pragma once

#include "cpu/matmul/sums_x86.h"

namespace ingot::cpu::INGOT_ISA {

// Computes the tile's correction terms, negated: t.corrections[b][n] is minus the sum of w0 . w1 over block b of weight
// row n.
static void tile_corrections(int columns, int block, Tile& t) {
  const int32_t* w = t.as<int32_t>();
  for (int b = 0; b < columns / block; b++) {
    I sum[2] = {zeros(), zeros()};
    for (int q = 0; q < block / 2; q += 2, w += 2 * kTile) {
#pragma GCC unroll 2
      for (int j = 0; j < 2; j++) {
        sum[j] = dot16(sum[j], load_lanes(w + j * kLanes), load_lanes(w + kTile + j * kLanes));
      }
    }
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
      store_lanes(t.corrections + b * kTile + j * kLanes, subtract(zeros(), sum[j]));
    }
  }
}

// Micro-kernel: integer_block for int16 activations, computed with Winograd's inner product.
template <int R, int Block, bool Biased>
static __attribute__((noinline)) void winograd_block(TileOperands m) {
  constexpr int kDwords = Block / 2, kUnrolled = R > 4 ? 4 : 8;
  HeldRows<held_rows(R)> held(m.c);
  const int32_t *w = reinterpret_cast<const int32_t*>(m.tile.data), *x = m.x;
  for (int b = 0; b < m.columns / Block; b++) {
    m.ahead.fetch(m.call + b);
    IG_BARRIER();
    I sum[R][2];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      I correction = repeat(m.corrections[b * R + r]);
#pragma GCC unroll 2
      for (int j = 0; j < 2; j++) {
        sum[r][j] = add_dwords(load_lanes(m.tile.corrections + b * kTile + j * kLanes), correction);
        IG_KEEP(sum[r][j]);
      }
    }
    for (int q0 = 0; q0 < kDwords; q0 += kUnrolled) {
#pragma GCC unroll 4
      for (int q = q0; q < q0 + kUnrolled; q += 2) {
        I w0[2], w1[2];
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
          w0[j] = load_lanes(w + q * kTile + j * kLanes);
          w1[j] = load_lanes(w + (q + 1) * kTile + j * kLanes);
          IG_KEEP(w0[j]);
          IG_KEEP(w1[j]);
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
          I x0 = repeat(x[q * R + r]), x1 = repeat(x[(q + 1) * R + r]);
          IG_KEEP(x0);
          IG_KEEP(x1);
#pragma GCC unroll 2
          for (int j = 0; j < 2; j++) {
            sum[r][j] = dot16(sum[r][j], add_words(w0[j], x1), add_words(w1[j], x0));
            IG_KEEP(sum[r][j]);
          }
        }
      }
    }
    IG_BARRIER();
    epilogue<Biased>(m, b, sum, held);
    w += kDwords * kTile;
    x += kDwords * R;
  }
  held.put(m.c);
}

}  // namespace ingot::cpu::INGOT_ISA
