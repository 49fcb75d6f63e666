// Packing of activations on x86, as integers or bfloat16, one panel at a time; see Activations in matmul.h for the
// layout.
#pragma once

#include <immintrin.h>

#include "cpu/matmul/peaks_x86.h"
#include "cpu/matmul/sums_x86.h"
#include "cpu/matmul/stream/vector_x86.h"

namespace ingot::cpu::INGOT_ISA {

// Quantizes sixteen columns to int16: eight in each half of the vector or, if apart, four and the four that are eight
// columns further.
IG_INLINE __m256i quantize16(const float* x, __m256 inverse, bool apart) {
  __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
  __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), inverse));
  const __m256i q = _mm256_packs_epi32(a, b);
  return apart ? q : _mm256_permute4x64_epi64(q, 0xd8);
}

// Returns the byte shuffle that puts columns in the order of the layout, which is the one in which codes are unpacked.
template <Integers Kind>
IG_INLINE __m128i order_of(const Layout& l) {
  if (!l.nibbles && !l.pairs) {
    return _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
  if (Kind == Integers::words || l.pairs) {  // words 0 4 1 5 2 6 3 7
    return _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
  }
  if (Kind == Integers::bytes) {  // 0 2 4 6 1 3 5 7, in both halves
    return _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
  }
  return _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
}

// Splits 16 int16: each eight become eight high bytes, then eight low bytes.
IG_INLINE __m256i split(__m256i v) {
  __m256i lower = _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8);
  return _mm256_packs_epi16(_mm256_srai_epi16(_mm256_sub_epi16(v, lower), 8), lower);
}

// Quantizes one step of a row to 16 dwords of int8, or else 32 dwords, with columns in the order of the layout. inverse
// has the inverse scale of each block.
template <Integers Kind>
IG_INLINE void quantize_step(const float* x, const Layout& l, const float* inverse, int32_t* to) {
  const __m256i order = _mm256_broadcastsi128_si256(order_of<Kind>(l));
  const int shift = __builtin_ctz(unsigned(l.block));
  const bool apart = Kind == Integers::words && l.pairs;
#pragma GCC unroll 2
  for (int i = 0; i < kStep; i += 32) {
    const __m256 first = _mm256_set1_ps(inverse[i >> shift]), second = _mm256_set1_ps(inverse[(i + 16) >> shift]);
    __m256i a = quantize16(x + i, first, apart), b = quantize16(x + i + 16, second, apart);
    if (Kind == Integers::bytes) {
      __m256i q = _mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0xd8);
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + i / 4), _mm256_shuffle_epi8(q, order));
      continue;
    }
    a = _mm256_shuffle_epi8(a, order);
    b = _mm256_shuffle_epi8(b, order);
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + i / 2), Kind == Integers::halves ? split(a) : a);
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + i / 2 + 8), Kind == Integers::halves ? split(b) : b);
  }
}

// Interleaves count dwords of n rows: out is [count][n]. The rows are Apart dwords apart; dwords has room for
// kMaxPanelRows.
template <int Apart>
IG_INLINE void interleave(const int32_t* dwords, int count, int n, int32_t* out) {
  if (n == 1) {
    __builtin_memcpy(out, dwords, size_t(count) * sizeof(int32_t));
    return;
  }
#if defined(__AVX512F__)
  if (n != 4) {
    const __mmask8 mask = __mmask8((1 << n) - 1);
    for (int i = 0; i < count; i += 8) {
      __m256i v[8];
#pragma GCC unroll 8
      for (int r = 0; r < 8; r++) {  // rows past n are not stored
        v[r] = _mm256_load_si256(reinterpret_cast<const __m256i*>(dwords + r * Apart + i));
      }
      transpose(v);
#pragma GCC unroll 8
      for (int j = 0; j < 8; j++) {
        _mm256_mask_storeu_epi32(out + (i + j) * n, mask, v[j]);
      }
    }
    return;
  }
#else
  if (n != 4) {
    for (int i = 0; i < count; i++) {
      for (int r = 0; r < n; r++) {
        out[i * n + r] = dwords[r * Apart + i];
      }
    }
    return;
  }
#endif
  for (int i = 0; i < count; i += 8) {
    __m256i v[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
      v[r] = _mm256_load_si256(reinterpret_cast<const __m256i*>(dwords + r * Apart + i));
    }
    transpose_4x4(v);
    auto to = reinterpret_cast<__m256i*>(out + i * 4);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(v[0], v[1], 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(v[2], v[3], 0x20));
    _mm256_storeu_si256(to + 2, _mm256_permute2x128_si256(v[0], v[1], 0x31));
    _mm256_storeu_si256(to + 3, _mm256_permute2x128_si256(v[2], v[3], 0x31));
  }
}

