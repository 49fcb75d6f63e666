// Streaming products in float32 of plain and e4m3 weights, with 2 or more activation rows, each of which is contiguous
// (Layout::vector).
//
// Two weight rows at a time share the loads of activations. Columns go in chunks so small that their activations stay
// in the L1 cache.
#pragma once

#include <immintrin.h>

#include "cpu/matmul/kernels.h"

namespace ingot::cpu::INGOT_ISA {

// A plain weight row, as stream_floats reads it.
template <class T>
struct PlainRow {
  static constexpr int kBytes = 2 * kLanes * sizeof(T);  // that load reads

  const T* at;

  PlainRow(const Weights& w, int64_t n) : at(reinterpret_cast<const T*>(w.codes) + n * w.columns) {}
  inline __attribute__((always_inline)) void load(int64_t k, F& a, F& b) const {
    a = INGOT_ISA::load(at + k);
    b = INGOT_ISA::load(at + k + kLanes);
  }
  F load_some(int64_t k, int n) const { return INGOT_ISA::load_some(at + k, n); }
};

// Returns the sums of the lanes of four vectors.
IG_INLINE __m128 sum_each(F a, F b, F c, F d) {
#if defined(__AVX512F__)
  const F ab = _mm512_unpacklo_ps(a, b) + _mm512_unpackhi_ps(a, b);
  const F cd = _mm512_unpacklo_ps(c, d) + _mm512_unpackhi_ps(c, d);
  const __m512d p = _mm512_castps_pd(ab), q = _mm512_castps_pd(cd);
  const F s = _mm512_castpd_ps(_mm512_unpacklo_pd(p, q)) + _mm512_castpd_ps(_mm512_unpackhi_pd(p, q));
  const __m256 half = _mm512_castps512_ps256(s) + _mm512_extractf32x8_ps(s, 1);
#else
  const __m256 half = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
#endif
  return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
}

// The most activation rows that are streamed: their sums with two weight rows stay in registers.
constexpr int kStreamedFloats = kLanes == 16 ? 8 : 4;

// Computes y[r][n] += x[r] . row[n] over columns [k0, k1), which begin with a depth, for r < R and n < N. y[r] and
// y[r+1] are width apart, y[r][0] and y[r][1] are gap apart. The order of additions does not depend on N. It is not
// inlined, and hides its pointers, because otherwise GCC 12 runs out of registers for addresses.
template <class Row, int N, int R>
static __attribute__((noinline)) void stream_floats(const Row* row, int64_t columns, const Activations& x, int64_t k0,
                                                    int64_t k1, const char* ahead, int64_t apart_ahead, float* y,
                                                    int64_t width, int64_t gap) {
  constexpr int kSums = R > 2 ? 1 : 2;  // of each result: fewer would wait for the latency of FMA
  F sum[N][R][kSums];
#pragma GCC unroll 2
  for (int n = 0; n < N; n++) {
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 2
      for (int i = 0; i < kSums; i++) {
        sum[n][r][i] = set(0);
      }
    }
  }
  const Row first = row[0], second = row[N - 1];
  for (int64_t from = k0; from < k1; from += kDepth) {
    const int64_t apart = x.columns - from < kDepth ? x.columns - from : kDepth;
    const int64_t to = from + kDepth < columns ? from + kDepth : columns;
    const float* v[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      v[r] = static_cast<const float*>(x.data) + packed_offset(x, 0, from, 1) + r * apart - from;
      IG_HIDE(v[r]);
    }
    int64_t k = from;
    for (; k + 2 * kLanes <= to; k += 2 * kLanes) {
      F w[N][2];
#pragma GCC unroll 2
      for (int n = 0; n < N; n++) {
        const Row& row = n ? second : first;
        for (int line = 0; line < Row::kBytes; line += 64) {
          _mm_prefetch(ahead + n * apart_ahead + line, _MM_HINT_NTA);
        }
        row.load(k, w[n][0], w[n][1]);
      }
#pragma GCC unroll 2
      for (int i = 0; i < 2; i++) {
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
          F a = load(v[r] + k + i * kLanes);
          IG_KEEP(a);
#pragma GCC unroll 2
          for (int n = 0; n < N; n++) {
            F& s = sum[n][r][i % kSums];
            s = fma(w[n][i], a, s);
          }
        }
      }
      ahead += Row::kBytes;
    }
    for (; k < to; k += kLanes) {  // columns past the matrix are zero in x
#pragma GCC unroll 2
      for (int n = 0; n < N; n++) {
        const F a = (n ? second : first).load_some(k, int(to - k < kLanes ? to - k : kLanes));
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
          sum[n][r][0] = fma(a, load(v[r] + k), sum[n][r][0]);
        }
      }
    }
  }
  auto total = [&](int i) __attribute__((always_inline)) {
    const int n = i % N, r = i / N < R ? i / N : R - 1;
    return kSums == 2 ? sum[n][r][0] + sum[n][r][kSums - 1] : sum[n][r][0];
  };
