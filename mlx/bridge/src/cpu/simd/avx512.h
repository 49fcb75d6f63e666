// AVX-512 F, BW, VL, DQ; see cpu/simd/simd.h.
#pragma once

#include <immintrin.h>

namespace ingot::cpu::INGOT_ISA {

using F = __m512;
constexpr int kLanes = 16;

IG_INLINE F set(float v) { return _mm512_set1_ps(v); }
IG_INLINE F load(const float* p) { return _mm512_loadu_ps(p); }
IG_INLINE F load(const bf16* p) {
  __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
IG_INLINE F load(const f16* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }

IG_INLINE void store(float* p, F v) { _mm512_storeu_ps(p, v); }
IG_INLINE void store(bf16* p, F v) {
  __m512i bits = _mm512_castps_si512(v);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i even = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  even = _mm512_mask_mov_epi32(even, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm512_set1_epi32(0x7fc0));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(even));
}
IG_INLINE void store(f16* p, F v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

IG_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
IG_INLINE F max(F a, F b) { return _mm512_max_ps(a, b); }
IG_INLINE F min(F a, F b) { return _mm512_min_ps(a, b); }
IG_INLINE F abs(F v) { return _mm512_abs_ps(v); }
IG_INLINE F sqrt(F v) { return _mm512_sqrt_ps(v); }
IG_INLINE F round(F v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
template <class Mask>
IG_INLINE F select(Mask m, F a, F b) { return _mm512_mask_mov_ps(b, _mm512_movepi32_mask((__m512i)m), a); }
IG_INLINE F copy_sign(F magnitude, F sign) {
  __m512 bit = _mm512_set1_ps(-0.0f);
  return _mm512_or_ps(_mm512_andnot_ps(bit, magnitude), _mm512_and_ps(bit, sign));
}
IG_INLINE F power_of_two(F n) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
}

IG_INLINE float sum(F v) {
  __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 a = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  a = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}
IG_INLINE float highest(F v) {
  __m256 h = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 a = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  a = _mm_max_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)));
}

// Converts bytes to float32; load_halves converts their low and high nibbles.
IG_INLINE F load(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
IG_INLINE void load_halves(const uint8_t* p, F& low, F& high) {
  __m512i v = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  low = _mm512_cvtepi32_ps(_mm512_and_si512(v, _mm512_set1_epi32(15)));
  high = _mm512_cvtepi32_ps(_mm512_srli_epi32(v, 4));
}

IG_INLINE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

// Loads 2*kLanes elements: the first and the second half. For bf16 it loads the even and the odd elements, which needs
// no shuffle.
template <class T>
IG_INLINE void load_two(const T* p, F& a, F& b) {
  a = load(p);
  b = load(p + kLanes);
}
IG_INLINE void load_two(const bf16* p, F& even, F& odd) {
  __m512i bits = _mm512_loadu_si512(p);
  even = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  odd = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(int(0xffff0000))));
}

// Returns the sums of the lanes of kLanes vectors.
IG_INLINE F sums(const F* v) {
  __m256 halves[4];
  for (int i = 0; i < 4; i++) {
    __m256 pairs[2];
    for (int j = 0; j < 2; j++) {
      F a = v[4 * i + 2 * j], b = v[4 * i + 2 * j + 1];
      pairs[j] = _mm256_hadd_ps(_mm512_castps512_ps256(a) + _mm512_extractf32x8_ps(a, 1),
                                _mm512_castps512_ps256(b) + _mm512_extractf32x8_ps(b, 1));
    }
    halves[i] = _mm256_hadd_ps(pairs[0], pairs[1]);
  }
  __m256 low = _mm256_permute2f128_ps(halves[0], halves[1], 0x20) + _mm256_permute2f128_ps(halves[0], halves[1], 0x31);
  __m256 high = _mm256_permute2f128_ps(halves[2], halves[3], 0x20) + _mm256_permute2f128_ps(halves[2], halves[3], 0x31);
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

}  // namespace ingot::cpu::INGOT_ISA