// Reorders 16 dwords: the even ones, then the odd ones, `distance` dwords further.
IG_INLINE void gather_evens(const int32_t* dwords, int64_t distance, int32_t* out) {
  auto v = reinterpret_cast<const __m256*>(dwords);
  auto put = [&](int32_t* to, __m256 q) __attribute__((always_inline)) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(_mm256_castps_si256(q), 0xd8));
  };
  put(out, _mm256_shuffle_ps(v[0], v[1], 0x88));
  put(out + distance, _mm256_shuffle_ps(v[0], v[1], 0xdd));
}

// Reorders a step of a row for row products of 4-bit codes. A dword of codes has eight columns, and a vector of
// unpacked codes holds the same nibbles of eight dwords. Vector j of out therefore has dword j of each eight columns.
// The vectors are `distance` dwords apart.
IG_INLINE void gather_nibbles(const int32_t* dwords, bool bytes, int64_t distance, int32_t* out) {
  if (bytes) {  // two dwords for each eight columns
    return gather_evens(dwords, distance, out);
  }
  auto to = [&](int j) { return reinterpret_cast<__m256i*>(out + j * distance); };
  auto from = reinterpret_cast<const __m128i*>(dwords);
  __m256i v[4];
#pragma GCC unroll 4
  for (int d = 0; d < 4; d++) {
    const __m128i low = _mm_loadu_si128(from + d);
    v[d] = _mm256_inserti128_si256(_mm256_castsi128_si256(low), _mm_loadu_si128(from + d + 4), 1);
  }
  transpose_4x4(v);
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    _mm256_storeu_si256(to(j), v[j]);
  }
}

// Reorders a step of a row for row products of other codes: 64 high bytes, then 64 low bytes.
IG_INLINE void gather_halves(const int32_t* dwords, int32_t* out) {
  auto from = reinterpret_cast<const __m256i*>(dwords);
  auto to = reinterpret_cast<__m256i*>(out);
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {  // each eight bytes of a vector are high or low ones, in turn
    __m256i high = _mm256_unpacklo_epi64(from[2 * i], from[2 * i + 1]);
    __m256i low = _mm256_unpackhi_epi64(from[2 * i], from[2 * i + 1]);
    _mm256_storeu_si256(to + i, _mm256_permute4x64_epi64(high, 0xd8));
    _mm256_storeu_si256(to + 2 + i, _mm256_permute4x64_epi64(low, 0xd8));
  }
}

// Reorders a step of a row for row products of bytes: of each 32 columns, 16 even ones, then 16 odd ones.
IG_INLINE void gather_bytes(const int32_t* dwords, int32_t* out) {
  auto from = reinterpret_cast<const __m256i*>(dwords);
  auto to = reinterpret_cast<__m256i*>(out);
#pragma GCC unroll 2
  for (int i = 0; i < 4; i += 2) {
    auto put = [&](int j, __m256i a, __m256i b) __attribute__((always_inline)) {
      _mm256_storeu_si256(to + i + j, _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8));
    };
    put(0, _mm256_srai_epi32(_mm256_slli_epi32(from[i], 16), 16),
        _mm256_srai_epi32(_mm256_slli_epi32(from[i + 1], 16), 16));
    put(1, _mm256_srai_epi32(from[i], 16), _mm256_srai_epi32(from[i + 1], 16));
  }
}

// Reorders 64 bytes of a step of a row for row products of 2-bit codes: vector j of to has columns 4i + j. The vectors
// are `distance` bytes apart.
IG_INLINE void gather_quarters(const void* bytes, int64_t distance, uint8_t* to) {
  const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  __m128i v[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    v[i] = _mm_shuffle_epi8(static_cast<const __m128i*>(bytes)[i], order);
  }
  const __m128i a = _mm_unpacklo_epi32(v[0], v[1]), b = _mm_unpacklo_epi32(v[2], v[3]);
  const __m128i c = _mm_unpackhi_epi32(v[0], v[1]), d = _mm_unpackhi_epi32(v[2], v[3]);
  auto put = [&](int j, __m128i q) __attribute__((always_inline)) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + j * distance), q);
  };
  put(0, _mm_unpacklo_epi64(a, b));
  put(1, _mm_unpackhi_epi64(a, b));
  put(2, _mm_unpacklo_epi64(c, d));
  put(3, _mm_unpackhi_epi64(c, d));
}

// Returns the Winograd correction term of n dwords: the sum of x0 . x1 over consecutive dwords x0 and x1 of int16
// pairs.
IG_INLINE int32_t winograd_correction(const int32_t* dwords, int n) {
  __m256i sum = _mm256_setzero_si256();
  for (int i = 0; i < n; i += 8) {
    __m256i v = _mm256_load_si256(reinterpret_cast<const __m256i*>(dwords + i));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(v, _mm256_shuffle_epi32(v, 0xb1)));
  }
  // lanes 2i and 2i+1 are equal
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_unpackhi_epi64(s, s)));
}

