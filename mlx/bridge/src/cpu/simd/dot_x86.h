// Integer dot products on x86: unsigned codes times int16 or int8 activations.
#pragma once

#include <immintrin.h>

#include "cpu/simd/simd.h"

namespace ingot::cpu::INGOT_ISA {

// I is the widest integer vector. dot16 adds the sum of two int16 products to each 32-bit lane of sum. dot8 adds the
// sum of four products of unsigned bytes w and int8 x; with AVX2, it adds the sum of two such products to each 16-bit
// lane. add16 and add8 are dot16 and dot8 with 256-bit vectors.
#if defined(__AVX512VNNI__)
using I = __m512i;
IG_INLINE I zeros() { return _mm512_setzero_si512(); }
IG_INLINE I load_lanes(const void* p) { return _mm512_loadu_si512(p); }
IG_INLINE void store_lanes(void* p, I v) { _mm512_storeu_si512(p, v); }
IG_INLINE I add_dwords(I a, I b) { return _mm512_add_epi32(a, b); }
IG_INLINE I subtract(I a, I b) { return _mm512_sub_epi32(a, b); }
IG_INLINE I add_words(I a, I b) { return _mm512_add_epi16(a, b); }
IG_INLINE I repeat(int32_t v) { return _mm512_set1_epi32(v); }
IG_INLINE I dot16(I sum, I w, I x) { return _mm512_dpwssd_epi32(sum, w, x); }
IG_INLINE I dot8(I sum, I w, I x) { return _mm512_dpbusd_epi32(sum, w, x); }
IG_INLINE __m256i add16(__m256i sum, __m256i w, __m256i x) { return _mm256_dpwssd_epi32(sum, w, x); }
IG_INLINE __m256i add8(__m256i sum, __m256i w, __m256i x) { return _mm256_dpbusd_epi32(sum, w, x); }
IG_INLINE F to_float(I v) { return _mm512_cvtepi32_ps(v); }
constexpr bool kSaturates = false;
// For row products of 4-bit codes, int16 activations are packed as high and low bytes, so that codes are unpacked to
// bytes only: x . codes = 256 * (high . codes) + (low . codes).
constexpr bool kSplitBytes = true;
constexpr int kQuarterRows = 1 << 30;  // see MatmulKernels::quarter_rows
// Two consecutive steps of such a row are interleaved, so that a 512-bit vector holds corresponding columns of both.
constexpr bool kInterleaveSteps = true;
#else
using I = __m256i;
IG_INLINE I zeros() { return _mm256_setzero_si256(); }
IG_INLINE I load_lanes(const void* p) { return _mm256_load_si256(static_cast<const I*>(p)); }
IG_INLINE void store_lanes(void* p, I v) { _mm256_store_si256(static_cast<I*>(p), v); }
IG_INLINE I add_dwords(I a, I b) { return _mm256_add_epi32(a, b); }
IG_INLINE I subtract(I a, I b) { return _mm256_sub_epi32(a, b); }
IG_INLINE I add_words(I a, I b) { return _mm256_add_epi16(a, b); }
IG_INLINE I repeat(int32_t v) { return _mm256_set1_epi32(v); }
IG_INLINE I add16(I sum, I w, I x) { return _mm256_add_epi32(sum, _mm256_madd_epi16(w, x)); }
// Adds to 16-bit lanes. The caller widens the sums before they overflow.
IG_INLINE I add8(I sum, I w, I x) { return _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x)); }
IG_INLINE I dot16(I sum, I w, I x) { return add16(sum, w, x); }
IG_INLINE I dot8(I sum, I w, I x) { return add8(sum, w, x); }
IG_INLINE I widened(I sum, I narrow) { return _mm256_add_epi32(sum, _mm256_madd_epi16(narrow, _mm256_set1_epi16(1))); }
IG_INLINE F to_float(I v) { return _mm256_cvtepi32_ps(v); }
constexpr bool kSaturates = true;
constexpr bool kSplitBytes = false, kInterleaveSteps = false;
constexpr int kQuarterRows = 1;
#endif
constexpr int kQuarterColumns = int(sizeof(I)) * 4;  // of a vector of 2-bit codes

}  // namespace ingot::cpu::INGOT_ISA