#pragma GCC unroll 4
  for (int i = 0; i < N * R; i += 4) {
    alignas(16) float four[4];
    _mm_store_ps(four, sum_each(total(i), total(i + 1), total(i + 2), total(i + 3)));
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      if (i + j < N * R) {
        y[(i + j) / N * width + (i + j) % N * gap] += four[j];
      }
    }
  }
}

// Splits columns into the fewest chunks of whole depths and about the same size, at most `most` columns or one depth.
static inline int64_t even_chunk(int64_t columns, int64_t most) {
  const int64_t depths = (columns + kDepth - 1) / kDepth, fit = most < kDepth ? 1 : most / kDepth;
  const int64_t chunks = (depths + fit - 1) / fit;
  return (depths + chunks - 1) / chunks * kDepth;
}

// How many bytes ahead streams prefetch: in whole rows, and in chunks, where it is the same columns of a later row.
constexpr int64_t kRowsAhead = 4096, kChunksAhead = 8192;

// Bytes of a chunk's activations. Larger chunks read the weights in longer runs.
constexpr int64_t kFloatChunkBytes = 32 << 10;

// Multiplies weight rows n and, if N is 2, n + gap by all activation rows over columns [k0, k1), and prefetches as many
// bytes from ahead and, if N is 2, from ahead + apart_ahead on.
template <class Row, int N>
IG_INLINE void stream_float_chunk(const Weights& w, const Activations& x, int64_t n, int64_t gap, int64_t k0,
                                  int64_t k1, const char* ahead, int64_t apart_ahead, float* y, int64_t width) {
  const Row row[2] = {Row(w, n), Row(w, n + (N - 1) * gap)};
  with_rows<kStreamedFloats>(x.rows, [&]<int R>() __attribute__((always_inline)) {
    stream_floats<Row, N, R>(row, w.columns, x, k0, k1, ahead, apart_ahead, y, width, gap);
  });
}

// Computes y[m][n-n0] = x[m] . W[n] for all activation rows and weight rows [n0, n1), with float32 x. The two weight
// rows at a time come from both halves of the range: the hardware prefetcher follows two long streams best.
template <class Row>
static void stream_float_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  const int64_t chunk = even_chunk(w.columns, kFloatChunkBytes / (x.rows * 4));
  const int64_t width = n1 - n0, half = width / 2, bytes = w.row_bytes();
  __builtin_memset(y, 0, size_t(x.rows * width) * sizeof(float));
  for (int64_t k0 = 0; k0 < w.columns; k0 += chunk) {
    const int64_t k1 = k0 + chunk < w.columns ? k0 + chunk : w.columns;
    const int64_t run = (k1 - k0) * w.bits / 8;
    const int64_t far = chunk < w.columns ? (1 + kChunksAhead / (run + 1)) * bytes : kRowsAhead;
    auto ahead = reinterpret_cast<const char*>(w.codes) + n0 * bytes + k0 * w.bits / 8 + far;
    for (int64_t n = 0; n < half; n++, ahead += bytes) {
      stream_float_chunk<Row, 2>(w, x, n0 + n, half, k0, k1, ahead, half * bytes, y + n, width);
    }
    if (width % 2) {
      stream_float_chunk<Row, 1>(w, x, n1 - 1, 0, k0, k1, ahead + half * bytes, 0, y + width - 1, width);
    }
  }
}

static inline void plain_stream(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  switch (w.type) {
    case Type::f32:
      return stream_float_rows<PlainRow<float>>(w, x, n0, n1, y);
    case Type::f16:
      return stream_float_rows<PlainRow<f16>>(w, x, n0, n1, y);
    case Type::bf16:
      return stream_float_rows<PlainRow<bf16>>(w, x, n0, n1, y);
  }
}

}  // namespace ingot::cpu::INGOT_ISA
