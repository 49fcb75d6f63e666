// Unpacking of 2-, 3-, 5- and 6-bit codes with AVX2 for small-batch and tile products: eight weight rows at a time,
// transposed so that lanes are weight rows.
#pragma once

#include <immintrin.h>

#include "cpu/simd/transpose_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Unpacks a step of codes of eight weight rows, which are `apart` bytes apart, in the order of Layout::pairs: to int16
// if Wide, otherwise to bytes. Dword i of all rows goes to to + i * distance.
//
// A shuffle moves the bytes with two codes to each word, and words whose codes are eight columns and therefore whole
// bytes apart to a dword. Once transposed, all codes of a vector begin at the same bit, so that shifts extract them.
template <int Bits, bool Wide>
static void unpack_pairs(const uint8_t* at, int64_t apart, int32_t* to, int64_t distance) {
  alignas(16) uint8_t bytes[16];
  for (int i = 0; i < 8; i++) {
    const int pair = i / 2 + i % 2 * 4;
    bytes[2 * i] = uint8_t(pair * 2 * Bits / 8);
    bytes[2 * i + 1] = uint8_t(pair * 2 * Bits / 8 + 1);
  }
  const __m256i order = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
  auto put = [&](int i, __m256i v) __attribute__((always_inline)) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + i * distance), v);
  };
#pragma GCC unroll 4
  for (int h = 0; h < 4; h++) {  // 16 columns each
    __m256i v[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
      auto row = [&](int r) __attribute__((always_inline)) {
        auto p = reinterpret_cast<const __m128i*>(at + r * apart + h * 2 * Bits);
        __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128(p));
        IG_KEEP(both);  // a load with an insertion would take twice as long
        return both;
      };
      v[r] = _mm256_shuffle_epi8(_mm256_blend_epi32(row(r), row(r + 4), 0xf0), order);
    }
    transpose_4x4(v);
#pragma GCC unroll 4
    for (int d = 0; d < 4; d++) {
      constexpr int kMask = (1 << Bits) - 1;
      const int from = 2 * d * Bits % 8;  // the bit of the first code
      const __m256i low = _mm256_and_si256(_mm256_srli_epi16(v[d], from), _mm256_set1_epi16(kMask));
      if constexpr (Wide) {
        const __m256i high = _mm256_srli_epi16(v[d], from + Bits);
        put(h * 8 + 2 * d, low);
        put(h * 8 + 2 * d + 1, from + 2 * Bits == 16 ? high : _mm256_and_si256(high, _mm256_set1_epi16(kMask)));
      } else {
        const int up = 8 - Bits - from;
        const __m256i high = up < 0 ? _mm256_srli_epi16(v[d], -up) : _mm256_slli_epi16(v[d], up);
        put(h * 4 + d, _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi16(kMask << 8))));
      }
    }
  }
}

// Calls unpack_pairs for the width of the codes.
template <bool Wide>
static void unpack_any_pairs(int bits, const uint8_t* at, int64_t apart, int32_t* to, int64_t distance) {
  switch (bits) {
    case 2:
      return unpack_pairs<2, Wide>(at, apart, to, distance);
    case 3:
      return unpack_pairs<3, Wide>(at, apart, to, distance);
    case 5:
      return unpack_pairs<5, Wide>(at, apart, to, distance);
    default:
      return unpack_pairs<6, Wide>(at, apart, to, distance);
  }
}

}  // namespace ingot::cpu::INGOT_ISA
