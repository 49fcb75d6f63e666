// Tile products of bfloat16 activations with bfloat16 or e4m3 weights, with AVX512_BF16: two products per lane and
// instruction, summed in float32. e4m3 converts to bfloat16 exactly. All other products are those of avx512.
#define INGOT_ISA avx512bf16
#include "cpu/matmul/sums_x86.h"
#include "cpu/matmul/unpack_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Unpacks weights to dwords of two bfloat16 columns each.
static void unpack_bf16(const Weights& w, int64_t n0, int64_t k0, int columns, int block, Tile& t) {
  each_step<true>(w, n0, k0, columns, block, t, [&](const RowStep& s, int h, int step) __attribute__((always_inline)) {
    auto to = t.as<int32_t>() + step * (kStep / 2) * kTile + h * 8;
    auto put = [&](int dword, __m256i v) __attribute__((always_inline)) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + dword * kTile), v);
    };
    for (int at = 0; at < kStep * w.bits / 8; at += 32) {
      __m256i v[8];
#pragma GCC unroll 8
      for (int r = 0; r < 8; r++) {
        v[r] = load_bytes(s.row(r) + at);
      }
      transpose(v);
#pragma GCC unroll 8
      for (int i = 0; i < 8; i++) {
        if (w.format == Format::plain) {
          put(at / 4 + i, v[i]);
          continue;
        }
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {  // bytes 2j and 2j+1
          __m256i even = _mm256_castps_si256(e4m3_lanes(_mm256_srli_epi32(v[i], 16 * j)));
          __m256i odd = _mm256_castps_si256(e4m3_lanes(_mm256_srli_epi32(v[i], 16 * j + 8)));
          put(at / 2 + 2 * i + j, _mm256_mask_blend_epi16(0x5555, odd, _mm256_srli_epi32(even, 16)));
        }
      }
    }
  });
}

// Micro-kernel: c[r][j] += x[r] . tile[j] for R activation rows and j < kTile; x is [columns/2][R] dwords. Scaled tiles
// have a scale for each block of columns. It is not inlined: in a larger function GCC 12 spills the sums.
template <int R, bool Scaled>
static __attribute__((noinline)) void bf16_block(const Tile& t, const int32_t* x, int columns, int block, float* c) {
  const int32_t* w = reinterpret_cast<const int32_t*>(t.data);
  const int dwords = block / 2;
  for (int b = 0; b < columns / block; b++) {
    IG_BARRIER();
    F sum[R][2];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      sum[r][0] = sum[r][1] = set(0);
    }
#pragma GCC unroll 4
    for (int q = 0; q < dwords; q++) {
      auto w0 = (__m512bh)load_lanes(w + q * kTile), w1 = (__m512bh)load_lanes(w + q * kTile + kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        auto v = (__m512bh)repeat(x[q * R + r]);
        sum[r][0] = _mm512_dpbf16_ps(sum[r][0], w0, v);
        sum[r][1] = _mm512_dpbf16_ps(sum[r][1], w1, v);
        IG_KEEP(sum[r][0]);
        IG_KEEP(sum[r][1]);
      }
    }
    IG_BARRIER();
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
      F scale = Scaled ? load(t.scales + b * kTile + j * kLanes) : set(1);
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        float* y = c + r * kTile + j * kLanes;
        store(y, fma(scale, sum[r][j], load(y)));
      }
    }
    w += dwords * kTile;
    x += dwords * R;
  }
}

template <bool Scaled>
static void bf16_panel(const Tile& t, const int32_t* x, int columns, int block, int rows, float* c) {
  with_rows<kIntegerRows>(rows, [&]<int R>() { bf16_block<R, Scaled>(t, x, columns, block, c); });
}

// See MatmulKernels::tile_product.
static void bf16_tile_product(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y,
                              const RowsCallback& done) {
  Tile t;
  const int block = x.layout.block;
  __builtin_memset(y, 0, size_t(m1 - m0) * kTile * sizeof(float));
  for (int64_t k0 = 0; k0 < x.columns; k0 += kDepth) {
    const int columns = int(x.columns - k0 < kDepth ? x.columns - k0 : kDepth);
    unpack_bf16(w, n0, k0, columns, block, t);
    for (int64_t m = m0; m < m1; m += kIntegerRows) {
      const int rows = int(x.rows - m < kIntegerRows ? x.rows - m : kIntegerRows);  // of the panel as it was packed
      auto data = static_cast<const int32_t*>(x.data) + packed_offset(x, m, k0, rows) / 2;
      float* c = y + (m - m0) * kTile;
      w.format == Format::plain ? bf16_panel<false>(t, data, columns, columns, rows, c)
                                : bf16_panel<true>(t, data, columns, block, rows, c);
      if (k0 + kDepth >= x.columns) {
        done(m, m + rows);
      }
    }
  }
}

}  // namespace ingot::cpu::INGOT_ISA

namespace ingot::cpu {

void bf16_tile_product_avx512(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y,
                              const RowsCallback& done) {
  avx512bf16::bf16_tile_product(w, x, n0, m0, m1, y, done);
}

}  // namespace ingot::cpu
