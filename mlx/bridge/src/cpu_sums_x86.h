// The blocks of an integer product on x86, and what their sums stand for; see cpu_integers_x86.h.
#pragma once

#include "cpu_dot_x86.h"
#include "cpu_unpack_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// What a block of rows of activations and a tile's columns have to do with each other: c[r][0..kTile) += their products. Kernels take it
// by value: what lies in memory would be read again after each store of a vector, which may be anything's.
struct TileOperands {
  const Tile& tile;
  const int32_t* x;     // [columns/2 or /4][rows] dwords
  int columns;
  const float* scales;  // of activations, [rows][stride], as are the others
  const float* sums;
  const int32_t* corrections;
  int64_t stride;
  float* c;
};

// Calls of<Block>() for blocks of so many columns.
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

// Calls of<R>() for so many rows.
template <class F>
IG_INLINE void with_rows(int rows, F of) {
  switch (rows) {
    case 1:
      return of.template operator()<1>();
    case 2:
      return of.template operator()<2>();
    case 3:
      return of.template operator()<3>();
    default:
      return of.template operator()<4>();
  }
}

// Adds what the sums of block b stand for.
template <int R>
IG_INLINE void epilogue(const TileOperands& m, int b, const I (&sum)[R][2]) {
#pragma GCC unroll 2
  for (int j = 0; j < 2; j++) {
    F scale = load(m.tile.scales + b * kTile + j * kLanes), bias = load(m.tile.biases + b * kTile + j * kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      float* y = m.c + r * kTile + j * kLanes;
      F v = fma(scale * set(m.scales[r * m.stride + b]), to_float(sum[r][j]), load(y));
      store(y, fma(bias, set(m.sums[r * m.stride + b]), v));
    }
  }
}

}  // namespace ingot::cpu::INGOT_ISA
