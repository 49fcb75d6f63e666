// Row products on x86: y = x W^T for one activation row. Weights are streamed once; see cpu/matmul/matmul.h.
#pragma once

#include <immintrin.h>

#include "cpu/simd/dot_x86.h"
#include "cpu/matmul/unpack_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Columns that are processed at a time, so that their scales fit in a small buffer.
constexpr int kChunkColumns = 4096;
// Prefetch distance in bytes: far enough to cover the memory latency, near enough to stay in the L1 cache.
constexpr int kPrefetchDistance = 2048;

// For a chunk of a weight row: its scales times those of the activations, and what the biases add to the result, the
// sum of bias * activation sum.
struct RowScales {
  alignas(32) float scales[kChunkColumns / 16 + 8];
  float added;
};

IG_INLINE float add_lanes(__m256 v) {
  __m128 a = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  a = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}

// Reads the scales and biases of groups [g, g+n) of a weight row. The arrays have room for eight more elements.
template <ScaleType T>
static void chunk_scales(const Weights& w, int64_t row, int64_t g, int64_t n, float* scales, float* biases) {
  int64_t at = row * w.groups() + g, i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256 s = load_scales<T>(w.scales, at + i), b;
    if constexpr (T == ScaleType::e8m0 || T == ScaleType::e4m3) {
      b = _mm256_mul_ps(s, _mm256_set1_ps(-6.0f));
      s = _mm256_mul_ps(s, _mm256_set1_ps(w.format == Format::fp4 ? 0.5f : 1.0f));
    } else {
      b = load_scales<T>(w.biases, at + i);
    }
    _mm256_store_ps(scales + i, s);
    _mm256_store_ps(biases + i, b);
  }
  if (i < n) {  // a vector load would read past the row
    row_scales(w, row, g + i, n - i, scales + i, biases + i);
  }
}

static void any_chunk_scales(const Weights& w, int64_t row, int64_t g, int64_t n, float* scales, float* biases) {
  switch (w.scale_type) {
    case ScaleType::f32:
      return chunk_scales<ScaleType::f32>(w, row, g, n, scales, biases);
    case ScaleType::f16:
      return chunk_scales<ScaleType::f16>(w, row, g, n, scales, biases);
    case ScaleType::bf16:
      return chunk_scales<ScaleType::bf16>(w, row, g, n, scales, biases);
    case ScaleType::e8m0:
      return chunk_scales<ScaleType::e8m0>(w, row, g, n, scales, biases);
    case ScaleType::e4m3:
      return chunk_scales<ScaleType::e4m3>(w, row, g, n, scales, biases);
  }
}

