// Transposes of 32-bit elements with AVX2, and helpers that unpacking and scales share.
#pragma once

#include <immintrin.h>

#include "cpu/simd/simd.h"

namespace ingot::cpu::INGOT_ISA {

// Transposes the 4 x 4 dwords in each 128-bit half of four vectors.
IG_INLINE void transpose_4x4(__m256i* v) {
  __m256i a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpackhi_epi32(v[0], v[1]);
  __m256i c = _mm256_unpacklo_epi32(v[2], v[3]), d = _mm256_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm256_unpacklo_epi64(a, c);
  v[1] = _mm256_unpackhi_epi64(a, c);
  v[2] = _mm256_unpacklo_epi64(b, d);
  v[3] = _mm256_unpackhi_epi64(b, d);
}

// Transposes the 2 x 2 halves of vectors 0 and 4.
IG_INLINE void transpose_halves(__m256i* v) {
  const __m256i a = v[0], b = v[4];
  v[0] = _mm256_permute2x128_si256(a, b, 0x20);
  v[4] = _mm256_permute2x128_si256(a, b, 0x31);
}

// Transposes 8 x 8 dwords.
IG_INLINE void transpose(__m256i* v) {
  transpose_4x4(v);
  transpose_4x4(v + 4);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    transpose_halves(v + i);
  }
}

// Loads eight dwords of each of eight rows, `apart` bytes apart, and transposes them: v[d] holds dword d of all rows.
// Rows r and r+4 share a vector from the start: this takes as many instructions as transposing whole vectors, and fewer
// of them depend on each other.
IG_INLINE void load_transposed_8x8(const uint8_t* at, int64_t apart, __m256i* v) {
#pragma GCC unroll 2
  for (int h = 0; h < 2; h++) {
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
      auto half = [&](int row) __attribute__((always_inline)) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + row * apart + 16 * h));
      };
      v[4 * h + r] = _mm256_inserti128_si256(_mm256_castsi128_si256(half(r)), half(r + 4), 1);
    }
    transpose_4x4(v + 4 * h);
  }
}

IG_INLINE __m256i load_bytes(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// Converts e4m3 in the low byte of each dword to float32.
IG_INLINE __m256 e4m3_lanes(__m256i v) {
  __m256i magnitude = _mm256_slli_epi32(_mm256_and_si256(v, _mm256_set1_epi32(0x7f)), 20);
  __m256i sign = _mm256_slli_epi32(_mm256_and_si256(v, _mm256_set1_epi32(0x80)), 24);
  __m256 value = _mm256_mul_ps(_mm256_castsi256_ps(magnitude), _mm256_set1_ps(0x1p120f));
  return _mm256_or_ps(value, _mm256_castsi256_ps(sign));
}

// Converts e4m3 to float32. Bits 20 to 27 of each dword, and its uppermost, are those of the code: in a float32 they
// are too small by a factor of 2^120.
IG_INLINE __m256 upper_e4m3(__m256i v) {
  const __m256i bits = _mm256_and_si256(v, _mm256_set1_epi32(int(0x87f00000)));
  return _mm256_mul_ps(_mm256_castsi256_ps(bits), _mm256_set1_ps(0x1p120f));
}

}  // namespace ingot::cpu::INGOT_ISA
