// Row products on x86: one row of activations, weights streamed once; see cpu_matmul_kernels.h.
#pragma once

#include <immintrin.h>

#include "cpu_unpack_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Rows are taken in stretches of that many columns, so that their scales fit in a small buffer.
constexpr int kStretch = 4096;
// Far enough for memory to answer, near enough to stay in the first cache.
constexpr int kAhead = 2048;

// The scales of a stretch of a weight row times those of the activations, and what biases add.
struct RowScales {
  alignas(32) float scales[kStretch / 16 + 8];
  float added;
};

IG_INLINE float add_lanes(__m256 v) {
  __m128 a = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  a = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}

static void combine_scales(const Weights& w, const Activations& x, int64_t row, int64_t k0, int64_t k1, RowScales& out) {
  int block = x.layout.block;
  int64_t first = k0 / block, blocks = (k1 - k0 + block - 1) / block;
  alignas(32) float scales[kStretch / 16 + 16], biases[kStretch / 16 + 16];
  row_scales(w, row, k0 / w.group, (k1 - k0 + w.group - 1) / w.group, scales, biases);
  if (w.group > block) {
    int per = w.group / block;
    for (int64_t b = blocks - 1; b >= 0; b--) {
      scales[b] = scales[b / per];
      biases[b] = biases[b / per];
    }
  }
  for (int64_t b = blocks; b < (blocks + 7) / 8 * 8; b++) {
    scales[b] = biases[b] = 0;
  }
  __m256 added = _mm256_setzero_ps();
  const float* by = x.scales + first;
  const float* sums = x.sums + first;
  int64_t b = 0;
  for (; b + 8 <= blocks; b += 8) {
    _mm256_store_ps(out.scales + b, _mm256_mul_ps(_mm256_load_ps(scales + b), _mm256_loadu_ps(by + b)));
    added = _mm256_fmadd_ps(_mm256_load_ps(biases + b), _mm256_loadu_ps(sums + b), added);
  }
  out.added = add_lanes(added);
  for (; b < blocks; b++) {
    out.scales[b] = scales[b] * by[b];
    out.added += biases[b] * sums[b];
  }
  for (; b < blocks + 8; b++) {
    out.scales[b] = 0;
  }
}

// 64 four-bit codes with their activations, as eight sums, one for each eight codes.
template <bool Wide, bool FP4>
IG_INLINE __m256i nibble_step(__m256i v, const __m256i* x) {
  if constexpr (Wide) {
    __m256i mask = FP4 ? _mm256_set1_epi32(0x000f000f) : _mm256_set1_epi16(15);
    (void)mask;
    __m256i q[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      q[j] = _mm256_and_si256(_mm256_srli_epi32(v, 4 * j), _mm256_set1_epi32(0x000f000f));
      if (FP4) {
        q[j] = _mm256_shuffle_epi8(fp4_table(), _mm256_or_si256(q[j], _mm256_set1_epi32(int(0x80008000))));
      }
      q[j] = _mm256_madd_epi16(q[j], _mm256_loadu_si256(x + j));
    }
    return _mm256_add_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
  } else {
    __m256i mask = _mm256_set1_epi8(15);
    __m256i low = _mm256_and_si256(v, mask), high = _mm256_and_si256(_mm256_srli_epi16(v, 4), mask);
    if (FP4) {
      low = _mm256_shuffle_epi8(fp4_table(), low);
      high = _mm256_shuffle_epi8(fp4_table(), high);
    }
    __m256i t = _mm256_add_epi16(_mm256_maddubs_epi16(low, _mm256_loadu_si256(x)),
                                 _mm256_maddubs_epi16(high, _mm256_loadu_si256(x + 1)));
    return _mm256_madd_epi16(t, _mm256_set1_epi16(1));
  }
}

