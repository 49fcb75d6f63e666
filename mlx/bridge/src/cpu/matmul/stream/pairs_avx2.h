// Streaming products with AVX2 of codes of 2, 3, 5 and 6 bits, for one activation row or a few; see
// vector_x86.h.
#pragma once

#include "cpu/matmul/stream/vector_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Unpacks a step of 2-, 3-, 5- or 6-bit codes to four vectors of int16. A half of a vector has words of one block: of
// 32 columns if a step has two blocks, otherwise of 16, which takes fewer instructions. A shuffle moves the bytes that
// contain two codes to each word, from where masks take them without aligning them. The two words of a lane, which are
// added, are eight columns apart, so that their codes lie at the same bit: sums are multiples of a power of two, which
// finish divides by. Both are exact.
template <int Bits, int Blocks>
struct Pairs {
  static constexpr bool kTwo = Blocks == 2;
  static constexpr int kQuarter = 2 * Bits, kHalf = 4 * Bits;  // bytes of 16 and of 32 columns
  // From the first half of a vector to the second, and from the first two vectors to the others.
  static constexpr int kAcross = kTwo ? kHalf : kQuarter, kNext = kTwo ? kQuarter : kHalf;
  // Whether the 16 bytes of one load contain both halves of a vector, and all four vectors.
  static constexpr bool kOne = Bits == 2 || (Bits == 3 && !kTwo), kAll = Bits == 2 || (Bits == 3 && kTwo);
  // What load may read.
  static constexpr int kReach = Bits == 2 ? 16 : Bits == 3 ? kHalf + 16 : kHalf + kQuarter + 16;

  __m256i first, second, mask;
  __m256 factor;

  Pairs() {
    alignas(32) uint8_t bytes[2][32];
    alignas(32) uint16_t masks[16];
    alignas(32) float factors[8];
    for (int i = 0; i < 16; i++) {
      const int word = i % 8, pair = word / 2 + word % 2 * 4, at = pair * 2 * Bits;
      for (int j = 0; j < 2; j++) {
        const int from = at / 8 + (kOne ? i / 8 * kAcross : 0) + j;
        bytes[0][2 * i + j] = uint8_t(from);
        bytes[1][2 * i + j] = uint8_t(from + (kAll ? kNext : 0));
      }
      masks[i] = uint16_t(((1 << Bits) - 1) << at % 8);
      factors[i / 2] = 1.0f / float(1 << at % 8);
    }
    first = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes[0]));
    second = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes[1]));
    mask = _mm256_load_si256(reinterpret_cast<const __m256i*>(masks));
    factor = _mm256_load_ps(factors);
  }

  // Loads the bytes of the first or the third vector and of its successor. A load with an insertion takes twice as
  // long.
  static __attribute__((always_inline)) __m256i bytes_of(const uint8_t* p) {
    auto wide = [](const uint8_t* p) __attribute__((always_inline)) {
      __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
      if (!kOne) {
        IG_KEEP(v);
      }
      return v;
    };
    return kOne ? wide(p) : _mm256_blend_epi32(wide(p), wide(p + kAcross), 0xf0);
  }

  inline __attribute__((always_inline)) void load(const uint8_t* p, __m256i* q) const {
    __m256i v0 = bytes_of(p), v1 = kAll ? v0 : bytes_of(p + kNext);
    v0 = _mm256_shuffle_epi8(v0, first);
    v1 = _mm256_shuffle_epi8(v1, second);
    q[0] = _mm256_and_si256(v0, mask);
    q[1] = _mm256_and_si256(_mm256_srli_epi16(v0, Bits), mask);
    q[2] = _mm256_and_si256(v1, mask);
    q[3] = _mm256_and_si256(_mm256_srli_epi16(v1, Bits), mask);
  }
  inline __attribute__((always_inline)) __m256 finish(__m256 sum, __m256 added) const {
    return _mm256_fmadd_ps(sum, factor, added);
  }
};

