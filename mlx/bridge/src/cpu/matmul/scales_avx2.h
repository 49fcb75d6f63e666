// Scales and biases of eight weight rows at a time with AVX2, transposed so that lanes are weight rows.
#pragma once

#include "cpu/matmul/kernels.h"
#include "cpu/simd/transpose_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Scales and biases of eight weight rows: [block of columns][8].
struct Scales8 {
  alignas(32) float scales[kDepth / 16 * 8];
  alignas(32) float biases[kDepth / 16 * 8];
};

// Loads eight scales or biases from index at on, as float32.
template <ScaleType T>
IG_INLINE __m256 load_scales(const void* p, int64_t at) {
  if constexpr (T == ScaleType::f32) {
    return _mm256_loadu_ps(static_cast<const float*>(p) + at);
  } else if constexpr (T == ScaleType::f16) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(static_cast<const f16*>(p) + at)));
  } else if constexpr (T == ScaleType::bf16) {
    __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(static_cast<const bf16*>(p) + at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
  } else {
    const __m128i bytes = _mm_loadl_epi64(
        reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(p) + at));
    if constexpr (T == ScaleType::e4m3) {
      return upper_e4m3(_mm256_slli_epi32(_mm256_cvtepi8_epi32(bytes), 20));
    }
    const __m256i v = _mm256_cvtepu8_epi32(bytes);
    // 2^-127, of code 0, is subnormal
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_slli_epi32(v, 23), _mm256_set1_epi32(0x00400000)));
  }
}

// eight_groups for bfloat16, which is the upper half of a float32. Scales occupy the lower 128 bits of the vectors and
// biases the upper, so that one transpose serves both.
IG_INLINE void bf16_groups(const Weights& w, int64_t n0, int64_t g, __m256i* scales, __m256i* biases) {
  auto at = [&](const void* p, int64_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(static_cast<const bf16*>(p) + i));
  };
  __m256i v[8], a[8], b[8];
#pragma GCC unroll 8
  for (int r = 0; r < 8; r++) {
    int64_t i = (n0 + r < w.rows ? n0 + r : w.rows - 1) * w.groups() + g;
    v[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(at(w.scales, i)), at(w.biases, i), 1);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {  // groups 0-3 and 4-7 of two rows
    a[i] = _mm256_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
    a[i + 4] = _mm256_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {  // two groups of four rows
    b[2 * i] = _mm256_unpacklo_epi32(a[2 * i], a[2 * i + 1]);
    b[2 * i + 1] = _mm256_unpackhi_epi32(a[2 * i], a[2 * i + 1]);
  }
  const __m256i zero = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {  // group i of eight rows
    const int j = i / 4 * 4 + i % 4 / 2;
    __m256i c = i % 2 ? _mm256_unpackhi_epi64(b[j], b[j + 2]) : _mm256_unpacklo_epi64(b[j], b[j + 2]);
    __m256i low = _mm256_unpacklo_epi16(zero, c), high = _mm256_unpackhi_epi16(zero, c);
    scales[i] = _mm256_permute2x128_si256(low, high, 0x20);
    biases[i] = _mm256_permute2x128_si256(low, high, 0x31);
  }
}

// Reads groups g to g+7 of weight rows n0 to n0+7 as scales and biases of [group][8]. Rows past the matrix repeat the
// last one.
template <ScaleType T>
IG_INLINE void eight_groups(const Weights& w, int64_t n0, int64_t g, __m256i* scales, __m256i* biases) {
  int64_t groups = w.groups();
#pragma GCC unroll 8
  for (int r = 0; r < 8; r++) {
    int64_t at = (n0 + r < w.rows ? n0 + r : w.rows - 1) * groups + g;
    scales[r] = _mm256_castps_si256(load_scales<T>(w.scales, at));
    if (w.biases) {
      biases[r] = _mm256_castps_si256(load_scales<T>(w.biases, at));
    }
  }
  transpose(scales);
  if (w.biases) {
    return transpose(biases);
  }
  const bool fp4 = w.format == Format::fp4;
  const __m256 factor = _mm256_set1_ps(fp4 ? 0.5f : 1), by = _mm256_set1_ps(fp4 ? -6 : float(-w.zero));
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    const __m256 s = _mm256_castsi256_ps(scales[i]);
    biases[i] = _mm256_castps_si256(_mm256_mul_ps(s, by));
    scales[i] = _mm256_castps_si256(_mm256_mul_ps(s, factor));
  }
}

