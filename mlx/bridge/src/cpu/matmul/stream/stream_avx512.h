// Streaming products with AVX-512: 2 to 6 activation rows; see cpu/matmul/matmul.h. Each step of a weight row is
// unpacked once and multiplied by all activation rows, each of which is contiguous (Layout::vector).
#pragma once

#include "cpu/matmul/stream/floats.h"
#include "cpu/matmul/stream/fp8_avx512.h"
#include "cpu/matmul/stream/quarters_avx512.h"

namespace ingot::cpu::INGOT_ISA {

// The most activation rows of integers. Their sums and scales stay in registers; with more rows tiles are faster.
constexpr int kStreamRows = 6;
// The most of affine 4-bit codes: with more rows small-batch products are faster, because their transpose is cheap.
constexpr int kStreamNibbleRows = 4;
// Up to this many activation rows, weight rows are multiplied two at a time.
constexpr int kPairedRows = 4;
// The activations of a chunk of columns stay in the L1 cache, beside the weights that pass through.
constexpr int64_t kChunkBytes = 24 << 10;

// Codes of a kind, as the streaming product unpacks them: kColumns at a time, to kVectors vectors of bytes, whose lanes
// have kLaneColumns columns each.
template <bool FP4>
struct Nibbles {
  static constexpr int kColumns = 2 * kStep, kVectors = 2, kLaneColumns = 8;
  static constexpr bool kFP4 = FP4;
  __m512i low_bits = _mm512_set1_epi8(15);
  __m512i table = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(INGOT_ISA::kFP4)));

  explicit Nibbles(const Weights&) {}
  inline __attribute__((always_inline)) void unpack(__m512i v, __m512i* q) const {
    q[0] = _mm512_and_si512(v, low_bits);
    q[1] = _mm512_and_si512(_mm512_srli_epi16(v, 4), low_bits);
    if constexpr (FP4) {
      q[0] = _mm512_shuffle_epi8(table, q[0]);
      q[1] = _mm512_shuffle_epi8(table, q[1]);
    }
  }
  inline __attribute__((always_inline)) void load(const uint8_t* p, __m512i* q) const {
    unpack(_mm512_loadu_si512(p), q);
  }
  inline __attribute__((always_inline)) void load_some(const uint8_t* p, int64_t columns, __m512i* q) const {
    unpack(_mm512_maskz_loadu_epi8((uint64_t(1) << columns / 2) - 1, p), q);
  }
};

template <bool Whole>
struct Bytes {
  static constexpr int kColumns = kStep, kVectors = 1, kLaneColumns = 4;
  static constexpr bool kFP4 = false;
  StepUnpacker unpacker;
  int bits;

  explicit Bytes(const Weights& w) : unpacker(make_step_unpacker(Whole ? 2 : w.bits)), bits(w.bits) {}
  inline __attribute__((always_inline)) void load(const uint8_t* p, __m512i* q) const {
    q[0] = Whole ? _mm512_loadu_si512(p) : unpack_step(p, unpacker.mask, unpacker);
  }
  inline __attribute__((always_inline)) void load_some(const uint8_t* p, int64_t columns, __m512i* q) const {
    const __mmask64 mask = (uint64_t(1) << columns / 8 * bits) - 1;
    q[0] = Whole ? _mm512_maskz_loadu_epi8(mask, p) : unpack_step(p, mask, unpacker);
  }
};

// Returns the sums of four vectors.
IG_INLINE __m128 four_sums(__m512 a, __m512 b, __m512 c, __m512 d) {
  __m512 ab = _mm512_unpacklo_ps(a, b) + _mm512_unpackhi_ps(a, b);
  __m512 cd = _mm512_unpacklo_ps(c, d) + _mm512_unpackhi_ps(c, d);
  __m512d x = _mm512_castps_pd(ab), y = _mm512_castps_pd(cd);
  __m512 all = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y)) + _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
  __m256 half = _mm512_castps512_ps256(all) + _mm512_extractf32x8_ps(all, 1);
  return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
}

// Calls weight_scales for the matrix's type of scales.
template <bool FP4, int Group>
IG_INLINE void any_weight_scales(const Weights& w, int64_t group, int64_t b, int64_t n, F& scales, F& biases) {
  if constexpr (FP4) {
    return weight_scales<Group == 16 ? ScaleType::e4m3 : ScaleType::e8m0, Group>(w, group, b, n, scales, biases);
  } else {
    switch (w.scale_type) {
      case ScaleType::f16:
        return weight_scales<ScaleType::f16, Group>(w, group, b, n, scales, biases);
      case ScaleType::bf16:
        return weight_scales<ScaleType::bf16, Group>(w, group, b, n, scales, biases);
      default:
        return weight_scales<ScaleType::f32, Group>(w, group, b, n, scales, biases);
    }
  }
}