// Loads the scales and biases of the n blocks of a weight row from block b on, at most eight; other lanes are zero. A
// group has 1 << shift blocks.
IG_INLINE void unit_scales_of(const Weights& w, int shift, int64_t row, int64_t b, int64_t n, __m256& scales,
                              __m256& biases) {
  const int64_t at = row * w.groups() + (b >> shift), size = w.scale_bytes();
  const void* from[2] = {static_cast<const uint8_t*>(w.scales) + at * size,
                         static_cast<const uint8_t*>(w.biases) + at * size};
  // Vectors read into the next row, but not past the matrix.
  alignas(32) uint8_t copy[2][kUnit * 4];
  if (__builtin_expect(at + kUnit > w.rows * w.groups(), 0)) {
#pragma GCC unroll 1
    for (int i = 0; i < 2; i++) {
      __builtin_memset(copy[i], 0, sizeof copy[i]);
      __builtin_memcpy(copy[i], from[i], size_t((n >> shift) * size));
      from[i] = copy[i];
    }
  }
  auto load_both = [&]<ScaleType T>() __attribute__((always_inline)) {
    scales = load_scales<T>(from[0], 0);
    biases = load_scales<T>(from[1], 0);
  };
  switch (w.scale_type) {
    case ScaleType::f16:
      load_both.template operator()<ScaleType::f16>();
      break;
    case ScaleType::bf16:
      load_both.template operator()<ScaleType::bf16>();
      break;
    default:
      load_both.template operator()<ScaleType::f32>();
  }
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  if (shift) {
    scales = _mm256_permutevar8x32_ps(scales, _mm256_srli_epi32(lane, 1));
    biases = _mm256_permutevar8x32_ps(biases, _mm256_srli_epi32(lane, 1));
  }
  if (n < kUnit) {
    const __m256 lanes = _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), lane));
    scales = _mm256_and_ps(scales, lanes);
    biases = _mm256_and_ps(biases, lanes);
  }
}

// Loads eight of an activation row's scales or sums, or the first n of them.
IG_INLINE __m256 load_blocks(const float* p, int64_t n) {
  if (__builtin_expect(n >= kUnit, 1)) {
    return _mm256_loadu_ps(p);
  }
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), lane));
}

// A range of weight rows and of columns, which begin with a depth, and where its results go.
struct StreamRange {
  int64_t n0, rows;  // weight rows
  int64_t m;         // the first activation row
  int64_t k0, k1;    // columns
  int64_t prefetch;  // bytes from codes to those that are prefetched
  float* y;          // y[r * width + i] for activation row m + r and weight row n0 + i
  int64_t width;
};

// Computes the products of a range with R activation rows, each of which is contiguous (Layout::vector). Each step of a
// weight row is unpacked once for all of them. If S is 2, weight rows are read at two places at a time, which uses more
// of the memory bandwidth, and results are stored. With more activation rows there are too few registers for that;
// results are then added to those in y.
//
// A step has one block of 64 columns or two of 32. The loop is the same at the ends of rows, which are copied: loops
// for these, and whole units unrolled, took a minute to compile.
template <int Bits, int Blocks, int S, int R>
static void stream_codes(const Weights& w, const Activations& x, const StreamRange& range) {
  constexpr int kVectors = 4, kStepBytes = kStep / 8 * Bits, kAtOnce = R == 1 ? 4 : 2;  // unrolled steps
  const Pairs<Bits, Blocks> unpacker;
  const int shift = w.group > kStep;                                          // blocks of a group, log 2
  constexpr int block = kStep / Blocks, kSteps = kUnit / Blocks;  // columns, steps of a unit
  const int64_t bytes = w.row_bytes(), x_blocks = x.columns / block, k1 = range.k1, columns = kUnit * block;
  const uint8_t* safe = w.codes + w.rows * bytes - (kSteps - 1) * kStepBytes - unpacker.kReach;
  const int64_t stride = (range.rows + S - 1) / S;  // the middle row may be computed twice
  for (int64_t i = 0; i < stride; i++) {
    int64_t rows[S];
    const uint8_t* codes[S];
    __m256 sum[S][R], added[S][R];
    alignas(32) float scales[S][R][kUnit];
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      rows[s] = s ? range.rows - stride + i : i;
      codes[s] = w.codes + (range.n0 + rows[s]) * bytes + range.k0 / 8 * Bits;
#pragma GCC unroll 4
      for (int r = 0; r < R; r++) {
        sum[s][r] = added[s][r] = _mm256_setzero_ps();
      }
    }
    for (int64_t k = range.k0; k < k1; k += columns) {
      const int64_t left = k1 - k < columns ? k1 - k : columns, b = k / block, n = left / block;
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        __m256 scale, bias;
        unit_scales_of(w, shift, range.n0 + rows[s], b, n, scale, bias);
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
          const int64_t at = (range.m + r) * x_blocks + b;
          _mm256_store_ps(scales[s][r], _mm256_mul_ps(scale, load_blocks(x.scales + at, n)));
          added[s][r] = _mm256_fmadd_ps(bias, load_blocks(x.sums + at, n), added[s][r]);
        }
      }
      const int64_t from = k & ~int64_t(kDepth - 1), wide = x.columns - from < kDepth ? x.columns - from : kDepth;
      auto v = static_cast<const __m256i*>(x.data) + (from * x.rows + range.m * wide + k - from) / kStep * kVectors;
      const int64_t apart = wide / kStep * kVectors;  // vectors from an activation row to the next
      // Codes at the end of a row, or of the matrix, which loads must not cross, are copied and end with zeros.
      alignas(32) uint8_t copy[S][kUnit * kStepBytes + 32];
      const uint8_t* p[S];
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        p[s] = codes[s];
        codes[s] += left / 8 * Bits;
        if (__builtin_expect(left < columns || p[s] > safe, 0)) {
          __builtin_memset(copy[s], 0, sizeof copy[s]);
          __builtin_memcpy(copy[s], p[s], size_t(left / 8 * Bits));
          p[s] = copy[s];
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
            prefetch(reinterpret_cast<const char*>(at + range.prefetch));
          }
          __m256i q[4];
          unpacker.load(at, q);
