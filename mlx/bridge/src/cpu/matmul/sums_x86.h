// The operands and the epilogue of integer tile products on x86; see cpu/matmul/integers_x86.h.
#pragma once

#include "cpu/simd/dot_x86.h"
#include "cpu/matmul/ahead_x86.h"
#include "cpu/matmul/unpack_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Activation rows of a panel in all modes but f32. Their sums take half of the vector registers. Eight rows also share
// each load of weights, and hide the latency of dot products, which four rows do not with 512-bit vectors.
constexpr int kIntegerRows = kSaturates ? 4 : 8;

// The arguments of a tile's micro-kernel, which computes c[r][j] += x[r] . tile[j] for the rows of a panel and j <
// kTile. Micro-kernels take it by value: through a reference, the compiler reloads it after each vector store, which
// may alias it.
struct TileOperands {
  const Tile& tile;
  const int32_t* x;  // packed panel: dwords [columns/2 (int16) or columns/4 (int8)][rows]
  int columns;
  const float* scales;  // of the activations, [block][rows]; sums and corrections have the same shape
  const float* sums;
  const int32_t* corrections;
  float* c;
  const Ahead& ahead;
  int call;  // of ahead.fetch, for block 0
};

// Calls of<Block>() with block (16, 32 or 64 columns) as a constant.
template <class F>
IG_INLINE void with_block(int block, F of) {
  switch (block) {
    case 16:
      return of.template operator()<16>();
    case 32:
      return of.template operator()<32>();
    default:
      return of.template operator()<64>();
  }
}

// The results of a panel's first Held rows, which stay in registers from block to block: a load and a store of each
// vector for each block take as long as a quarter of the products.
template <int Held>
struct HeldRows {
  F v[Held ? Held : 1][2];

  inline __attribute__((always_inline)) explicit HeldRows(const float* c) {
#pragma GCC unroll 8
    for (int r = 0; r < Held; r++) {
      v[r][0] = load(c + r * kTile);
      v[r][1] = load(c + r * kTile + kLanes);
    }
  }
  inline __attribute__((always_inline)) void put(float* c) const {
#pragma GCC unroll 8
    for (int r = 0; r < Held; r++) {
      store(c + r * kTile, v[r][0]);
      store(c + r * kTile + kLanes, v[r][1]);
    }
  }
};

// Returns how many of a panel's rows are held. Of the 32 registers, the sums of all rows and six other vectors need
// some, too.
constexpr int held_rows(int rows) {
  const int most = kSaturates ? 0 : (32 - 6 - 2 * rows) / 2;
  return rows < most ? rows : most;
}

// Epilogue of block b: dequantizes the integer sums and adds them to c, whose first rows are in held:
//   c[r] += w_bias * x_sum[r] + w_scale * x_scale[r] * sum[r]
// The first term is missing if the zero point was subtracted from the sums. What does not depend on the sums comes
// first, so that it executes while these are being completed.
template <bool Biased, int R, int Held>
IG_INLINE void epilogue(const TileOperands& m, int b, const I (&sum)[R][2], HeldRows<Held>& held) {
  F scale[2], bias[2];
#pragma GCC unroll 2
  for (int j = 0; j < 2; j++) {
    const int at = (m.tile.first + b) * kTile + j * kLanes;
    scale[j] = load(m.tile.scales + at);
    bias[j] = Biased ? load(m.tile.biases + at) : set(0);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) {
    const F x_scale = set(m.scales[b * R + r]), x_sum = Biased ? set(m.sums[b * R + r]) : set(0);
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
      float* y = m.c + r * kTile + j * kLanes;
      F v = r < Held ? held.v[r][j] : load(y), s = scale[j] * x_scale;
      if (Biased) {
        v = fma(bias[j], x_sum, v);
      }
      IG_KEEP(v);
      IG_KEEP(s);
      v = fma(s, to_float(sum[r][j]), v);
      if (r < Held) {
        held.v[r][j] = v;
      } else {
        store(y, v);
      }
    }
  }
}

}  // namespace ingot::cpu::INGOT_ISA
