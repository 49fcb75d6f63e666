// Row products with AVX2 of codes of 3, 5 and 6 bits for one activation row; see vector_x86.h.
#pragma once

#include "cpu/matmul/stream/unpackers_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Computes y[n-n0] = x . W[n] for n in [n0, n1), one activation row. Two weight rows are multiplied at a time: two
// streams use more of the memory bandwidth than one.
template <int Bits, ScaleType T, int Group>
static void pair_row(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  constexpr int S = 2, kVectors = 4, kAtOnce = 4, kStepBytes = kStep / 8 * Bits;
  constexpr int kBlock = Group < kStep ? Group : kStep, Blocks = kStep / kBlock;
  const Pairs<Bits> unpacker;
  const ScaleReader<T, Group> reader(w, x);
  const int64_t bytes = w.row_bytes(), blocks = w.columns / kBlock, stride = (n1 - n0 + 1) / S;
  const uint8_t *begin = w.codes + unpacker.kBefore, *end = w.codes + w.rows * bytes - unpacker.kReach;
  for (int64_t r = 0; r < stride; r++) {
    const int64_t rows[S] = {n0 + r, n1 - stride + r};  // the middle row may be computed twice
    const uint8_t* codes[S] = {w.codes + rows[0] * bytes, w.codes + rows[1] * bytes};
    __m256 sum[S], added[S];
    sum[0] = sum[1] = added[0] = added[1] = _mm256_setzero_ps();
    auto v = static_cast<const __m256i*>(x.data);
    for (int64_t b = 0; b < blocks; b += kChunkBlocks) {
      const int64_t n = blocks - b < kChunkBlocks ? blocks - b : kChunkBlocks;
      int64_t steps = (n + Blocks - 1) / Blocks;
      alignas(32) float scales[S][kChunkBlocks];
      // Codes at the begin and the end of the matrix, which loads must not cross, are copied.
      alignas(32) uint8_t copy[S][kChunkBlocks / Blocks * kStepBytes + 128];
      const uint8_t* p[S];
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        reader.read(rows[s], b, n, scales[s], added[s]);
        p[s] = codes[s];
        codes[s] += n * (kBlock / 8 * Bits);
        if (__builtin_expect(p[s] < begin || p[s] + (steps - 1) * kStepBytes > end, 0)) {
          p[s] = copy_codes(copy[s], sizeof copy[s], p[s], n * (kBlock / 8 * Bits));
        }
      }
      const float* by = scales[0];
      IG_HIDE(by);
      // Adds the products of some steps. Codes are loaded a step before, since the instructions wait for them.
      auto some = [&]<int Steps>() __attribute__((always_inline)) {
        __m256i raw[S][2];
        auto load_codes = [&](int s, int u) __attribute__((always_inline)) {
          unpacker.load(p[s] + u * kStepBytes, raw[s]);
          IG_KEEP(raw[s][0]);
          IG_KEEP(raw[s][1]);
        };
        load_codes(0, 0);
        load_codes(1, 0);
#pragma GCC unroll 8
        for (int u = 0; u < Steps; u++) {
#pragma GCC unroll 2
          for (int s = 0; s < S; s++) {
            if (kStepBytes > 32 || u % 2 == 0) {
              prefetch(p[s] + u * kStepBytes + kPrefetchDistance);
            }
            __m256i q[4];
            unpacker.unpack(raw[s], q);
            if (u + 1 < Steps) {
              load_codes(s, u + 1);
            }
            unpacker.template add<Blocks>(q, v + u * kVectors, by + s * kChunkBlocks + u * Blocks, sum[s]);
          }
        }
        v += Steps * kVectors;
        by += Steps * Blocks;
        p[0] += Steps * kStepBytes;
        p[1] += Steps * kStepBytes;
      };
      for (; steps >= kAtOnce; steps -= kAtOnce) {
        some.template operator()<kAtOnce>();
      }
#pragma GCC unroll 1
      for (; steps > 0; steps--) {
        some.template operator()<1>();
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      y[rows[s] - n0] = add_lanes(unpacker.finish(sum[s], added[s]));
    }
  }
}

}  // namespace ingot::cpu::INGOT_ISA