template <bool Wide, bool FP4, int Block>
static void nibble_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  constexpr int kVectors = Wide ? 4 : 2;  // of activations in a step
  constexpr int kBlocks = kStep / Block;
  // The block of each eight codes of a step.
  const __m256i spread = kBlocks == 4   ? _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)
                         : kBlocks == 2 ? _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1)
                                        : _mm256_setzero_si256();
  auto data = static_cast<const __m256i*>(x.data);
  for (int64_t n = n0; n < n1; n++) {
    const uint8_t* row = w.codes + n * w.row_bytes();
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    float added = 0;
    for (int64_t k0 = 0; k0 < w.columns; k0 += kStretch) {
      int64_t k1 = k0 + kStretch < w.columns ? k0 + kStretch : w.columns;
      RowScales s;
      combine_scales(w, x, n, k0, k1, s);
      added += s.added;
      const __m256i* v = data + k0 / kStep * kVectors;
      int steps = int((k1 - k0) / kStep), i = 0;
      auto one = [](const float* p, __m256i lanes) {
        return kBlocks == 1 ? _mm256_broadcast_ss(p) : _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), lanes);
      };
      const uint8_t* codes = row + k0 / 2;
      for (; i + 2 <= steps; i += 2) {
        prefetch(codes + i * 32 + kAhead);
        __m256i a = nibble_step<Wide, FP4>(load_bytes(codes + i * 32), v + i * kVectors);
        __m256i b = nibble_step<Wide, FP4>(load_bytes(codes + i * 32 + 32), v + (i + 1) * kVectors);
        sum[0] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(a), one(s.scales + i * kBlocks, spread), sum[0]);
        sum[1] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(b), one(s.scales + (i + 1) * kBlocks, spread), sum[1]);
      }
      for (; i * kStep < k1 - k0; i++) {
        alignas(32) uint8_t copy[32] = {};
        int64_t left = (k1 - k0 - i * kStep) / 2;
        __builtin_memcpy(copy, codes + i * 32, size_t(left < 32 ? left : 32));
        __m256i a = nibble_step<Wide, FP4>(load_bytes(copy), v + i * kVectors);
        sum[0] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(a), one(s.scales + i * kBlocks, spread), sum[0]);
      }
    }
    y[n - n0] = add_lanes(_mm256_add_ps(sum[0], sum[1])) + added;
  }
}

// Codes of other widths, 16 at a time in order.
template <bool Bytes>
IG_INLINE __m256i step_of_bytes(const uint8_t* p, const Spread& s, const __m256i* x, int from, int to) {
  __m256i sum = _mm256_setzero_si256();
  for (int i = from; i < to; i++) {
    __m256i q = Bytes ? _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i * 16)))
                      : spread16(p + i * 2 * s.lane, s);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(q, _mm256_loadu_si256(x + i)));
  }
  return sum;
}

template <bool Bytes>
static void byte_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  const Spread spread = make_spread(Bytes ? 2 : w.bits);
  const int bytes = kStep * w.bits / 8, per = kStep / x.layout.block, vectors = x.layout.block / 16;
  auto data = static_cast<const __m256i*>(x.data);
  for (int64_t n = n0; n < n1; n++) {
    const uint8_t* row = w.codes + n * w.row_bytes();
    __m256 sum = _mm256_setzero_ps();
    float added = 0;
    for (int64_t k0 = 0; k0 < w.columns; k0 += kStretch) {
      int64_t k1 = k0 + kStretch < w.columns ? k0 + kStretch : w.columns;
      RowScales s;
      combine_scales(w, x, n, k0, k1, s);
      added += s.added;
      for (int64_t k = k0; k < k1; k += kStep) {
        const uint8_t* p = row + k * w.bits / 8;
        prefetch(p + kAhead);
        alignas(32) uint8_t copy[kStep + 32];
        if (k + kStep > w.columns || (k + kStep == w.columns && n + 1 == w.rows)) {
          int64_t left = (w.columns - k) * w.bits / 8;
          __builtin_memset(copy, 0, sizeof(copy));
          __builtin_memcpy(copy, p, size_t(left < bytes ? left : bytes));
          p = copy;
        }
        const __m256i* v = data + k / 16;
        for (int b = 0; b < per; b++) {
          __m256i t = step_of_bytes<Bytes>(p, spread, v, b * vectors, (b + 1) * vectors);
          sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(t), _mm256_broadcast_ss(s.scales + (k - k0) / x.layout.block + b), sum);
        }
      }
    }
    y[n - n0] = add_lanes(sum) + added;
  }
}

template <bool Wide, bool FP4>
static void nibble_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  switch (x.layout.block) {
    case 16:
      return nibble_rows<Wide, FP4, 16>(w, x, n0, n1, y);
    case 32:
      return nibble_rows<Wide, FP4, 32>(w, x, n0, n1, y);
    default:
      return nibble_rows<Wide, FP4, 64>(w, x, n0, n1, y);
  }
}

static void row_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  if (w.format == Format::plain) {
    return plain_row_product(w, static_cast<const float*>(x.data), n0, n1, y);
  }
  if (!x.layout.nibbles) {
    return w.bits == 8 ? byte_rows<true>(w, x, n0, n1, y) : byte_rows<false>(w, x, n0, n1, y);
  }
  bool wide = x.layout.mode == Mode::i16;
  if (w.format == Format::fp4) {
    return wide ? nibble_product<true, true>(w, x, n0, n1, y) : nibble_product<false, true>(w, x, n0, n1, y);
  }
  return wide ? nibble_product<true, false>(w, x, n0, n1, y) : nibble_product<false, false>(w, x, n0, n1, y);
}

}  // namespace ingot::cpu::INGOT_ISA