// Computes the RowScales of columns [k0, k1) of a weight row.
static void combine_scales(const Weights& w, const Activations& x, int64_t row, int64_t k0, int64_t k1,
                           RowScales& out) {
  int block = x.layout.block;
  const int64_t first = k0 >> __builtin_ctz(unsigned(block)),
                blocks = (k1 - k0 + block - 1) >> __builtin_ctz(unsigned(block));
  alignas(32) float scales[kChunkColumns / 16 + 16], biases[kChunkColumns / 16 + 16];
  const int shift = __builtin_ctz(unsigned(w.group));
  any_chunk_scales(w, row, k0 >> shift, (k1 - k0 + w.group - 1) >> shift, scales, biases);
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

// Reports whether a step is interleaved with its neighbour, in an activation row of the given number of steps.
IG_INLINE bool is_interleaved(int64_t step, int64_t steps) { return kInterleaveSteps && (step | 1) < steps; }

// Returns the index of a step's first vector. The vectors of an interleaved step (pair) are two apart.
IG_INLINE int64_t vector_index(int64_t step, bool pair, int vectors) {
  return pair ? (step & ~int64_t(1)) * vectors + (step & 1) : step * vectors;
}

// Returns the products of 64 unpacked codes with an activation row as eight sums, one for each eight codes. The vectors
// of x are `apart` vectors apart. Int16 activations are two vectors of high bytes and two of low bytes with
// kSplitBytes.
template <bool Wide>
IG_INLINE __m256i step_sums(const __m256i* q, const __m256i* x, int apart) {
  if constexpr (Wide && kSplitBytes) {
    auto both = [&](__m256i sum, int j) __attribute__((always_inline)) {
      return add8(add8(sum, q[0], load_bytes(x + j * apart)), q[1], load_bytes(x + (j + 1) * apart));
    };
    return both(_mm256_slli_epi32(both(_mm256_setzero_si256(), 0), 8), 2);
  } else if constexpr (Wide) {
    __m256i a = _mm256_madd_epi16(q[0], load_bytes(x)), b = _mm256_madd_epi16(q[2], load_bytes(x + 2 * apart));
    return _mm256_add_epi32(add16(a, q[1], load_bytes(x + apart)), add16(b, q[3], load_bytes(x + 3 * apart)));
  } else {
#if defined(__AVX512VNNI__)
    return add8(add8(_mm256_setzero_si256(), q[0], load_bytes(x)), q[1], load_bytes(x + apart));
#else
    __m256i t = _mm256_add_epi16(_mm256_maddubs_epi16(q[0], load_bytes(x)),
                                 _mm256_maddubs_epi16(q[1], load_bytes(x + apart)));
    return _mm256_madd_epi16(t, _mm256_set1_epi16(1));
#endif
  }
}

// Unpacks 64 4-bit codes to four vectors of int16 or two of bytes, as step_sums takes them.
template <bool Int16, bool FP4>
IG_INLINE void nibbles(__m256i v, __m256i* q) {
  constexpr bool Wide = Int16 && !kSplitBytes;
  constexpr int kVectors = Wide ? 4 : 2;
  const __m256i mask = Wide ? _mm256_set1_epi16(15) : _mm256_set1_epi8(15), upper = _mm256_set1_epi32(int(0x80008000));
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; j++) {
    __m256i shifted = j == 0 ? v : _mm256_srli_epi16(v, 4 * j);
    q[j] = j == 3 ? shifted : _mm256_and_si256(shifted, mask);
    if (FP4) {
      q[j] = _mm256_shuffle_epi8(fp4_table(), Wide ? _mm256_or_si256(q[j], upper) : q[j]);
    }
  }
}

// step_sums of 64 packed 4-bit codes.
template <bool Wide, bool FP4>
IG_INLINE __m256i nibble_step(__m256i v, const __m256i* x, int apart) {
  __m256i q[4];
  nibbles<Wide, FP4>(v, q);
  return step_sums<Wide>(q, x, apart);
}

// Row product of 4-bit codes: y[n-n0] = x . W[n] for n in [n0, n1). Block columns share an activation scale.
template <bool Wide, bool FP4, int Block>
static void nibble_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  constexpr int kVectors = Wide ? 4 : 2;  // vectors of activations per step
  constexpr int kBlocks = kStep / Block;
  // The block of columns of each lane, which is the sum of eight codes of a step.
  const __m256i block_of_lane = kBlocks == 4   ? _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)
                         : kBlocks == 2 ? _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1)
                                        : _mm256_setzero_si256();
  auto data = static_cast<const __m256i*>(x.data);
  for (int64_t n = n0; n < n1; n++) {
    const uint8_t* row = w.codes + n * w.row_bytes();
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    float added = 0;
    for (int64_t k0 = 0; k0 < w.columns; k0 += kChunkColumns) {
      int64_t k1 = k0 + kChunkColumns < w.columns ? k0 + kChunkColumns : w.columns;
      RowScales s;
      combine_scales(w, x, n, k0, k1, s);
      added += s.added;
      const int64_t first = k0 / kStep;
      int steps = int((k1 - k0) / kStep), i = 0;
      auto step = [&](__m256i codes, int i, bool pair) __attribute__((always_inline)) {
        return nibble_step<Wide, FP4>(codes, data + vector_index(first + i, pair, kVectors), pair ? 2 : 1);
      };
      auto one = [](const float* p, __m256i lanes) {
        return kBlocks == 1 ? _mm256_broadcast_ss(p) : _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), lanes);
      };
      const uint8_t* codes = row + k0 / 2;
      for (; i + 2 <= steps; i += 2) {
        prefetch(codes + i * 32 + kPrefetchDistance);
        __m256i a = step(load_bytes(codes + i * 32), i, kInterleaveSteps);
        __m256i b = step(load_bytes(codes + i * 32 + 32), i + 1, kInterleaveSteps);
        sum[0] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(a), one(s.scales + i * kBlocks, block_of_lane), sum[0]);
        sum[1] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(b), one(s.scales + (i + 1) * kBlocks, block_of_lane), sum[1]);
      }
      for (; i * kStep < k1 - k0; i++) {
        alignas(32) uint8_t copy[32] = {};
        int64_t left = (k1 - k0 - i * kStep) / 2;
        __builtin_memcpy(copy, codes + i * 32, size_t(left < 32 ? left : 32));
        __m256i a = step(load_bytes(copy), i, is_interleaved(first + i, x.columns / kStep));
        sum[0] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(a), one(s.scales + i * kBlocks, block_of_lane), sum[0]);
      }
    }
    y[n - n0] = add_lanes(_mm256_add_ps(sum[0], sum[1])) + added;
  }
}

