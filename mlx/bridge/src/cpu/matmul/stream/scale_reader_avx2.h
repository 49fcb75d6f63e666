// The scales and biases of weight rows for row products with AVX2.
#pragma once

#include "cpu/matmul/stream/vector_x86.h"

namespace ingot::cpu::INGOT_ISA {

constexpr int kUnit = 8;          // scales of a vector
constexpr int kChunkBlocks = 64;  // blocks of columns (Layout::block) whose scales are read at a time

// Two float32 that are loaded as 64 bits.
using TwoFloats [[gnu::may_alias, gnu::aligned(4)]] = double;

// Returns the scales of consecutive blocks, 1, 2 or 4, each in an equal share of the lanes. The load broadcasts, so no
// shuffle crosses the halves of a vector, which would take two operations.
template <int Blocks>
IG_INLINE __m256 lane_scales(const float* of) {
  if constexpr (Blocks == 1) {
    return _mm256_broadcast_ss(of);
  } else if constexpr (Blocks == 2) {
    const __m256d both = _mm256_set1_pd(*reinterpret_cast<const TwoFloats*>(of));
    return _mm256_permutevar_ps(_mm256_castpd_ps(both), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
  } else {
    const __m256 four = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(of));
    return _mm256_permutevar_ps(four, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
  }
}

// Reads scales for the product of a matrix and one activation row. What depends on neither the weight row nor the
// columns is computed once, since rows may be as short as 9 blocks.
template <ScaleType T, int Group>
class ScaleReader {
 public:
  static constexpr int kBlock = Group < kStep ? Group : kStep;  // columns

  ScaleReader(const Weights& w, const Activations& x) : x_scales_(x.scales), x_sums_(x.sums) {
    scales_ = static_cast<const uint8_t*>(w.scales);
    biases_ = static_cast<const uint8_t*>(w.biases);
    factor_ = kBiases ? float(-w.zero) : 1;
    row_bytes_ = w.columns / Group * kSize;
    last_ = w.rows * row_bytes_ - kUnit * kSize;
    const int64_t blocks = w.columns / kBlock, whole = blocks / kUnit * kUnit;
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i lanes = _mm256_cmpgt_epi32(_mm256_set1_epi32(int(blocks - whole)), lane);
    _mm256_store_si256(reinterpret_cast<__m256i*>(end_lanes_), lanes);
    _mm256_store_ps(end_scales_, _mm256_maskload_ps(x_scales_ + whole, lanes));
    _mm256_store_ps(end_sums_, _mm256_maskload_ps(x_sums_ + whole, lanes));
  }

  // Stores the scales of n blocks of a weight row from block b on, times those of the activations, and zeros up to a
  // whole vector. Adds bias * activation sum of these blocks to added, or scale * sum if there are no biases. n is a
  // multiple of kUnit unless these are the last blocks of the row.
  inline __attribute__((always_inline)) void read(int64_t row, int64_t b, int64_t n, float* to, __m256& added) const {
    int64_t at = row * row_bytes_ + b / kPerGroup * kSize;
    const float *x_scales = x_scales_ + b, *x_sums = x_sums_ + b;
    for (; n >= kUnit; n -= kUnit) {
      const __m256 scale = load(scales_, at, kBytes), bias = load_biases(scale, at, kBytes);
      _mm256_store_ps(to, _mm256_mul_ps(scale, _mm256_loadu_ps(x_scales)));
      added = _mm256_fmadd_ps(bias, _mm256_loadu_ps(x_sums), added);
      at += kBytes;
      to += kUnit;
      x_scales += kUnit;
      x_sums += kUnit;
    }
    if (n > 0) {
      const int64_t bytes = n / kPerGroup * kSize;
      const __m256 lanes = _mm256_load_ps(reinterpret_cast<const float*>(end_lanes_));
      const __m256 scale = _mm256_and_ps(load(scales_, at, bytes), lanes);
      const __m256 bias = _mm256_and_ps(load_biases(scale, at, bytes), lanes);
      _mm256_store_ps(to, _mm256_mul_ps(scale, _mm256_load_ps(end_scales_)));
      added = _mm256_fmadd_ps(bias, _mm256_load_ps(end_sums_), added);
    }
  }

 private:
  static constexpr bool kBiases = T != ScaleType::e8m0 && T != ScaleType::e4m3;
  static constexpr int kPerGroup = Group / kBlock;  // blocks
  static constexpr int kSize = size_of(T);
  static constexpr int kBytes = kUnit / kPerGroup * kSize;

  const uint8_t *scales_, *biases_;
  float factor_;                // of a scale that is its bias, if there are no biases
  int64_t row_bytes_, last_;  // of the scales; where the last vector begins that does not reach past the matrix
  const float *x_scales_, *x_sums_;
  // The lanes of blocks that fill no vector, and the activations' scales and sums for these.
  alignas(32) int32_t end_lanes_[kUnit];
  alignas(32) float end_scales_[kUnit], end_sums_[kUnit];

  inline __attribute__((always_inline)) __m256 load_biases(__m256 scale, int64_t at, int64_t bytes) const {
    if constexpr (!kBiases) {
      return scale;
    }
    return biases_ ? load(biases_, at, bytes) : _mm256_mul_ps(scale, _mm256_set1_ps(factor_));
  }

  // Loads the scales of eight blocks, which may be of the next row. Those past the matrix are zero: it has `bytes`
  // bytes.
  inline __attribute__((always_inline)) __m256 load(const uint8_t* from, int64_t at, int64_t bytes) const {
    const uint8_t* p = from + at;
    prefetch(p + kScalesAhead);
    alignas(32) uint8_t copy[kUnit * 4];
    if (__builtin_expect(at > last_, 0)) {
      __builtin_memset(copy, 0, sizeof copy);
      __builtin_memcpy(copy, p, size_t(bytes));
      p = copy;
    }
    const __m256 v = load_scales<T>(p, 0);
    return kPerGroup == 1 ? v : _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
  }
};

}  // namespace ingot::cpu::INGOT_ISA
