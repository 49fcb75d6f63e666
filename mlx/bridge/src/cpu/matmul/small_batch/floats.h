// Small-batch products of plain weights and float32 activations on x86.
//
// Sixteen weight rows are multiplied at a time. Blocks of kLanes columns are transposed in registers, so that the lanes
// of a vector are weight rows, and multiplied there. Each result is one chain of additions in the order of the columns,
// as in tile_product, so it does not depend on the number of rows.
#pragma once

#include "cpu/matmul/kernels.h"
#if defined(__AVX512F__)
#include "cpu/simd/transpose_avx512.h"
#else
#include "cpu/simd/transpose_avx2.h"
#endif

namespace ingot::cpu::INGOT_ISA {

constexpr int kSmallBatchTile = 16;                    // weight rows
constexpr int kFloatBatchRows = 8;                     // activation rows, whose sums stay in registers

// Prefetches a block spread evenly over the instructions that multiply another one: bursts of requests take longer. The
// compiler would group the requests, so each is tied to a value that is being computed. Instructions is how many there
// are, Lines how many cache lines the block has.
template <int Instructions, int Lines>
struct EvenPrefetches {
  const char* at;  // the block
  int done = 0, line = 0;

  // Called after every n instructions, with one of their results.
  template <class V>
  inline __attribute__((always_inline)) void after(int n, V& v) {
    done += n;
    if (line < Lines && line * Instructions < done * Lines) {
      asm volatile("prefetcht0 %1" : "+v"(v) : "m"(at[line * 64]));
      line++;
    }
  }
};

// Loads kLanes columns of kLanes weight rows, `apart` elements apart, and transposes them: v[i] has column i.
template <class T, class Prefetches>
IG_INLINE void load_transposed(const T* at, int64_t apart, Prefetches& prefetches, F* v) {
#if defined(__AVX512F__)
  __m512i t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) {
    t[i] = _mm512_castps_si512(load(at + i * apart));
    IG_KEEP(t[i]);
    prefetches.after(1, t[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    transpose_4x4(t + i);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      prefetches.after(2, t[i + j]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    transpose_quarters(t + i);
    prefetches.after(4, t[i]);
    prefetches.after(4, t[i + 12]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) {
    v[i] = _mm512_castsi512_ps(t[i]);
  }
#else
  __m256i t[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    t[i] = _mm256_castps_si256(load(at + i * apart));
    IG_KEEP(t[i]);
    prefetches.after(1, t[i]);
  }
  transpose_4x4(t);
  prefetches.after(8, t[3]);
  transpose_4x4(t + 4);
  prefetches.after(8, t[7]);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    transpose_halves(t + i);
    prefetches.after(2, t[i + 4]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    v[i] = _mm256_castsi256_ps(t[i]);
  }
#endif
}

// Adds v times *x to sum. With AVX-512 it is inline assembly: GCC 12 compiles the intrinsics to instructions that
// overwrite v, and moves that save it.
IG_INLINE void add_product(F& sum, F v, const float* x) {
#if defined(__AVX512F__)
  asm volatile("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(v), "m"(*x));
#else
  sum = fma(v, set(*x), sum);
  IG_KEEP(sum);
#endif
}

// Weight rows that float_blocks multiplies at a time, so that the sums of R activation rows stay in registers.
template <int R>
constexpr int kFloatBatchWeights = kLanes == 8 && R > 4 ? 8 : kSmallBatchTile;

// Micro-kernel: y[r][j] += sum over k of x[k][r] * w[j][k] for r < R, j < kFloatBatchWeights and a number of blocks of
// kLanes columns. Weight rows are `apart` elements apart. Meanwhile as many bytes from ahead on are prefetched in
// address order.
template <class T, int R>
static __attribute__((noinline)) void float_blocks(const T* w, int64_t apart, const float* x, int64_t blocks,
                                                   const char* ahead, float* y) {
  constexpr int kHalves = kFloatBatchWeights<R> / kLanes;
  constexpr int kBytes = kFloatBatchWeights<R> * kLanes * int(sizeof(T));  // of a block
  constexpr int kShuffles = kLanes == 16 ? 4 : 3;  // for each vector of a block
  constexpr int kInstructions = kHalves * kLanes * (1 + kShuffles + R);
  F sum[kHalves][R];
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; h++) {
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      sum[h][r] = load(y + r * kSmallBatchTile + h * kLanes);
    }
  }
  for (int64_t b = 0; b < blocks; b++, w += kLanes, x += kLanes * R, ahead += kBytes) {
    EvenPrefetches<kInstructions, kBytes / 64> prefetches{ahead};
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; h++) {
      IG_BARRIER();
      F v[kLanes];
      load_transposed(w + h * kLanes * apart, apart, prefetches, v);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; i++) {
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
          add_product(sum[h][r], v[i], x + i * R + r);
        }
        prefetches.after(R, sum[h][R - 1]);
      }
    }
  }
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; h++) {
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      store(y + r * kSmallBatchTile + h * kLanes, sum[h][r]);
    }
  }
}