template <ScaleType T>
IG_INLINE float scale_of(const void* p, int64_t i) {
  if constexpr (T == ScaleType::f32) {
    return static_cast<const float*>(p)[i];
  } else if constexpr (T == ScaleType::f16) {
    return get(static_cast<const f16*>(p) + i);
  } else {
    return get(static_cast<const bf16*>(p) + i);
  }
}

// Returns N scales of a weight row, four or eight, from index at on, times those of activation groups from g on. Adds
// bias * activation sum of these groups to added.
template <ScaleType T, int N>
IG_INLINE __m256 group_scales(const Weights& w, int64_t at, const Activations& x, int64_t g, __m256& added) {
  if constexpr (N == 8) {
    added = _mm256_fmadd_ps(load_scales<T>(w.biases, at), _mm256_loadu_ps(x.sums + g), added);
    return _mm256_mul_ps(load_scales<T>(w.scales, at), _mm256_loadu_ps(x.scales + g));
  } else {
    added = _mm256_add_ps(added, _mm256_zextps128_ps256(_mm_mul_ps(load_four<T>(w.biases, at),
                                                                   _mm_loadu_ps(x.sums + g))));
    return _mm256_castps128_ps256(_mm_mul_ps(load_four<T>(w.scales, at), _mm_loadu_ps(x.scales + g)));
  }
}

// nibble_rows for groups of kStep codes: a group is a block, so that scales are loaded directly instead of through
// RowScales.
template <bool Wide, ScaleType T>
static void group_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y);

template <bool Wide>
static void group_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  switch (w.scale_type) {
    case ScaleType::bf16:
      return group_rows<Wide, ScaleType::bf16>(w, x, n0, n1, y);
    case ScaleType::f16:
      return group_rows<Wide, ScaleType::f16>(w, x, n0, n1, y);
    default:
      return group_rows<Wide, ScaleType::f32>(w, x, n0, n1, y);
  }
}

// Returns the products of codes 16*from to 16*(from+Count) of a step with an activation row, as eight sums. Codes are
// bytes or have another width than 4; they are unpacked in order, 16 at a time.
template <bool Bytes, int Count>
IG_INLINE __m256i step_of_bytes(const uint8_t* p, const BitUnpacker& s, const __m256i* x, int from) {
  __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int i = from; i < from + Count; i++) {
    __m256i q = Bytes ? _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i * 16)))
                      : unpack_16_codes(p + i * 2 * s.lane, s);
    sum = add16(sum, q, load_bytes(x + i));
  }
  return sum;
}