// Weight rows [n0, n1) and columns [k0, k1), which begin with a depth.
struct Pass {
  const Weights& w;
  const Activations& x;
  int64_t n0, n1, k0, k1;
  float* y;  // [row][n1-n0]
};

// Computes y[r][n-n0] += x[r] . W[n] over the columns of the pass, for all R activation rows and weight row n and, if S
// is 2, weight row n+other: two rows share the loads of activations.
template <class Codes, bool Wide, int Group, int R, int S>
IG_INLINE void stream_row(const Pass& p, const Codes& codes, int64_t n, int64_t other) {
  constexpr int kBlock = Group < kStep ? Group : kStep, kBlocks = Codes::kColumns / kBlock;
  constexpr int kDepthBlocks = kDepth / kBlock, kUnitBlocks = kDepthBlocks < kUnit ? kDepthBlocks : kUnit;
  constexpr int kVectors = Codes::kVectors, kVectorsOfX = (Wide ? 2 : 1) * kVectors;  // of codes, of activations
  constexpr int kSums = (R + 3) / 4 * 4;  // four_sums takes four
  const __m512i block_of_lane = _mm512_srli_epi32(
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
      __builtin_ctz(kBlock / Codes::kLaneColumns));
  const __m512i next = _mm512_set1_epi32(kBlocks);
  const Weights& w = p.w;
  const Activations& x = p.x;
  const int64_t stride = x.columns / kBlock, bytes = w.row_bytes();
  // the same columns of a later row
  const int64_t distance = (1 + kPrefetchDistance / ((p.k1 - p.k0) / 8 * w.bits + 1)) * bytes;
  constexpr int kCodesAtOnce = Codes::kColumns / 8;
  const uint8_t* from[S];
  F sum[S][kSums];
#pragma GCC unroll 2
  for (int s = 0; s < S; s++) {
    from[s] = w.codes + (n + s * other) * bytes + p.k0 / 8 * w.bits;
#pragma GCC unroll 8
    for (F& v : sum[s]) {
      v = set(0);
    }
  }
  for (int64_t k = p.k0; k < p.k1; k += kDepth) {
    const int64_t padded = x.columns - k < kDepth ? x.columns - k : kDepth;
    const int64_t columns = w.columns - k < kDepth ? w.columns - k : kDepth;
    const int64_t apart = padded * (Wide ? 2 : 1);
    auto v = static_cast<const uint8_t*>(x.data) + packed_offset(x, 0, k, 1) * (Wide ? 2 : 1);
    const int64_t blocks = columns / kBlock;
    for (int64_t b = 0; b < blocks; b += kUnitBlocks) {
      const int64_t count = blocks - b < kUnitBlocks ? blocks - b : kUnitBlocks;
      const __mmask16 m = first_lanes(count);
      F scales[S][R];
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        F scale, bias;
        any_weight_scales<Codes::kFP4, Group>(w, (n + s * other) * w.groups(), k / kBlock + b, count, scale, bias);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
          const int64_t at = r * stride + k / kBlock + b;
          scales[s][r] = scale * _mm512_maskz_loadu_ps(m, x.scales + at);
          sum[s][r] = fma(bias, _mm512_maskz_loadu_ps(m, x.sums + at), sum[s][r]);
        }
      }
      __m512i which = block_of_lane;
      auto multiply = [&](const __m512i (&q)[S][kVectors], auto load_x) __attribute__((always_inline)) {
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
          __m512i t[S];
#pragma GCC unroll 2
          for (__m512i& zero : t) {
            zero = zeros();
          }
#pragma GCC unroll 8
          for (int j = 0; j < kVectorsOfX; j++) {
            __m512i of_x = load_x(r, j);
            if constexpr (S > 1) {
              IG_KEEP(of_x);  // otherwise GCC loads it twice
            }
#pragma GCC unroll 2
            for (int s = 0; s < S; s++) {
              if (j == kVectors) {
                t[s] = _mm512_slli_epi32(t[s], 8);
              }
              t[s] = dot8(t[s], q[s][j % kVectors], of_x);
            }
          }
#pragma GCC unroll 2
          for (int s = 0; s < S; s++) {
            sum[s][r] = fma(_mm512_cvtepi32_ps(t[s]), _mm512_permutexvar_ps(which, scales[s][r]), sum[s][r]);
          }
        }
      };
      int64_t left = columns - b * kBlock < kUnitBlocks * kBlock ? columns - b * kBlock : kUnitBlocks * kBlock;
      for (; left >= Codes::kColumns; left -= Codes::kColumns) {
        __m512i q[S][kVectors];
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          prefetch(from[s] + distance);
          codes.load(from[s], q[s]);
          from[s] += kCodesAtOnce * w.bits;
        }
        multiply(q, [&](int r, int j) __attribute__((always_inline)) { return load_lanes(v + r * apart + j * 64); });
        v += kVectorsOfX * 64;
        which = _mm512_add_epi32(which, next);
      }
      if (left > 0) {
        __m512i q[S][kVectors];
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          codes.load_some(from[s], left, q[s]);
        }
        // Activations are padded to whole steps, so their vectors may be shorter than those of whole codes.
        const int64_t width = (left + kStep - 1) / kStep * kStep / kVectors;
        const __mmask64 mask = ~uint64_t(0) >> (64 - width);
        multiply(q, [&](int r, int j) __attribute__((always_inline)) {
          return _mm512_maskz_loadu_epi8(mask, v + r * apart + j * width);
        });
      }
    }
  }
