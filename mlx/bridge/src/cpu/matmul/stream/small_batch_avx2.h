// Streaming products with AVX2 of codes of 2 to 6 and 8 bits, for a few activation rows; see vector_x86.h.
#pragma once

#include "cpu/matmul/stream/floats.h"
#include "cpu/matmul/stream/pair_row_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Reads the scales and biases of weight rows, eight blocks of columns at a time.
template <ScaleType T>
struct UnitScales {
  static constexpr int kSize = size_of(T);

  const uint8_t *scales, *biases;
  float factor;             // of a scale that is its bias, if there are no biases
  int shift;                // blocks of a group, log 2
  int64_t row_bytes, last;  // of the scales; where the last vector begins that does not reach past the matrix

  explicit UnitScales(const Weights& w)
      : scales(static_cast<const uint8_t*>(w.scales)), biases(static_cast<const uint8_t*>(w.biases)),
        factor(float(-w.zero)), shift(w.group > kStep),
        row_bytes(w.groups() * kSize), last(w.rows * row_bytes - kUnit * kSize) {}

  // Loads those of n blocks from block b on, at most eight; other lanes are zero.
  inline __attribute__((always_inline)) void read(int64_t row, int64_t b, int64_t n, __m256& s, __m256& o) const {
    const int64_t at = row * row_bytes + (b >> shift) * kSize;
    const uint8_t* from[2] = {scales + at, (biases ? biases : scales) + at};
    prefetch(from[0] + kScalesAhead);
    prefetch(from[1] + kScalesAhead);
    alignas(32) uint8_t copy[2][kUnit * 4];
    if (__builtin_expect(at > last, 0)) {
#pragma GCC unroll 1
      for (int i = 0; i < 2; i++) {
        __builtin_memset(copy[i], 0, sizeof copy[i]);
        __builtin_memcpy(copy[i], from[i], size_t((n >> shift) * kSize));
        from[i] = copy[i];
      }
    }
    s = load_scales<T>(from[0], 0);
    o = load_scales<T>(from[1], 0);
    o = biases ? o : _mm256_mul_ps(o, _mm256_set1_ps(factor));
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    if (shift) {
      s = _mm256_permutevar8x32_ps(s, _mm256_srli_epi32(lane, 1));
      o = _mm256_permutevar8x32_ps(o, _mm256_srli_epi32(lane, 1));
    }
    if (n < kUnit) {
      const __m256 lanes = _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), lane));
      s = _mm256_and_ps(s, lanes);
      o = _mm256_and_ps(o, lanes);
    }
  }
};

// Loads eight of an activation row's scales or sums, or the first n of them.
IG_INLINE __m256 load_blocks(const float* p, int64_t n) {
  if (__builtin_expect(n >= kUnit, 1)) {
    return _mm256_loadu_ps(p);
  }
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), lane));
}