// Calls eight_groups for the matrix's type of scales.
static void any_groups(const Weights& w, int64_t n0, int64_t g, __m256i* scales, __m256i* biases) {
  switch (w.scale_type) {
    case ScaleType::f32:
      return eight_groups<ScaleType::f32>(w, n0, g, scales, biases);
    case ScaleType::f16:
      return eight_groups<ScaleType::f16>(w, n0, g, scales, biases);
    case ScaleType::bf16:
      return w.biases ? bf16_groups(w, n0, g, scales, biases)
                      : eight_groups<ScaleType::bf16>(w, n0, g, scales, biases);
    case ScaleType::e8m0:
      return eight_groups<ScaleType::e8m0>(w, n0, g, scales, biases);
    case ScaleType::e4m3:
      return eight_groups<ScaleType::e4m3>(w, n0, g, scales, biases);
  }
}

// any_groups for n < 8 groups at the end of the matrix, where vector loads would read past it: reads from a padded
// copy.
static void last_groups(const Weights& w, int64_t n0, int64_t g, int n, __m256i* scales, __m256i* biases) {
  const auto size = size_t(w.scale_bytes());
  alignas(32) uint8_t copies[2][8 * 8 * 4] = {};
  Weights near = w;
  near.rows = 8;
  near.columns = 8 * w.group;
  near.scales = copies[0];
  near.biases = w.biases ? copies[1] : nullptr;
  for (int r = 0; r < 8; r++) {
    const size_t at = size_t((n0 + r < w.rows ? n0 + r : w.rows - 1) * w.groups() + g) * size,
                 to = size_t(r) * 8 * size;
    __builtin_memcpy(copies[0] + to, static_cast<const uint8_t*>(w.scales) + at, size_t(n) * size);
    if (w.biases) {
      __builtin_memcpy(copies[1] + to, static_cast<const uint8_t*>(w.biases) + at, size_t(n) * size);
    }
  }
  any_groups(near, 0, 0, scales, biases);
}

// Fills out with the scales and biases of weight rows n0 to n0+7, one for each block of columns [k0, k0+columns).
// Columns past the matrix get zeros.
static void eight_scales(const Weights& w, int64_t n0, int64_t k0, int columns, int block, Scales8& out) {
  int shift = __builtin_ctz(unsigned(w.group)), per = w.group / block;  // a group has 2^shift codes and per blocks
  int64_t first = k0 >> shift, end = k0 + columns < w.columns ? k0 + columns : w.columns;
  int groups = int(((end - 1) >> shift) - first + 1);
  auto put = [&out](int b, __m256i s, __m256i o) __attribute__((always_inline)) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(out.scales + b * 8), s);
    _mm256_store_si256(reinterpret_cast<__m256i*>(out.biases + b * 8), o);
  };
  const int64_t last = n0 + 8 < w.rows ? n0 + 7 : w.rows - 1;
  for (int g = 0; g < groups; g += 8) {
    __m256i s[8], o[8];
    const int n = groups - g < 8 ? groups - g : 8;
    if (last * w.groups() + first + g + 8 <= w.rows * w.groups()) {
      any_groups(w, n0, first + g, s, o);
    } else {
      last_groups(w, n0, first + g, n, s, o);
    }
    if (per == 1 && n == 8) {
#pragma GCC unroll 8
      for (int i = 0; i < 8; i++) {
        put(g + i, s[i], o[i]);
      }
      continue;
    }
    for (int i = 0; i < n * per; i++) {
      put(g * per + i, s[i / per], o[i / per]);
    }
  }
  for (int b = groups * per; b < columns / block; b++) {
    put(b, _mm256_setzero_si256(), _mm256_setzero_si256());
  }
}

// Fills the scales and biases of a tile.
static void transpose_scales(const Weights& w, int64_t n0, int64_t k0, int columns, int block, Tile& t) {
  for (int h = 0; h < kTile / 8; h++) {
    Scales8 s;
    eight_scales(w, n0 + h * 8, k0, columns, block, s);
    for (int b = 0; b < columns / block; b++) {
      __builtin_memcpy(t.scales + b * kTile + h * 8, s.scales + b * 8, 32);
      __builtin_memcpy(t.biases + b * kTile + h * 8, s.biases + b * 8, 32);
    }
  }
}

}  // namespace ingot::cpu::INGOT_ISA
