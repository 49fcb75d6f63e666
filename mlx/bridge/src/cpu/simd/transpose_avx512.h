// Transposes of 32-bit elements with AVX-512.
#pragma once

#include <immintrin.h>

#include "cpu/simd/simd.h"

namespace ingot::cpu::INGOT_ISA {

// Transposes the 4 x 4 dwords in each quarter of four vectors.
IG_INLINE void transpose_4x4(__m512i* v) {
  const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
  const __m512i c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm512_unpacklo_epi64(a, c);
  v[1] = _mm512_unpackhi_epi64(a, c);
  v[2] = _mm512_unpacklo_epi64(b, d);
  v[3] = _mm512_unpackhi_epi64(b, d);
}

// Transposes the 4 x 4 quarters of vectors 0, 4, 8 and 12.
IG_INLINE void transpose_quarters(__m512i* v) {
  const __m512i a = _mm512_shuffle_i32x4(v[0], v[4], 0x44), b = _mm512_shuffle_i32x4(v[0], v[4], 0xee);
  const __m512i c = _mm512_shuffle_i32x4(v[8], v[12], 0x44), d = _mm512_shuffle_i32x4(v[8], v[12], 0xee);
  v[0] = _mm512_shuffle_i32x4(a, c, 0x88);
  v[4] = _mm512_shuffle_i32x4(a, c, 0xdd);
  v[8] = _mm512_shuffle_i32x4(b, d, 0x88);
  v[12] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

// Transposes 16 x 16 dwords.
IG_INLINE void transpose_16x16(__m512i* v) {
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    transpose_4x4(v + i);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    transpose_quarters(v + i);
  }
}

// Loads four dwords of each of sixteen rows, `apart` bytes apart, and transposes them: v[d] holds dword d of all rows.
IG_INLINE void load_transposed_16x4(const uint8_t* at, int64_t apart, __m512i* v) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {  // of rows i, 4+i, 8+i, 12+i
    auto four = [&](int q) __attribute__((always_inline)) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + (4 * q + i) * apart));
    };
    v[i] = _mm512_castsi128_si512(four(0));
    v[i] = _mm512_mask_broadcast_i32x4(v[i], 0x00f0, four(1));
    v[i] = _mm512_mask_broadcast_i32x4(v[i], 0x0f00, four(2));
    v[i] = _mm512_mask_broadcast_i32x4(v[i], 0xf000, four(3));
  }
  transpose_4x4(v);
}

// load_transposed_16x4 for eight dwords.
IG_INLINE void load_transposed_16x8(const uint8_t* at, int64_t apart, __m512i* v) {
  load_transposed_16x4(at, apart, v);
  load_transposed_16x4(at + 16, apart, v + 4);
}

}  // namespace ingot::cpu::INGOT_ISA
