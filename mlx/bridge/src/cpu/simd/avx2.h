// AVX2, FMA and F16C; see cpu/simd/simd.h.
#pragma once

#include <immintrin.h>

namespace ingot::cpu::INGOT_ISA {

using F = __m256;
constexpr int kLanes = 8;

IG_INLINE F set(float v) { return _mm256_set1_ps(v); }
IG_INLINE F load(const float* p) { return _mm256_loadu_ps(p); }
IG_INLINE F load(const bf16* p) {
  __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
IG_INLINE F load(const f16* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }

IG_INLINE void store(float* p, F v) { _mm256_storeu_ps(p, v); }
IG_INLINE void store(bf16* p, F v) {
  __m256i bits = _mm256_castps_si256(v);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i even = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  even = _mm256_blendv_epi8(even, _mm256_set1_epi32(0x7fc0), nan);
  __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(even, even), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
}
IG_INLINE void store(f16* p, F v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

IG_INLINE F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
IG_INLINE F max(F a, F b) { return _mm256_max_ps(a, b); }
IG_INLINE F min(F a, F b) { return _mm256_min_ps(a, b); }
IG_INLINE F abs(F v) { return _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff))); }
IG_INLINE F sqrt(F v) { return _mm256_sqrt_ps(v); }
IG_INLINE F round(F v) { return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// Returns a in the lanes where the comparison m is true, otherwise b.
template <class Mask>
IG_INLINE F select(Mask m, F a, F b) { return _mm256_blendv_ps(b, a, (__m256)m); }
IG_INLINE F copy_sign(F magnitude, F sign) {
  __m256 bit = _mm256_set1_ps(-0.0f);
  return _mm256_or_ps(_mm256_andnot_ps(bit, magnitude), _mm256_and_ps(bit, sign));
}
// 2^n for integers n from -126 to 127.
IG_INLINE F power_of_two(F n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}

IG_INLINE float sum(F v) {
  __m128 a = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  a = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}
IG_INLINE float highest(F v) {
  __m128 a = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  a = _mm_max_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)));
}

// Converts bytes to float32; load_halves converts their low and high nibbles.
IG_INLINE F load(const uint8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
IG_INLINE void load_halves(const uint8_t* p, F& low, F& high) {
  __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  low = _mm256_cvtepi32_ps(_mm256_and_si256(v, _mm256_set1_epi32(15)));
  high = _mm256_cvtepi32_ps(_mm256_srli_epi32(v, 4));
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
  __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  even = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
  odd = _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(int(0xffff0000))));
}

// Returns the sums of the lanes of kLanes vectors.
IG_INLINE F sums(const F* v) {
  F a = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
  F b = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
  return _mm256_permute2f128_ps(a, b, 0x20) + _mm256_permute2f128_ps(a, b, 0x31);
}

}  // namespace ingot::cpu::INGOT_ISA
