// Integer products with half of the multiplications, where additions are made beside them: with 512 bits on AMD's processors, and
// with 256 bits, of which more are added at once than multiplied.
//
// With x0 and x1 two pairs of activations, w0 and w1 the codes that they meet, (x0 + w1)(x1 + w0) is x0 w0 + x1 w1, as wanted, and besides
// x0 x1, which is the same for all rows of weights, and w0 w1, which is the same for all rows of activations: two additions take the place
// of a multiplication. (S. Winograd, A New Algorithm for Inner Product, IEEE Transactions on Computers C-17, 1968.) Integers lose
// nothing by it: sums are right modulo 2^32, and what is wanted fits.
#pragma once

#include "cpu_sums_x86.h"

namespace ingot::cpu::INGOT_ISA {

// What products of sums have too much of a tile's codes, by block.
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

// As integer_block.
template <int R, int Block>
static __attribute__((noinline)) void winograd_block(TileOperands m) {
  constexpr int kDwords = Block / 2;
  const int32_t *w = reinterpret_cast<const int32_t*>(m.tile.data), *x = m.x;
  for (int b = 0; b < m.columns / Block; b++) {
    IG_BARRIER();
    I sum[R][2];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      I correction = repeat(m.corrections[r * m.stride + b]);
#pragma GCC unroll 2
      for (int j = 0; j < 2; j++) {
        sum[r][j] = subtract(load_lanes(m.tile.corrections + b * kTile + j * kLanes), correction);
        IG_KEEP(sum[r][j]);
      }
    }
    for (int q0 = 0; q0 < kDwords; q0 += 8) {
#pragma GCC unroll 4
      for (int q = q0; q < q0 + 8; q += 2) {
        I w0[2], w1[2];
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
          w0[j] = load_lanes(w + q * kTile + j * kLanes);
          w1[j] = load_lanes(w + (q + 1) * kTile + j * kLanes);
          IG_KEEP(w0[j]);
          IG_KEEP(w1[j]);
        }
#pragma GCC unroll 4
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
    epilogue<R>(m, b, sum);
    w += kDwords * kTile;
    x += kDwords * R;
  }
}

}  // namespace ingot::cpu::INGOT_ISA