// Returns the sum of n dwords of int16 or, if Bytes, int8. n is a multiple of four.
template <bool Bytes>
IG_INLINE int32_t sum_of_integers(const int32_t* dwords, int n) {
  const __m128i ones = _mm_set1_epi16(1);
  __m128i sum = _mm_setzero_si128();
  for (int i = 0; i < n; i += 4) {
    __m128i v = _mm_load_si128(reinterpret_cast<const __m128i*>(dwords + i));
    sum = _mm_add_epi32(sum, _mm_madd_epi16(Bytes ? _mm_maddubs_epi16(_mm_set1_epi8(1), v) : v, ones));
  }
  sum = _mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum));
  return _mm_cvtsi128_si32(sum) + _mm_extract_epi32(sum, 1);
}

// Returns the correction of a block of integers, see Activations.
template <Integers Kind>
IG_INLINE int32_t block_correction(const int32_t* dwords, const Layout& l) {
  const int n = l.block / (Kind == Integers::bytes ? 4 : 2);
  const auto zero = uint32_t(l.zero ? l.zero * sum_of_integers<Kind == Integers::bytes>(dwords, n) : 0);
  return int32_t(0u - zero - uint32_t(l.winograd ? winograd_correction(dwords, n) : 0));
}

// Stores the quantized step of n rows that begins at column k, in the order of the layout. The rows are kStep / 2
// dwords apart.
template <Integers Kind>
IG_INLINE void store_step(const Activations& a, const int32_t* dwords, int64_t m, int64_t k, int n) {
  constexpr int kPer = Kind == Integers::bytes ? 4 : 2;  // columns per dword
  constexpr int kCount = kStep / kPer;
  const Layout& l = a.layout;
  int32_t* out = static_cast<int32_t*>(a.data) + packed_offset(a, m, k, n) / kPer;
  if (l.quarters) {
    // The activations of a vector of codes are four vectors, of high bytes and then of low bytes if they are halves.
    const int64_t from = k / kQuarterColumns * kQuarterColumns;
    const int64_t distance = (a.columns - from < kQuarterColumns ? a.columns - from : kQuarterColumns) / 4;
    auto to = static_cast<uint8_t*>(a.data) + packed_offset(a, m, from, n) * 4 / kPer + (k - from) / 4;
    alignas(32) int32_t bytes[kStep / 2];
    if (Kind == Integers::halves) {
      gather_halves(dwords, bytes);
      gather_quarters(bytes + kStep / 4, distance, to + 4 * distance);
    }
    gather_quarters(Kind == Integers::halves ? bytes : dwords, distance, to);
  } else if (Kind == Integers::halves && !l.nibbles) {
    gather_halves(dwords, out);
  } else if (Kind == Integers::words && l.vector && !l.nibbles) {
    if (l.pairs) {
      gather_evens(dwords, 8, out);
      gather_evens(dwords + kStep / 4, 8, out + kStep / 4);
    } else {
      gather_bytes(dwords, out);
    }
  } else if (l.vector && l.nibbles) {
    const int64_t step = k / kStep;
    const bool pair = is_interleaved(step, a.columns / kStep);
    gather_nibbles(dwords, Kind == Integers::bytes, pair ? 16 : 8, out + (pair ? step % 2 * (8 - kCount) : 0));
  } else {
    interleave<kStep / 2>(dwords, kCount, n, out);
  }
}

// Stores the scales and sums of count blocks of a row, which are `apart` from each other, and returns the inverse
// scales. x is zero up to a multiple of eight blocks.
template <int Block>
IG_INLINE void scale_blocks(const float* x, int count, float max_code, bool keeps_nan, int64_t apart, float* scales,
                            float* sums, float* inverses) {
  for (int b = 0; b < count; b += 8) {
    __m256 peak, sum;
    peaks_and_sums<Block>(x + b * Block, peak, sum);
    const BlockScales of(peak, sum, max_code, keeps_nan);
    _mm256_store_ps(inverses + b, of.inverses);
    alignas(32) float all[2][8];
    _mm256_store_ps(all[0], of.scales);
    _mm256_store_ps(all[1], of.sums);
    for (int i = 0; i < 8 && b + i < count; i++) {
      scales[(b + i) * apart] = all[0][i];
      sums[(b + i) * apart] = all[1][i];
    }
  }
}