// Computes y[m][n-n0] = x[m] . W[n] for all activation rows, R, and weight rows [n0, n1). Each step of a weight row is
// unpacked once for all activation rows, each of which is contiguous (Layout::vector). If S is 2, weight rows are read
// at two places at a time, which uses more of the memory bandwidth. With more activation rows there are too few
// registers for that.
//
// Weight rows are read as a whole, although the activations of wide ones do not fit in the L1 cache: in chunks, whose
// runs of memory are shorter, 4096 columns take up to a third longer.
//
// A step has one block of 64 columns or two of 32. The loop is the same at the ends of rows: loops for these, and whole
// units unrolled, took a minute to compile.
template <class Codes, int Blocks, ScaleType T, int S, int R>
static void stream_codes(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  constexpr int kVectors = Codes::kVectors, kStepBytes = kStep / 8 * Codes::kBits;
  constexpr int kAtOnce = 2;  // unrolled steps
  const Codes unpacker;
  const UnitScales<T> weight_scales(w);
  constexpr int block = kStep / Blocks;  // columns
  const int64_t bytes = w.row_bytes(), x_blocks = x.columns / block, columns = kUnit * block;
  const uint8_t *begin = w.codes + unpacker.kBefore, *end = w.codes + w.rows * bytes - unpacker.kReach;
  const int64_t stride = (n1 - n0 + S - 1) / S;
  for (int64_t i = 0; i < stride; i++) {
    int64_t rows[S];
    const uint8_t* codes[S];
    __m256 sum[S][R], added[S][R];
    alignas(32) float scales[S][R][kUnit];
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      rows[s] = s ? n1 - stride + i : n0 + i;  // the middle row may be computed twice
      codes[s] = w.codes + rows[s] * bytes;
#pragma GCC unroll 4
      for (int r = 0; r < R; r++) {
        sum[s][r] = added[s][r] = _mm256_setzero_ps();
      }
    }
    for (int64_t k = 0; k < w.columns; k += columns) {
      const int64_t left = w.columns - k < columns ? w.columns - k : columns, b = k / block, n = left / block;
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        __m256 scale, bias;
        weight_scales.read(rows[s], b, n, scale, bias);
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
          const int64_t at = r * x_blocks + b;
          _mm256_store_ps(scales[s][r], _mm256_mul_ps(scale, load_blocks(x.scales + at, n)));
          __m256& to = Codes::kDivides ? added[s][r] : sum[s][r];
          to = _mm256_fmadd_ps(bias, load_blocks(x.sums + at, n), to);
        }
      }
      const int64_t from = k & ~int64_t(kDepth - 1), wide = x.columns - from < kDepth ? x.columns - from : kDepth;
      const int64_t apart = wide / kStep * kVectors;  // vectors from an activation row to the next
      auto v = static_cast<const __m256i*>(x.data) + (from * x.rows + k - from) / kStep * kVectors;
      int64_t steps = (left + kStep - 1) / kStep;
      // Codes at the begin or the end of the matrix, which loads must not cross, are copied. Those of a next row are
      // multiplied by the zeros behind the activations.
      alignas(32) uint8_t copy[S][32 + kUnit * kStepBytes + 32];
      const uint8_t* p[S];
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        p[s] = codes[s];
        codes[s] += left / 8 * Codes::kBits;
        if (__builtin_expect(p[s] < begin || p[s] + (steps - 1) * kStepBytes > end, 0)) {
          p[s] = copy_codes(copy[s], sizeof copy[s], p[s], left / 8 * Codes::kBits);
        }
      }
      const float* by = scales[0][0];
      IG_HIDE(by);
      // Adds the products of a step, the u-th from the current one on.
      auto step = [&](int u) __attribute__((always_inline)) {
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          const uint8_t* at = p[s] + u * kStepBytes;
          if (kStepBytes > 32 || u % 2 == 0) {
            prefetch(at + kPrefetchDistance);
          }
          __m256i raw[2], q[4];
          unpacker.load(at, raw);
          unpacker.unpack(raw, q);
#pragma GCC unroll 4
          for (int r = 0; r < R; r++) {
            const float* block_scales = by + (s * R + r) * kUnit + u * Blocks;
            unpacker.template add<Blocks>(q, v + u * kVectors + r * apart, block_scales, sum[s][r]);
          }
        }
      };
      auto skip = [&](int steps) __attribute__((always_inline)) {
        v += steps * kVectors;
        by += steps * Blocks;
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          p[s] += steps * kStepBytes;
        }
      };
      for (; steps >= kAtOnce; steps -= kAtOnce) {
#pragma GCC unroll 4
        for (int u = 0; u < kAtOnce; u++) {
          step(u);
        }
        skip(kAtOnce);
      }
#pragma GCC unroll 1
      for (; steps > 0; steps--) {
        step(0);
        skip(1);
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
#pragma GCC unroll 4
      for (int r = 0; r < R; r++) {
        y[r * (n1 - n0) + rows[s] - n0] = add_lanes(unpacker.finish(sum[s][r], added[s][r]));
      }
    }
  }
}

// Calls stream_codes for the number of activation rows: 2 to 4, at most 3 with 4-bit codes.
template <class Codes, int Blocks, ScaleType T>
static void stream_small_batch(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  if (x.rows == 2) {
    return stream_codes<Codes, Blocks, T, 2, 2>(w, x, n0, n1, y);
  }
  if constexpr (Codes::kBits == 4) {
    stream_codes<Codes, Blocks, T, 2, 3>(w, x, n0, n1, y);
  } else {
    x.rows == 3 ? stream_codes<Codes, Blocks, T, 1, 3>(w, x, n0, n1, y)
                : stream_codes<Codes, Blocks, T, 1, 4>(w, x, n0, n1, y);
  }
}

// Calls stream_small_batch for the scales and blocks of the weights.
template <class Codes>
static void stream(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  with_scale_type(w, [&]<ScaleType T>() {
    x.layout.block < kStep ? stream_small_batch<Codes, 2, T>(w, x, n0, n1, y)
                           : stream_small_batch<Codes, 1, T>(w, x, n0, n1, y);
  });
}

template <int Bits>
static void pair_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  if (x.rows > 1) {
    return stream<Pairs<Bits>>(w, x, n0, n1, y);
  }
  with_scales(w, [&]<ScaleType T, int Group>() { pair_row<Bits, T, Group>(w, x, n0, n1, y); });
}

}  // namespace ingot::cpu::INGOT_ISA
