// Integer tile products on x86, tiles of unsigned codes times int16 or int8 activations, and the table of all product
// kernels of the including unit; see cpu/matmul/matmul.h.
#pragma once

#include <immintrin.h>

#include "cpu/matmul/across.h"
#include "cpu/matmul/pack_x86.h"
#include "cpu/matmul/stream/floats.h"
#include "cpu/matmul/sums_x86.h"
#include "cpu/matmul/winograd_x86.h"
#if defined(__AVX512VNNI__)
#include "cpu/matmul/unpack_avx512.h"
#endif

namespace ingot::cpu::INGOT_ISA {

// Returns how many int8 product sums an int16 lane can add without overflow. A product sum is the sum of two products
// (one result of vpmaddubsw): at most 2 * code * 127.
IG_INLINE int sums_that_fit(const Weights& w) {
  if (w.format == Format::fp4 || w.bits == 5) {
    return 4;
  }
  return w.bits == 6 ? 2 : 8;
}

// Micro-kernel: c[r][j] += x[r] . tile[j] for the R rows of a panel and j < kTile, block by block of columns. Fit is 0
// for int16 activations, which AVX2 leaves to winograd_block. For int8 it is the number of product sums that fit in 16
// bits (see sums_that_fit); with VNNI, which adds in 32 bits, any positive number. If Biased, biases are added to the
// results; if not, the sums begin with the corrections, which replace them.
template <int R, int Fit, int Block, bool Biased>
static __attribute__((noinline)) void integer_block(TileOperands m) {
  constexpr int kDwords = Block / (Fit ? 4 : 2);
  HeldRows<held_rows(R)> held(m.c);
  const int32_t *w = reinterpret_cast<const int32_t*>(m.tile.data), *x = m.x;
  for (int b = 0; b < m.columns / Block; b++) {
    m.ahead.fetch(m.call + b);
    IG_BARRIER();
    I sum[R][2];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      sum[r][0] = sum[r][1] = Biased ? zeros() : repeat(m.corrections[b * R + r]);
    }
#if defined(__AVX512VNNI__)
    for (int q0 = 0; q0 < kDwords; q0 += 4) {
#pragma GCC unroll 4
      for (int q = q0; q < q0 + 4; q++) {
        I w0 = load_lanes(w + q * kTile), w1 = load_lanes(w + q * kTile + kLanes);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
          I v = repeat(x[q * R + r]);
          sum[r][0] = Fit ? dot8(sum[r][0], w0, v) : dot16(sum[r][0], w0, v);
          sum[r][1] = Fit ? dot8(sum[r][1], w1, v) : dot16(sum[r][1], w1, v);
          IG_KEEP(sum[r][0]);
          IG_KEEP(sum[r][1]);
        }
      }
    }
#else
    constexpr int kRun = Fit < kDwords ? Fit : kDwords;
    for (int p = 0; p < kDwords; p += kRun) {
      I narrow[R][2];
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        narrow[r][0] = narrow[r][1] = zeros();
      }
#pragma GCC unroll 8
      for (int q = 0; q < kRun; q++) {
        I w0 = load_lanes(w + (p + q) * kTile), w1 = load_lanes(w + (p + q) * kTile + kLanes);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
          I v = repeat(x[(p + q) * R + r]);
          narrow[r][0] = dot8(narrow[r][0], w0, v);
          narrow[r][1] = dot8(narrow[r][1], w1, v);
          IG_KEEP(narrow[r][0]);
          IG_KEEP(narrow[r][1]);
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        sum[r][0] = widened(sum[r][0], narrow[r][0]);
        sum[r][1] = widened(sum[r][1], narrow[r][1]);
      }
    }
#endif
    IG_BARRIER();
    epilogue<Biased>(m, b, sum, held);
    w += kDwords * kTile;
    x += kDwords * R;
  }
  held.put(m.c);
}

static void unpack_tile(const Weights& w, int64_t n0, int64_t k0, int columns, const Layout& l, Tile& t) {
#if defined(__AVX512VNNI__)
  if (unpack_whole_tile(w, n0, k0, columns, l, t)) {
    return;
  }
#endif
  unpack(w, n0, k0, columns, l.block, l.mode, t);
  if (l.winograd) {
    tile_corrections(columns, l.block, t);
  }
}

