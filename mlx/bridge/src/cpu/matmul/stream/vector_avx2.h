// Row products with AVX2; see vector_x86.h.
#pragma once

#include "cpu/matmul/stream/scale_reader_avx2.h"

namespace ingot::cpu {

// Products of codes of 3, 5 and 6 bits with one activation row, and of all integers with a few. They are in
// cpu/matmul/stream/avx2.cc, a unit of its own, so that both compile at the same time.
void stream_product_avx2(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y);

}  // namespace ingot::cpu

namespace ingot::cpu::INGOT_ISA {

// Unpacks 64 affine 4-bit codes to four vectors of int16.
IG_INLINE void nibble_words(__m256i v, __m256i* q) {
  const __m256i mask = _mm256_set1_epi16(15);
  q[0] = _mm256_and_si256(v, mask);
  q[1] = _mm256_and_si256(_mm256_srli_epi16(v, 4), mask);
  q[2] = _mm256_and_si256(_mm256_srli_epi16(v, 8), mask);
  q[3] = _mm256_srli_epi16(v, 12);
}

// Unpacks 64 4-bit codes to two vectors of bytes.
template <bool FP4>
IG_INLINE void nibble_bytes(__m256i v, __m256i* q) {
  const __m256i mask = _mm256_set1_epi8(15);
  q[0] = _mm256_and_si256(v, mask);
  q[1] = _mm256_and_si256(_mm256_srli_epi16(v, 4), mask);
  if (FP4) {
    q[0] = _mm256_shuffle_epi8(fp4_table(), q[0]);
    q[1] = _mm256_shuffle_epi8(fp4_table(), q[1]);
  }
}

// Returns the products of 64 unpacked codes with an activation row as eight sums, one for each eight codes.
IG_INLINE __m256i word_sums(const __m256i* q, const __m256i* x) {
  __m256i a = _mm256_madd_epi16(q[0], load_bytes(x)), b = _mm256_madd_epi16(q[2], load_bytes(x + 2));
  return _mm256_add_epi32(add16(a, q[1], load_bytes(x + 1)), add16(b, q[3], load_bytes(x + 3)));
}

// word_sums for two vectors of bytes, whose four products at most, of codes up to 24, fit in 16 bits. Activations are
// int8, or the high and then the low bytes of int16: products of bytes are half as many instructions as unpacking to
// int16, and the sum of both parts is exact.
template <Integers Kind>
IG_INLINE __m256i byte_sums(const __m256i* q, const __m256i* x) {
  const __m256i t = add8(_mm256_maddubs_epi16(q[0], load_bytes(x)), q[1], load_bytes(x + 1));
  if constexpr (Kind == Integers::bytes) {
    return _mm256_madd_epi16(t, _mm256_set1_epi16(1));
  }
  const __m256i low = add8(_mm256_maddubs_epi16(q[0], load_bytes(x + 2)), q[1], load_bytes(x + 3));
  return widened(_mm256_madd_epi16(t, _mm256_set1_epi16(256)), low);
}

// Computes y[n-n0] = x . W[n] for n in [n0, n1) of 4-bit codes. Two weight rows are multiplied at a time: two streams
// use more of the memory bandwidth than one, and share the loads of activations.
template <Integers Kind, bool FP4, ScaleType T, int Group>
static void nibble_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  constexpr int S = 2, kAtOnce = 4;
  constexpr int kVectors = Kind == Integers::bytes ? 2 : 4;  // of activations, for a step
  // A lane has eight columns of a step.
  constexpr int kBlock = Group < kStep ? Group : kStep, kBlocks = kStep / kBlock;
  const ScaleReader<T, Group> reader(w, x);
  const int64_t bytes = w.row_bytes(), blocks = w.columns / kBlock, stride = (n1 - n0 + 1) / S;
  for (int64_t r = 0; r < stride; r++) {
    const int64_t rows[S] = {n0 + r, n1 - stride + r};  // the middle row may be computed twice
    const uint8_t* codes[S] = {w.codes + rows[0] * bytes, w.codes + rows[1] * bytes};
    __m256 sum[S], added[S];
    sum[0] = sum[1] = added[0] = added[1] = _mm256_setzero_ps();
    auto v = static_cast<const __m256i*>(x.data);
    for (int64_t b = 0; b < blocks; b += kChunkBlocks) {
      const int64_t n = blocks - b < kChunkBlocks ? blocks - b : kChunkBlocks;
      alignas(32) float scales[S][kChunkBlocks];
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        reader.read(rows[s], b, n, scales[s], added[s]);
      }
      const float* by = scales[0];
      IG_HIDE(by);
      // Adds the products of codes q, the u-th step from the current one on.
      auto add = [&](int s, __m256i q, int u) __attribute__((always_inline)) {
        __m256i unpacked[2];
        nibble_bytes<FP4>(q, unpacked);
        const __m256 products = _mm256_cvtepi32_ps(byte_sums<Kind>(unpacked, v + u * kVectors));
        sum[s] = _mm256_fmadd_ps(products, lane_scales<kBlocks>(by + s * kChunkBlocks + u * kBlocks), sum[s]);
      };
      auto some = [&]<int Steps>() __attribute__((always_inline)) {
#pragma GCC unroll 4
        for (int u = 0; u < Steps; u++) {
#pragma GCC unroll 2
          for (int s = 0; s < S; s++) {
            if (u % 2 == 0) {  // weights are read once and must not evict activations
              _mm_prefetch(reinterpret_cast<const char*>(codes[s] + u * kStep / 2 + kPrefetchDistance), _MM_HINT_NTA);
            }
            add(s, load_bytes(codes[s] + u * kStep / 2), u);
          }
        }
        codes[0] += Steps * kStep / 2;
        codes[1] += Steps * kStep / 2;
        v += Steps * kVectors;
        by += Steps * kBlocks;
      };
      int64_t steps = n / kBlocks;
      for (; steps >= kAtOnce; steps -= kAtOnce) {
        some.template operator()<kAtOnce>();
      }
#pragma GCC unroll 1
      for (; steps > 0; steps--) {
        some.template operator()<1>();
      }
      if (n % kBlocks != 0) {
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          alignas(32) uint8_t copy[kStep / 2] = {};
          __builtin_memcpy(copy, codes[s], size_t(n % kBlocks * kBlock / 2));
          add(s, load_bytes(copy), 0);
        }
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      // fp4 is affine in the unpacked codes: weight = scale/2 * code - 6 * scale (see kFP4)
      y[rows[s] - n0] = add_lanes(FP4 ? sum[s] * 0.5f - added[s] * 6.0f : sum[s] + added[s]);
    }
  }
}