#pragma GCC unroll 2
  for (int s = 0; s < S; s++) {
    alignas(16) float sums[kSums];
#pragma GCC unroll 2
    for (int r = 0; r < R; r += 4) {
      _mm_store_ps(sums + r, four_sums(sum[s][r], sum[s][r + 1], sum[s][r + 2], sum[s][r + 3]));
    }
    for (int r = 0; r < R; r++) {
      p.y[r * (p.n1 - p.n0) + n + s * other - p.n0] += sums[r];
    }
  }
}

// Computes y[m][n-n0] = x[m] . W[n] for all activation rows, at most kStreamRows, and weight rows [n0, n1).
template <class Codes, bool Wide, int Group>
static void stream_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  const Codes codes(w);
  const int64_t chunk = even_chunk(w.columns, kChunkBytes / (x.rows * (Wide ? 2 : 1)));
  __builtin_memset(y, 0, size_t(x.rows * (n1 - n0)) * sizeof(float));
  with_rows<kStreamRows>(x.rows, [&]<int R>() __attribute__((always_inline)) {
    for (int64_t k0 = 0; k0 < w.columns; k0 += chunk) {
      const Pass p = {w, x, n0, n1, k0, k0 + chunk < w.columns ? k0 + chunk : w.columns, y};
      constexpr bool kPaired = R <= kPairedRows;
      const int64_t half = kPaired ? (n1 - n0) / 2 : 0;
      for (int64_t n = n0; n < n0 + half; n++) {
        stream_row<Codes, Wide, Group, R, kPaired ? 2 : 1>(p, codes, n, half);
      }
      for (int64_t n = n0 + 2 * half; n < n1; n++) {
        stream_row<Codes, Wide, Group, R, 1>(p, codes, n, 0);
      }
    }
  });
}

template <bool Wide>
static void stream_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  if (w.format == Format::fp4) {
    return w.group == 16 ? stream_rows<Nibbles<true>, Wide, 16>(w, x, n0, n1, y)
                         : stream_rows<Nibbles<true>, Wide, 32>(w, x, n0, n1, y);
  }
  with_group(w, [&]<int Group>() {
    w.bits == 2   ? stream_rows<Quarters, Wide, Group>(w, x, n0, n1, y)
    : w.bits == 4 ? stream_rows<Nibbles<false>, Wide, Group>(w, x, n0, n1, y)
    : w.bits == 8 ? stream_rows<Bytes<true>, Wide, Group>(w, x, n0, n1, y)
                  : stream_rows<Bytes<false>, Wide, Group>(w, x, n0, n1, y);
  });
}

// The row product of 1 to kStreamRows rows of int16 or int8 activations with codes of 3, 5 or 6 bits.
static inline void unpacking_row_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  with_group(w, [&]<int Group>() {
    x.rows == 1                      ? byte_rows<false, Group>(w, x, n0, n1, y)
    : x.layout.mode == Mode::i16 ? stream_rows<Bytes<false>, true, Group>(w, x, n0, n1, y)
                                 : stream_rows<Bytes<false>, false, Group>(w, x, n0, n1, y);
  });
}

// Returns the most activation rows that row_product accepts with these weights. With more rows of float32, tiles are
// faster.
static int stream_rows_of(const Weights& w, Mode) {
  return w.format == Format::affine && w.bits == 4 ? kStreamNibbleRows : has_codes(w) ? kStreamRows : kStreamedFloats;
}

}  // namespace ingot::cpu::INGOT_ISA