template <Integers Kind>
static void pack_integers(const Activations& a, const void* const* rows, Type type, int64_t columns, int64_t m, int n) {
  constexpr int kPer = Kind == Integers::bytes ? 4 : 2;  // columns per dword
  const Layout& l = a.layout;
  // Winograd's inner product adds codes, at most 255, to int16 activations, which must not overflow.
  const float max_code = Kind == Integers::halves ? 127 * 256 + 127
                                                  : Kind == Integers::bytes ? 127 : l.winograd ? 32767 - 255 : 32767;
  const int block = l.block, blocks = kStep / block;
  const int64_t stride = a.columns / block, apart = l.tiled() ? n : 1;
  for (int64_t from = 0; from < a.columns; from += kDepth) {
    const int steps = int(a.columns - from < kDepth ? a.columns - from : kDepth) / kStep;
    alignas(32) int32_t dwords[kDepth / kStep][kMaxPanelRows][kStep / 2];
    for (int r = 0; r < n; r++) {
      alignas(64) float copy[kDepth];
      alignas(32) float inverses[kDepth / 16];
      const float* x = columns_of<kDepth>(rows[r], type, from, columns, copy);
      const int64_t first = from / kStep * blocks;
      const int64_t at = l.tiled() ? m * stride + first * n + r : (m + r) * stride + first;
      with_block(block, [&]<int Block>() __attribute__((always_inline)) {
        scale_blocks<Block>(x, steps * blocks, max_code, l.zero != 0, apart, a.scales + at, a.sums + at, inverses);
      });
      for (int s = 0; s < steps; s++) {
        quantize_step<Kind>(x + s * kStep, l, inverses + s * blocks, dwords[s][r]);
      }
      for (int b = 0; (l.winograd || l.zero) && b < steps * blocks; b++) {
        const int32_t* of = dwords[b / blocks][r] + b % blocks * block / kPer;
        a.corrections[at + b * apart] = block_correction<Kind>(of, l);
      }
    }
    for (int s = 0; s < steps; s++) {
      store_step<Kind>(a, dwords[s][0], m, from + s * kStep, n);
    }
  }
}

// pack_floats with shuffles in place of single elements.
static void pack_floats_x86(const Activations& a, const void* const* rows, Type type, int64_t columns, int64_t m,
                            int n) {
  for (int64_t k = 0; k < a.columns; k += kStep) {
    alignas(64) float floats[kMaxPanelRows][kStep];
    for (int r = 0; r < n; r++) {
      const float* x = columns_of<kStep>(rows[r], type, k, columns, floats[r]);
      if (x != floats[r]) {
        __builtin_memcpy(floats[r], x, sizeof(floats[r]));
      }
    }
    interleave<kStep>(reinterpret_cast<const int32_t*>(floats), kStep, n,
                      static_cast<int32_t*>(a.data) + packed_offset(a, m, k, n));
  }
}

// Packs a row of float32 for row products of e4m3 weights: of each 32 columns, vector j has columns 4i + j.
static void pack_quarter_floats(const Activations& a, const void* row, Type type, int64_t columns) {
  for (int64_t k = 0; k < a.columns; k += kStep) {
    alignas(64) float copy[kStep];
    auto x = reinterpret_cast<const int32_t*>(columns_of<kStep>(row, type, k, columns, copy));
    auto to = static_cast<int32_t*>(a.data) + k;
    gather_nibbles(x, false, 8, to);
    gather_nibbles(x + kStep / 2, false, 8, to + kStep / 2);
  }
}

// Packs bfloat16 activations unchanged, two columns per dword.
static void pack_bf16(const Activations& a, const void* const* rows, int64_t columns, int64_t m, int n) {
  for (int64_t k = 0; k < a.columns; k += kStep) {
    alignas(32) int32_t dwords[kMaxPanelRows][kStep / 2];
    const int64_t count = columns - k < kStep ? columns - k : kStep;
    for (int r = 0; r < n; r++) {
      __builtin_memcpy(dwords[r], static_cast<const bf16*>(rows[r]) + k, size_t(count) * sizeof(bf16));
      __builtin_memset(reinterpret_cast<bf16*>(dwords[r]) + count, 0, size_t(kStep - count) * sizeof(bf16));
    }
    interleave<kStep / 2>(dwords[0], kStep / 2, n, static_cast<int32_t*>(a.data) + packed_offset(a, m, k, n) / 2);
  }
}

static void pack(const Activations& a, const void* const* rows, Type type, int64_t columns, int64_t m, int n) {
  const Layout& l = a.layout;
  if (l.mode == Mode::f32) {
    l.quarters ? pack_quarter_floats(a, rows[0], type, columns) : pack_floats_x86(a, rows, type, columns, m, n);
  } else if (l.mode == Mode::bf16) {
    pack_bf16(a, rows, columns, m, n);
  } else if (l.mode == Mode::i8) {
    pack_integers<Integers::bytes>(a, rows, type, columns, m, n);
  } else if (l.vector && (kSplitBytes || l.quarters || (l.nibbles && a.rows == 1))) {
    pack_integers<Integers::halves>(a, rows, type, columns, m, n);
  } else {
    pack_integers<Integers::words>(a, rows, type, columns, m, n);
  }
}

}  // namespace ingot::cpu::INGOT_ISA
