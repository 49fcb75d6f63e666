// The operands and the epilogue of integer tile products on x86; see cpu/matmul/integers_x86.h.
#pragma once

#include "cpu/simd/dot_x86.h"
#include "cpu/matmul/unpack_avx2.h"

namespace ingot::cpu::INGOT_ISA {

constexpr int kIntegerRows = 4;  // activation rows of a panel in all modes but f32

// The arguments of a tile's micro-kernel, which computes c[r][j] += x[r] . tile[j] for the rows of a panel and j <
// kTile. Micro-kernels take it by value: through a reference, the compiler reloads it after each vector store, which
// may alias it.
struct TileOperands {
  const Tile& tile;
  const int32_t* x;  // packed panel: dwords [columns/2 (int16) or columns/4 (int8)][rows]
  int columns;
  const float* scales;  // of the activations, [rows][stride]; sums and corrections have the same shape
  const float* sums;
  const int32_t* corrections;
  int64_t stride;
  float* c;
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

// Calls of<R>() with the number of rows (1 to 4) as a constant.
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

// Epilogue of block b: dequantizes the integer sums and adds them to c:
//   c[r] += w_scale * x_scale[r] * sum[r] + w_bias * x_sum[r]
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