#pragma GCC unroll 4
          for (int r = 0; r < R; r++) {
            const __m256 scale = lane_scales<Blocks>(by + (s * R + r) * kUnit + u * Blocks);
            const __m256i t = word_sums(q, v + u * kVectors + r * apart);
            sum[s][r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(t), scale, sum[s][r]);
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
      int64_t steps = (left + kStep - 1) / kStep;
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
        float& to = range.y[r * range.width + rows[s]];
        const float value = add_lanes(unpacker.finish(sum[s][r], added[s][r]));
        to = S == 2 ? value : to + value;
      }
    }
  }
}

// Computes y[m][n-n0] = x[m] . W[n] for all activation rows and weight rows [n0, n1).
template <int Bits, int Blocks>
static void pair_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  const int64_t width = n1 - n0, bytes = w.row_bytes();
  StreamRange all = {.n0 = n0, .rows = width, .m = 0, .k0 = 0, .k1 = w.columns, .prefetch = kPrefetchDistance, .y = y,
                     .width = width};
  if (x.rows == 1) {
    return stream_codes<Bits, Blocks, 2, 1>(w, x, all);
  }
  // Weight rows stay in the L2 cache until all activation rows have met them, four at a time; the activations of a
  // chunk of columns stay in the L1 cache while the weight rows pass through.
  constexpr int64_t kChunkBytes = 24 << 10, kRowsBytes = 64 << 10;
  const int64_t chunk = even_chunk(w.columns, kChunkBytes / (4 * 2));
  const int64_t some = kRowsBytes / (bytes + 1) < 16 ? 16 : kRowsBytes / (bytes + 1);
  const int64_t rest = x.rows % 4 == 3 ? 0 : x.rows % 4, panels = x.rows - rest;
  for (int64_t n = n0; n < n1; n += some) {
    all.n0 = n;
    all.rows = n1 - n < some ? n1 - n : some;
    if (rest) {
      all.m = panels;
      all.y = y + panels * width + n - n0;
      rest == 1 ? stream_codes<Bits, Blocks, 2, 1>(w, x, all) : stream_codes<Bits, Blocks, 2, 2>(w, x, all);
    }
    for (int64_t m = 0; m < panels; m++) {
      __builtin_memset(y + m * width + n - n0, 0, size_t(all.rows) * sizeof(float));
    }
    StreamRange part = all;
    for (part.k0 = 0; part.k0 < w.columns; part.k0 += chunk) {
      part.k1 = part.k0 + chunk < w.columns ? part.k0 + chunk : w.columns;
      // the same columns of a later row
      part.prefetch = (1 + kPrefetchDistance / ((part.k1 - part.k0) / 8 * w.bits + 1)) * bytes;
      for (part.m = 0; part.m < panels; part.m += 4) {
        part.y = y + part.m * width + n - n0;
        panels - part.m == 3 ? stream_codes<Bits, Blocks, 1, 3>(w, x, part)
                             : stream_codes<Bits, Blocks, 1, 4>(w, x, part);
      }
    }
  }
}

template <int Bits>
static void pair_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  x.layout.block < kStep ? pair_rows<Bits, 2>(w, x, n0, n1, y) : pair_rows<Bits, 1>(w, x, n0, n1, y);
}

}  // namespace ingot::cpu::INGOT_ISA