// Copies a block of columns of 16 weight rows that may reach past the matrix. Columns past it are zero; rows past it
// repeat the last one.
template <class T>
static void copy_float_block(const Weights& w, int64_t n0, int64_t k, T* to) {
  const int64_t n = w.columns - k < kLanes ? w.columns - k : kLanes;
  for (int64_t r = 0; r < kSmallBatchTile; r++) {
    const int64_t row = n0 + r < w.rows ? n0 + r : w.rows - 1;
    auto from = reinterpret_cast<const T*>(w.codes) + row * w.columns + k;
    __builtin_memset(to + r * kLanes, 0, kLanes * sizeof(T));
    __builtin_memcpy(to + r * kLanes, from, size_t(n) * sizeof(T));
  }
}

// Computes y[r][j] = x[m0+r] . W[n0+j] for r < R and j < 16.
template <class T, int R>
static void float_batch(const Weights& w, const Activations& x, int64_t n0, int64_t m0, float* y) {
  const T* at = reinterpret_cast<const T*>(w.codes) + n0 * w.columns;
  auto ahead = reinterpret_cast<const char*>(at + kSmallBatchTile * w.columns);
  __builtin_memset(y, 0, R * kSmallBatchTile * sizeof(float));
  for (int64_t k0 = 0; k0 < w.columns; k0 += kDepth) {
    const int64_t end = k0 + kDepth < w.columns ? k0 + kDepth : w.columns;
    const float* v = static_cast<const float*>(x.data) + packed_offset(x, m0, k0, R);
    const int64_t blocks = n0 + kSmallBatchTile <= w.rows ? (end - k0) / kLanes : 0;
    auto multiply = [&](const T* w, int64_t apart, const float* x, int64_t blocks, const char* ahead) {
      for (int j = 0; j < kSmallBatchTile; j += kFloatBatchWeights<R>) {
        float_blocks<T, R>(w + j * apart, apart, x, blocks, ahead + blocks * kLanes * j * int64_t(sizeof(T)), y + j);
      }
    };
    multiply(at + k0, w.columns, v, blocks, ahead + k0 * kSmallBatchTile * int64_t(sizeof(T)));
    for (int64_t k = k0 + blocks * kLanes; k < end; k += kLanes) {
      alignas(64) T copy[kSmallBatchTile * kLanes];
      copy_float_block(w, n0, k, copy);
      multiply(copy, kLanes, v + (k - k0) * R, 1, reinterpret_cast<const char*>(copy));
    }
  }
}

// See MatmulKernels::small_batch_product. There are at most kFloatBatchRows rows, which are one panel.
static void float_batch_product(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y) {
  with_rows<kFloatBatchRows>(m1 - m0, [&]<int R>() {
    switch (w.type) {
      case Type::f32:
        return float_batch<float, R>(w, x, n0, m0, y);
      case Type::f16:
        return float_batch<f16, R>(w, x, n0, m0, y);
      case Type::bf16:
        return float_batch<bf16, R>(w, x, n0, m0, y);
    }
  });
}

}  // namespace ingot::cpu::INGOT_ISA