template <bool Wide>
static void nibble_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  constexpr Integers kKind = Wide ? Integers::halves : Integers::bytes;
  with_nibbles(w, [&]<bool FP4, ScaleType T, int Group>() {
    nibble_rows<kKind, FP4, T, Group>(w, x, n0, n1, y);
  });
}

// Row product of codes that are bytes: computes y[n-n0] = x . W[n] for n in [n0, n1), two weight rows at a time as
// nibble_rows does.
template <ScaleType T, int Group>
static void byte_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  constexpr int S = 2, kAtOnce = 4, kBlock = Group < kStep ? Group : kStep, kVectors = kBlock / 16;
  const ScaleReader<T, Group> reader(w, x);
  const int64_t blocks = w.columns / kBlock, stride = (n1 - n0 + 1) / S;
  for (int64_t r = 0; r < stride; r++) {
    const int64_t rows[S] = {n0 + r, n1 - stride + r};  // the middle row may be computed twice
    const uint8_t* codes[S] = {w.codes + rows[0] * w.columns, w.codes + rows[1] * w.columns};
    __m256 sum[S], added[S];
    sum[0] = sum[1] = added[0] = added[1] = _mm256_setzero_ps();
    auto v = static_cast<const __m256i*>(x.data);
    for (int64_t b = 0; b < blocks; b += kChunkBlocks) {
      int64_t n = blocks - b < kChunkBlocks ? blocks - b : kChunkBlocks;
      alignas(32) float scales[S][kChunkBlocks];
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        reader.read(rows[s], b, n, scales[s], added[s]);
      }
      const float* by = scales[0];
      IG_HIDE(by);
      // Adds the products of some blocks: of each 32 columns the even ones, then the odd ones.
      auto some = [&]<int Blocks>() __attribute__((always_inline)) {
#pragma GCC unroll 4
        for (int u = 0; u < Blocks; u++) {
#pragma GCC unroll 2
          for (int s = 0; s < S; s++) {
            const uint8_t* at = codes[s] + u * kBlock;
            if (kBlock == kStep || u % 2 == 0) {
              _mm_prefetch(reinterpret_cast<const char*>(at + kPrefetchDistance), _MM_HINT_NTA);
            }
            __m256i t[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 4
            for (int j = 0; j < kVectors; j += 2) {
              const __m256i q = load_bytes(at + j * 16), *of = v + u * kVectors + j;
              t[0] = add16(t[0], _mm256_and_si256(q, _mm256_set1_epi16(255)), load_bytes(of));
              t[1] = add16(t[1], _mm256_srli_epi16(q, 8), load_bytes(of + 1));
            }
            const __m256 products = _mm256_cvtepi32_ps(_mm256_add_epi32(t[0], t[1]));
            sum[s] = _mm256_fmadd_ps(products, _mm256_broadcast_ss(by + s * kChunkBlocks + u), sum[s]);
          }
        }
        codes[0] += Blocks * kBlock;
        codes[1] += Blocks * kBlock;
        v += Blocks * kVectors;
        by += Blocks;
      };
      for (; n >= kAtOnce; n -= kAtOnce) {
        some.template operator()<kAtOnce>();
      }
#pragma GCC unroll 1
      for (; n > 0; n--) {
        some.template operator()<1>();
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      y[rows[s] - n0] = add_lanes(sum[s] + added[s]);
    }
  }
}

static void byte_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  if (w.bits < 8) {
    return stream_product_avx2(w, x, n0, n1, y);
  }
  with_scales(w, [&]<ScaleType T, int Group>() { byte_rows<T, Group>(w, x, n0, n1, y); });
}

}  // namespace ingot::cpu::INGOT_ISA