// Row product of such codes: y[n-n0] = x . W[n] for n in [n0, n1). Block columns share an activation scale.
template <bool Bytes, int Block>
static void byte_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  const BitUnpacker unpacker = make_bit_unpacker(Bytes ? 2 : w.bits);
  constexpr int per = kStep / Block, vectors = Block / 16;
  const int bytes = kStep * w.bits / 8;
  auto data = static_cast<const __m256i*>(x.data);
  for (int64_t n = n0; n < n1; n++) {
    const uint8_t* row = w.codes + n * w.row_bytes();
    __m256 sum = _mm256_setzero_ps();
    float added = 0;
    for (int64_t k0 = 0; k0 < w.columns; k0 += kChunkColumns) {
      int64_t k1 = k0 + kChunkColumns < w.columns ? k0 + kChunkColumns : w.columns;
      RowScales s;
      combine_scales(w, x, n, k0, k1, s);
      added += s.added;
      for (int64_t k = k0; k < k1; k += kStep) {
        const uint8_t* p = row + k * w.bits / 8;
        prefetch(p + kPrefetchDistance);
        alignas(32) uint8_t copy[kStep + 32];
        // vector loads would read past the row
        if (k + kStep > w.columns || (k + 2 * kStep > w.columns && n + 1 == w.rows)) {
          int64_t left = (w.columns - k) * w.bits / 8;
          __builtin_memset(copy, 0, sizeof(copy));
          __builtin_memcpy(copy, p, size_t(left < bytes ? left : bytes));
          p = copy;
        }
        const __m256i* v = data + k / 16;
#pragma GCC unroll 2
        for (int b = 0; b < per; b++) {
          __m256i t = step_of_bytes<Bytes, vectors>(p, unpacker, v, b * vectors);
          sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(t), _mm256_broadcast_ss(s.scales + (k - k0) / Block + b), sum);
        }
      }
    }
    y[n - n0] = add_lanes(sum) + added;
  }
}

// Row product of e4m3 weights, in float32: it is bound by memory, so that integers gain nothing.
static void fp8_rows(const Weights& w, const float* x, int64_t n0, int64_t n1, float* y) {
  for (int64_t n = n0; n < n1; n++) {
    const uint8_t* row = w.codes + n * w.columns;
    __m256 sum = _mm256_setzero_ps();
    for (int64_t k0 = 0; k0 < w.columns; k0 += kChunkColumns) {
      int64_t k1 = k0 + kChunkColumns < w.columns ? k0 + kChunkColumns : w.columns;
      alignas(32) float scales[kChunkColumns / 32 + 8], biases[kChunkColumns / 32 + 8];
      chunk_scales<ScaleType::e8m0>(w, n, k0 / 32, (k1 - k0) / 32, scales, biases);
      for (int64_t k = k0; k < k1; k += 32) {
        prefetch(row + k + kPrefetchDistance);
        __m256 part = _mm256_setzero_ps();
#pragma GCC unroll 4
        for (int i = 0; i < 32; i += 8) {
          __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + k + i)));
          part = _mm256_fmadd_ps(e4m3_lanes(v), _mm256_loadu_ps(x + k + i), part);
        }
        sum = _mm256_fmadd_ps(part, _mm256_broadcast_ss(scales + (k - k0) / 32), sum);
      }
    }
    y[n - n0] = add_lanes(sum);
  }
}

template <bool Bytes>
static void byte_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  return x.layout.block == 32 ? byte_rows<Bytes, 32>(w, x, n0, n1, y) : byte_rows<Bytes, 64>(w, x, n0, n1, y);
}

template <bool Wide, bool FP4>
static void nibble_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  constexpr int kSmall = FP4 ? 16 : 32;
  return x.layout.block == kSmall ? nibble_rows<Wide, FP4, kSmall>(w, x, n0, n1, y)
                                  : nibble_rows<Wide, FP4, 2 * kSmall>(w, x, n0, n1, y);
}

static void row_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  if (w.format == Format::plain) {
    return plain_row_product(w, static_cast<const float*>(x.data), n0, n1, y);
  }
  if (w.format == Format::fp8) {
    return fp8_rows(w, static_cast<const float*>(x.data), n0, n1, y);
  }
  if (!x.layout.nibbles) {
    return w.bits == 8 ? byte_product<true>(w, x, n0, n1, y) : byte_product<false>(w, x, n0, n1, y);
  }
  bool wide = x.layout.mode == Mode::i16;
  if (w.format == Format::fp4) {
    return wide ? nibble_product<true, true>(w, x, n0, n1, y) : nibble_product<false, true>(w, x, n0, n1, y);
  }
  if (w.group == kStep) {
    return wide ? group_product<true>(w, x, n0, n1, y) : group_product<false>(w, x, n0, n1, y);
  }
  return wide ? nibble_product<true, false>(w, x, n0, n1, y) : nibble_product<false, false>(w, x, n0, n1, y);
}

}  // namespace ingot::cpu::INGOT_ISA
