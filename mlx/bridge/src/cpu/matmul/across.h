// Products with packed matrices that are not transposed, y = x W, on all instruction sets: codes of 4 and 8 bits. Lanes
// are columns of W, whose rows are added one after the other: sums do not depend on how many rows of x there are.
#pragma once

#include "cpu/matmul/kernels.h"

namespace ingot::cpu::INGOT_ISA {

// Computes R rows of y, kColumns at a time: y[r][n] = added[r][g] + the sum over k of by[r][k][g] * code[k][n], where g
// is the group of column n.
template <int Bits, int R, int kColumns>
static void across_columns(const Weights& w, const float* by, const float* added, float* const* y) {
  constexpr int kVectors = kColumns / kLanes;
  const int64_t groups = w.groups(), bytes = w.row_bytes(), apart = w.rows * groups;
  // The next matrix of a stack, of which as many bytes are prefetched as are read of this one: a row is too short for a
  // stream of its own.
  const uint8_t* ahead = w.codes + w.rows * bytes;
  for (int64_t n = 0; n < w.columns; n += kColumns) {
    const int64_t g = n / w.group;
    const uint8_t* p = w.codes + n * Bits / 8;
    const float* factor = by + g;
    F sum[R][kVectors];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 16
      for (int i = 0; i < kVectors; i++) {
        sum[r][i] = set(added[r * groups + g]);
      }
    }
#pragma GCC unroll 1
    for (int64_t k = 0; k < w.rows; k++, p += bytes, factor += groups) {
      if (R == 1) {
        __builtin_prefetch(ahead, 0, 2);
        ahead += kColumns * Bits / 8;
      }
      F v[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; r++) {
        v[r] = set(factor[r * apart]);
      }
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; i += 2) {
        F a, b;
        if (Bits == 4) {
          load_halves(p + i * kLanes / 2, a, b);  // even and odd columns
        } else {
          a = load(p + i * kLanes);
          b = load(p + (i + 1) * kLanes);
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
          sum[r][i] = fma(a, v[r], sum[r][i]);
          sum[r][i + 1] = fma(b, v[r], sum[r][i + 1]);
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; i += 2) {
        float* to = y[r] + n + i * kLanes;
        if (Bits == 8) {
          store(to, sum[r][i]);
          store(to + kLanes, sum[r][i + 1]);
          continue;
        }
        float even[kLanes], odd[kLanes];
        store(even, sum[r][i]);
        store(odd, sum[r][i + 1]);
        for (int j = 0; j < kLanes; j++) {
          to[2 * j] = even[j];
          to[2 * j + 1] = odd[j];
        }
      }
    }
  }
}

template <int Bits>
static void across_rows(const Weights& w, int rows, const float* by, const float* added, float* const* y) {
  constexpr int kLeast = 2 * kLanes;  // columns
  switch (rows) {
    case 1:
      return w.group < kStep ? across_columns<Bits, 1, kStep / 2>(w, by, added, y)
                             : across_columns<Bits, 1, kStep>(w, by, added, y);
    case 2:
      return across_columns<Bits, 2, kStep / 2>(w, by, added, y);
    default:
      return across_columns<Bits, 4, kStep / 4 < kLeast ? kLeast : kStep / 4>(w, by, added, y);
  }
}

// See MatmulKernels::across_product.
static void across_product(const Weights& w, const float* const* x, int rows, float* work, float* const* y) {
  const int64_t groups = w.groups(), count = w.rows * groups;
  float *scales = work, *biases = scales + count, *by = biases + count;
  row_scales(w, 0, 0, count, scales, biases);
  for (int m = 0, some; m < rows; m += some) {
    some = rows - m >= 4 ? 4 : rows - m >= 2 ? 2 : 1;
    float* added = by + some * count;
    __builtin_memset(added, 0, size_t(some * groups) * sizeof(float));
    for (int r = 0; r < some; r++) {
      for (int64_t k = 0; k < w.rows; k++) {
        const float v = x[m + r][k];
        const int64_t from = k * groups, to = r * count + from, sum = r * groups;
        int64_t g = 0;
        for (; g + kLanes <= groups; g += kLanes) {
          store(by + to + g, load(scales + from + g) * set(v));
          store(added + sum + g, fma(load(biases + from + g), set(v), load(added + sum + g)));
        }
        for (; g < groups; g++) {
          by[to + g] = scales[from + g] * v;
          added[sum + g] += biases[from + g] * v;
        }
      }
    }
    w.bits == 4 ? across_rows<4>(w, some, by, added, y + m) : across_rows<8>(w, some, by, added, y + m);
  }
}

}  // namespace ingot::cpu::INGOT_ISA
