// Streaming products with AVX2: 2 to kStreamRows activation rows, bound by memory like a row product; see
// cpu/matmul/matmul.h. Each step of a weight row is unpacked once and multiplied by all activation rows, each of which
// is contiguous (Layout::vector). With more rows there are too few registers, and transposing the weights
// (cpu/matmul/small_batch/integers.h) is faster.
#pragma once

#include <immintrin.h>

#include "cpu/matmul/stream/floats.h"
#include "cpu/matmul/stream/fp8_avx2.h"
#include "cpu/matmul/stream/quarters_avx2.h"

namespace ingot::cpu::INGOT_ISA {

constexpr int kStreamRows = 3;             // activation rows of 4-bit codes; with more, small-batch products are faster
constexpr int kPairStreamRows = 4;         // of 2-, 3-, 5-, 6- and 8-bit codes; see pair_stream_avx2.h

// Loads the scales and biases of eight groups of a weight row from index at on, as float32.
IG_INLINE void load_8_groups(const Weights& w, int64_t at, __m256& scales, __m256& biases) {
  with_scale_type(w, [&]<ScaleType T>() __attribute__((always_inline)) {
    scales = load_scales<T>(w.scales, at);
    biases = w.biases ? load_scales<T>(w.biases, at) : _mm256_mul_ps(scales, _mm256_set1_ps(float(-w.zero)));
  });
}

// Computes y[r][i] += x[r] . W[n0+i] over columns [k0, k1) for r < R and i < half. If S is 2 it also computes
// y[r][half+i] for weight row n0+half+i: two streams of weights use more of the memory bandwidth than one. Rows of y
// are width floats apart. With only two activation rows, one stream also leaves execution units idle.
template <bool Wide, int R, int S>
static void stream_block(const Weights& w, const Activations& x, int64_t n0, int64_t half, int64_t width, int64_t k0,
                         int64_t k1, float* y) {
  constexpr int kVectors = Wide ? 4 : 2;
  const int64_t groups = w.groups(), bytes = w.row_bytes();
  // the same columns of a later row
  const int64_t prefetch_distance = (1 + kPrefetchDistance / ((k1 - k0) / 2)) * bytes;
  const auto data = static_cast<const __m256i*>(x.data);
  for (int64_t n = n0; n < n0 + half; n++) {
    const uint8_t* codes[S];
    __m256 sum[S][R];
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      codes[s] = w.codes + (n + s * half) * bytes + k0 / 2;
#pragma GCC unroll 3
      for (int r = 0; r < R; r++) {
        sum[s][r] = _mm256_setzero_ps();
      }
    }
    for (int64_t k = k0; k < k1; k += kDepth) {
      alignas(32) float scales[S][R][8];
      const int64_t g = k / kStep;
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        __m256 scale, bias;
        load_8_groups(w, (n + s * half) * groups + g, scale, bias);
#pragma GCC unroll 3
        for (int r = 0; r < R; r++) {
          const int64_t at = r * groups + g;
          _mm256_store_ps(scales[s][r], _mm256_mul_ps(scale, _mm256_loadu_ps(x.scales + at)));
          sum[s][r] = _mm256_fmadd_ps(bias, _mm256_loadu_ps(x.sums + at), sum[s][r]);
        }
      }
      const __m256i* v = data + packed_offset(x, 0, k, 1) / kStep * kVectors;
#pragma GCC unroll 2
      for (int i = 0; i < 8; i++) {
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          if (i % 2 == 0) {
            prefetch(codes[s] + prefetch_distance);
          }
          __m256i q[4];
          Wide ? nibble_words(load_bytes(codes[s]), q) : nibble_bytes<false>(load_bytes(codes[s]), q);
#pragma GCC unroll 3
          for (int r = 0; r < R; r++) {
            const __m256i* of = v + (r * (kDepth / kStep) + i) * kVectors;
            const __m256i t = Wide ? word_sums(q, of) : byte_sums<Integers::bytes>(q, of);
            sum[s][r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(t), _mm256_broadcast_ss(scales[s][r] + i), sum[s][r]);
          }
          codes[s] += 32;
        }
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
#pragma GCC unroll 3
      for (int r = 0; r < R; r++) {
        y[r * width + n - n0 + s * half] += add_lanes(sum[s][r]);
      }
    }
  }
}

// Runs stream_block on all weight rows: two streams over the two halves, then the odd row.
template <bool Wide, int R>
static void stream_pairs(const Weights& w, const Activations& x, int64_t n0, int64_t n1, int64_t k0, int64_t k1,
                         float* y) {
  const int64_t half = (n1 - n0) / 2;
  stream_block<Wide, R, 2>(w, x, n0, half, n1 - n0, k0, k1, y);
  stream_block<Wide, R, 1>(w, x, n0 + 2 * half, n1 - n0 - 2 * half, n1 - n0, k0, k1, y + 2 * half);
}

template <bool Wide>
static void stream_small_batch(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  // The activations of a chunk of columns take half of the L1 cache; the other half is for the weights that pass
  // through.
  const int64_t chunk = (Wide ? 2048 : 4096) * (x.rows == 2 ? 2 : 1);
  __builtin_memset(y, 0, size_t(x.rows * (n1 - n0)) * sizeof(float));
  for (int64_t k = 0; k < x.columns; k += chunk) {
    int64_t k1 = k + chunk < x.columns ? k + chunk : x.columns;
    x.rows == 2 ? stream_pairs<Wide, 2>(w, x, n0, n1, k, k1, y) : stream_pairs<Wide, 3>(w, x, n0, n1, k, k1, y);
  }
}

// Returns the most activation rows that row_product accepts with these weights.
static int stream_rows_of(const Weights& w, Mode mode) {
  if (w.format == Format::plain || w.format == Format::fp8) {
    return kStreamedFloats;
  }
  if (w.format == Format::affine && w.bits != 4) {
    return mode == Mode::i16 ? kPairStreamRows : 1;
  }
  // affine 4-bit codes in groups of kStep, columns a multiple of kDepth
  return w.format == Format::affine && w.group == kStep && w.columns % kDepth == 0 ? kStreamRows : 1;
}

template <bool Wide>
static void stream_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  stream_small_batch<Wide>(w, x, n0, n1, y);
}

}  // namespace ingot::cpu::INGOT_ISA