// Computes c[r][j] += x[m+r] . tile[j] over columns [k0, k0+columns), for the panel of `rows` rows that starts at row
// m. The panel is the i-th of those that are multiplied by the tile.
static void block_product(const Weights& w, const Activations& x, Tile& t, int64_t m, int rows, int64_t k0, int columns,
                          float* c, const Ahead& ahead, int i) {
  const Layout& l = x.layout;
  if (l.mode == Mode::f32) {
    return multiply_float_rows(t.as<float>(), static_cast<const float*>(x.data) + packed_offset(x, m, k0, rows),
                               columns, rows, c);
  }
  const int per = l.mode == Mode::i8 ? 4 : 2;
  const int64_t stride = x.columns / l.block;
  auto data = static_cast<const int32_t*>(x.data) + packed_offset(x, m, k0, rows) / per;
  const int64_t at = m * stride + k0 / l.block * rows;
  const TileOperands operands = {t, data, columns, x.scales + at, x.sums + at, x.corrections + at,
                                 c, ahead, i * columns / l.block};
  // Calls of<R, Block, Biased>() with these as constants.
  auto with_shape = [&](auto of) {
    with_block(l.block, [&]<int Block>() {
      with_rows<kIntegerRows>(rows, [&]<int R>() {
        l.zero == 0 ? of.template operator()<R, Block, true>() : of.template operator()<R, Block, false>();
      });
    });
  };
  auto integers = [&]<int Fit>() {
    with_shape([&]<int R, int Block, bool Biased>() { integer_block<R, Fit, Block, Biased>(operands); });
  };
  if (l.winograd) {
    return with_shape([&]<int R, int Block, bool Biased>() { winograd_block<R, Block, Biased>(operands); });
  }
#if defined(__AVX512VNNI__)
  l.mode == Mode::i16 ? integers.template operator()<0>() : integers.template operator()<8>();
#else
  switch (sums_that_fit(w)) {
    case 2:
      return integers.template operator()<2>();
    case 4:
      return integers.template operator()<4>();
    default:
      return integers.template operator()<8>();
  }
#endif
}

static void tile_product(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y,
                         const RowsCallback& done) {
  Tile t;
  const Layout& l = x.layout;
  const int panel_rows = l.mode == Mode::f32 ? kFloatRows : kIntegerRows;
  __builtin_memset(y, 0, size_t(m1 - m0) * kTile * sizeof(float));
  const int max_columns = depth(l.mode, m1 - m0);
  for (int64_t k0 = 0; k0 < x.columns; k0 += max_columns) {
    const int columns = int(x.columns - k0 < max_columns ? x.columns - k0 : max_columns);
    unpack_tile(w, n0, k0, columns, l, t);
    const int64_t next = k0 + max_columns < x.columns ? k0 + max_columns : 0;
    const int calls = int((m1 - m0 + panel_rows - 1) / panel_rows) * (columns / l.block);
    const Ahead ahead = has_integers(l.mode) ? Ahead(w, next ? n0 : n0 + kTile, next, max_columns, calls) : Ahead();
    for (int64_t m = m0; m < m1; m += panel_rows) {
      const int rows = int(x.rows - m < panel_rows ? x.rows - m : panel_rows);  // rows of the panel as it was packed
      float* c = y + (m - m0) * kTile;
      block_product(w, x, t, m, rows, k0, columns, c, ahead, int(m - m0) / panel_rows);
      if (k0 + max_columns >= x.columns) {
        done(m, m + rows);
      }
    }
  }
}

// See MatmulKernels::row_product. The unit's header has stream_product, for 2 or more rows of integers.
static void row_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  if (x.rows == 1) {
    return row_product_of_one(w, x, n0, n1, y);
  }
  if (w.format == Format::plain) {
    return plain_stream(w, x, n0, n1, y);
  }
  if (w.format == Format::fp8) {
    return stream_float_rows<FP8Row>(w, x, n0, n1, y);
  }
  return x.layout.mode == Mode::i16 ? stream_product<true>(w, x, n0, n1, y) : stream_product<false>(w, x, n0, n1, y);
}

constexpr MatmulKernels kMatmul = {
    .tile = kTile,
    .float_rows = kFloatRows,
    .integer_rows = kIntegerRows,
    .small_batch_panel = kSmallBatchPanel,
    .float_batch_panel = kFloatBatchRows,
    .small_batch_tile = kSmallBatchTile,
    .saturates = kSaturates,
    .integers = true,
    .winograd = kSaturates,
    .quarter_rows = kQuarterRows,
    .pack = pack,
    .tile_product = tile_product,
    .row_product = row_product,
    .stream_rows = stream_rows_of,
    .small_batch_rows = small_batch_rows_of,
    .small_batch_product = small_batch_product,
    .across_product = across_product,
    .widen = widen,
    .narrow = narrow,
};

}  // namespace ingot::cpu::INGOT_ISA
