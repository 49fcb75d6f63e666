// Integer products on x86: tiles of weights as unsigned codes, activations as int16 or int8; see cpu_matmul_kernels.h.
#pragma once

#include <immintrin.h>

#include "cpu_arrange_x86.h"
#include "cpu_few_x86.h"
#if defined(__AVX512BF16__)
#include "cpu_pairs_bf16.h"
#endif

namespace ingot::cpu::INGOT_ISA {

// How many int8 products of two may be summed in 16 bits: 2 * code * 127 each.
IG_INLINE int sums_that_fit(const Weights& w) {
  if (w.format == Format::fp4 || w.bits == 5) {
    return 4;
  }
  return w.bits == 6 ? 2 : 8;
}

// c[r][0..kTile) += products of R activation rows with a tile. x holds [columns/2 or /4][R] dwords.
// Fit is 0 for int16, else the number of int8 sums that fit in 16 bits. The rows that come next lie ahead dwords from x:
// the second cache is too slow to be asked for them only when they are needed.
template <int R, int Fit>
static void integer_block(const Tile& t, const int32_t* x, int64_t ahead, int columns, int block, const float* scales,
                          const float* sums, int64_t stride, float* c) {
  const int32_t* w = reinterpret_cast<const int32_t*>(t.data);
  int dwords = block / (Fit ? 4 : 2);
  for (int b = 0; b < columns / block; b++) {
    IG_BARRIER();
    I sum[R][2];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      sum[r][0] = sum[r][1] = zeros();
    }
    for (int i = 0; i < dwords * R; i += 16) {
      prefetch(x + ahead + i);
    }
    if constexpr (Fit == 0 || !kSaturates) {
#pragma GCC unroll 4
      for (int q = 0; q < dwords; q++) {
        I w0 = load_lanes(w + q * kTile), w1 = load_lanes(w + q * kTile + kLanes);
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
          I v = repeat(x[q * R + r]);
          sum[r][0] = Fit ? dot8(sum[r][0], w0, v) : dot16(sum[r][0], w0, v);
          sum[r][1] = Fit ? dot8(sum[r][1], w1, v) : dot16(sum[r][1], w1, v);
          IG_KEEP(sum[r][0]);
          IG_KEEP(sum[r][1]);
        }
      }
    } else {
#if !defined(__AVX512VNNI__)
      for (int p = 0; p < dwords; p += Fit) {
        I narrow[R][2];
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
          narrow[r][0] = narrow[r][1] = zeros();
        }
#pragma GCC unroll 8
        for (int q = 0; q < Fit; q++) {
          I w0 = load_lanes(w + (p + q) * kTile), w1 = load_lanes(w + (p + q) * kTile + kLanes);
#pragma GCC unroll 4
          for (int r = 0; r < R; r++) {
            I v = repeat(x[(p + q) * R + r]);
            narrow[r][0] = dot8(narrow[r][0], w0, v);
            narrow[r][1] = dot8(narrow[r][1], w1, v);
            IG_KEEP(narrow[r][0]);
            IG_KEEP(narrow[r][1]);
          }
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
          sum[r][0] = widened(sum[r][0], narrow[r][0]);
          sum[r][1] = widened(sum[r][1], narrow[r][1]);
        }
      }
#endif
    }
    IG_BARRIER();
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
      F scale = load(t.scales + b * kTile + j * kLanes), bias = load(t.biases + b * kTile + j * kLanes);
#pragma GCC unroll 4
      for (int r = 0; r < R; r++) {
        float* y = c + r * kTile + j * kLanes;
        F v = fma(scale * set(scales[r * stride + b]), to_float(sum[r][j]), load(y));
        store(y, fma(bias, set(sums[r * stride + b]), v));
      }
    }
    w += dwords * kTile;
    x += dwords * R;
  }
}

template <int Fit>
static void integer_rows(const Tile& t, const int32_t* x, int64_t ahead, int columns, int block, int rows, const float* scales,
                         const float* sums, int64_t stride, float* c) {
  switch (rows) {
    case 1:
      return integer_block<1, Fit>(t, x, ahead, columns, block, scales, sums, stride, c);
    case 2:
      return integer_block<2, Fit>(t, x, ahead, columns, block, scales, sums, stride, c);
    case 3:
      return integer_block<3, Fit>(t, x, ahead, columns, block, scales, sums, stride, c);
    default:
      return integer_block<4, Fit>(t, x, ahead, columns, block, scales, sums, stride, c);
  }
}

static void unpack_tile(const Weights& w, int64_t n0, int64_t k0, int columns, const Layout& l, Tile& t) {
#if defined(__AVX512BF16__)
  if (l.mode == Mode::bf16) {
    return unpack_pairs(w, n0, k0, columns, l.block, t);
  }
#endif
  unpack(w, n0, k0, columns, l.block, l.mode, t);
}

// c[r] += products of the rows of a block, which begins at row m, with columns [k0, k0+columns) of a tile.
static void block_product(const Weights& w, const Activations& x, Tile& t, int64_t m, int rows, int64_t k0, int columns, bool more, float* c) {
  const Layout& l = x.layout;
  if (l.mode == Mode::f32) {
    return multiply_float_rows(t.as<float>(), static_cast<const float*>(x.data) + place(x, m, k0, rows), columns, rows, c);
  }
  const int per = l.mode == Mode::i8 ? 4 : 2;
  const int64_t stride = x.columns / l.block, ahead = more ? int64_t(kIntegerRows) * columns / per : 0;
  auto data = static_cast<const int32_t*>(x.data) + place(x, m, k0, rows) / per;
#if defined(__AVX512BF16__)
  if (l.mode == Mode::bf16) {
    return w.format == Format::plain ? pairs_rows<false>(t, data, ahead, columns, columns, rows, c)
                                     : pairs_rows<true>(t, data, ahead, columns, l.block, rows, c);
  }
#endif
  const float* scales = x.scales + m * stride + k0 / l.block;
  const float* sums = x.sums + m * stride + k0 / l.block;
  switch (l.mode == Mode::i16 ? 0 : sums_that_fit(w)) {
    case 0:
      return integer_rows<0>(t, data, ahead, columns, l.block, rows, scales, sums, stride, c);
    case 2:
      return integer_rows<2>(t, data, ahead, columns, l.block, rows, scales, sums, stride, c);
    case 4:
      return integer_rows<4>(t, data, ahead, columns, l.block, rows, scales, sums, stride, c);
    default:
      return integer_rows<8>(t, data, ahead, columns, l.block, rows, scales, sums, stride, c);
  }
}

static void tile_product(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y, const Taker& done) {
  Tile t;
  const Layout& l = x.layout;
  const int most = l.mode == Mode::f32 ? kFloatRows : kIntegerRows;
  __builtin_memset(y, 0, size_t(m1 - m0) * kTile * sizeof(float));
  const int deep = depth(l.mode, m1 - m0);
  for (int64_t k0 = 0; k0 < x.columns; k0 += deep) {
    const int columns = int(x.columns - k0 < deep ? x.columns - k0 : deep);
    unpack_tile(w, n0, k0, columns, l, t);
    for (int64_t m = m0; m < m1; m += most) {
      const int rows = int(x.rows - m < most ? x.rows - m : most);  // of the block as it was arranged
      const bool more = m + most < m1;
      float* c = y + (m - m0) * kTile;
      block_product(w, x, t, m, rows, k0, columns, more, c);
      if (k0 + deep >= x.columns) {
        done(m, m + rows);
      }
    }
  }
}

}  // namespace ingot::cpu::INGOT_ISA
