// The parts of the matrix product kernels that all instruction sets share; see cpu/matmul/matmul.h.
//
// The unpack headers include it and add unpack(w, n0, k0, columns, block, mode, tile), which unpacks a tile's codes
// to integers or dequantizes them to float32.
#pragma once

#include "cpu/matmul/matmul.h"

namespace ingot::cpu::INGOT_ISA {

constexpr int kTile = 2 * kLanes;

// Calls of<R>() with the number of rows (1 to Most) as a constant.
template <int Most, class F>
IG_INLINE void with_rows(int64_t rows, F of) {
  if constexpr (Most > 1) {
    if (rows < Most) {
      return with_rows<Most - 1>(rows, of);
    }
  }
  of.template operator()<Most>();
}

// A tile of unpacked weights: kTile weight rows by at most kDepth columns. data is float32 [column][kTile], int16 or
// bfloat16 [column/2][kTile][2], or unsigned bytes [column/4][kTile][4], so that the lanes of a vector are weight rows.
struct Tile {
  alignas(64) uint8_t data[kDepth * kTile * 4 / 2];  // float32 tiles have half as many columns
  alignas(64) float scales[kDepth / 16 * kTile];     // [block of columns][kTile]
  alignas(64) float biases[kDepth / 16 * kTile];
  alignas(64) int32_t corrections[kDepth / 16 * kTile];  // negated Winograd correction terms, of the blocks in data
  int first = 0;  // index in scales and biases of the first block in data

  template <class T>
  T* as() { return reinterpret_cast<T*>(data); }
};

// Returns the number of columns to unpack at a time. With few rows a float32 tile is used only once or twice, so it is
// kept so small that it hardly displaces anything from the L1 cache. A tile of int16 and the activations of some rows
// share that cache; with more rows the activations do not fit anyway, and a larger tile adds to the results less often.
constexpr int depth(Mode mode, int64_t rows) {
  switch (mode) {
    case Mode::f32:
      return rows > 16 ? kDepth / 2 : kStep;
    case Mode::i16:
      return rows > 40 ? kDepth : kDepth / 2;
    default:
      return kDepth;
  }
}

// Micro-kernel: c[r][j] += sum over k of x[k][r] * w[k][j] for r < R and j < kTile, in float32. w is [columns][kTile],
// x is [columns][R]. The R x kTile sums stay in registers.
template <int R>
IG_INLINE void multiply_floats(const float* w, const float* x, int columns, float* c) {
  F sum[R][2];
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) {
    sum[r][0] = load(c + r * kTile);
    sum[r][1] = load(c + r * kTile + kLanes);
  }
#pragma GCC unroll 4
  for (int k = 0; k < columns; k++) {
    F w0 = load(w + k * kTile), w1 = load(w + k * kTile + kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      F v = set(x[k * R + r]);
      sum[r][0] = fma(w0, v, sum[r][0]);
      sum[r][1] = fma(w1, v, sum[r][1]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) {
    store(c + r * kTile, sum[r][0]);
    store(c + r * kTile + kLanes, sum[r][1]);
  }
}

template <int R>
static void float_block(const float* w, const float* x, int columns, float* c) {
  multiply_floats<R>(w, x, columns, c);
}

static void multiply_float_rows(const float* w, const float* x, int columns, int rows, float* c) {
  switch (rows) {
    case 1:
      return float_block<1>(w, x, columns, c);
    case 2:
      return float_block<2>(w, x, columns, c);
    case 3:
      return float_block<3>(w, x, columns, c);
    case 4:
      return float_block<4>(w, x, columns, c);
    case 5:
      return float_block<5>(w, x, columns, c);
    default:
      return float_block<6>(w, x, columns, c);
  }
}

constexpr int kFloatRows = 6;

template <class T>
static void widen_all(const T* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(to + i, load(from + i));
  }
  if (i < n) {
    store_some(to + i, load_some(from + i, int(n - i)), int(n - i));
  }
}

static void widen(Type type, const void* from, float* to, int64_t n) {
  switch (type) {
    case Type::f32:
      return widen_all(static_cast<const float*>(from), to, n);
    case Type::f16:
      return widen_all(static_cast<const f16*>(from), to, n);
    case Type::bf16:
      return widen_all(static_cast<const bf16*>(from), to, n);
  }
}

// Returns Count columns of a row from column k on in float32, zero-padded at the end of the row. The result points into
// the row if no conversion is needed, otherwise to copy.
template <int Count>
static const float* columns_of(const void* row, Type type, int64_t k, int64_t columns, float* copy) {
  const int64_t n = columns - k < Count ? columns - k : Count;
  if (type == Type::f32 && n == Count) {
    return static_cast<const float*>(row) + k;
  }
  widen(type, static_cast<const uint8_t*>(row) + k * (type == Type::f32 ? 4 : 2), copy, n);
  for (int64_t i = n; i < Count; i++) {
    copy[i] = 0;
  }
  return copy;
}

static void pack_floats(const Activations& a, const void* const* rows, Type type, int64_t columns, int64_t m, int n) {
  for (int64_t k = 0; k < a.columns; k += kStep) {
    float* out = static_cast<float*>(a.data) + packed_offset(a, m, k, n);
    for (int r = 0; r < n; r++) {
      alignas(64) float copy[kStep];
      const float* x = columns_of<kStep>(rows[r], type, k, columns, copy);
      for (int i = 0; i < kStep; i++) {
        out[i * n + r] = x[i];
      }
    }
  }
}

template <class T>
static void narrow_all(const float* from, T* to, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(to + i, load(from + i));
  }
  if (i < n) {
    store_some(to + i, load_some(from + i, int(n - i)), int(n - i));
  }
}

static void narrow(Type type, const float* from, void* to, int64_t n) {
  switch (type) {
    case Type::f32:
      return narrow_all(from, static_cast<float*>(to), n);
    case Type::f16:
      return narrow_all(from, static_cast<f16*>(to), n);
    case Type::bf16:
      return narrow_all(from, static_cast<bf16*>(to), n);
  }
}

// Weight rows that plain_rows multiplies at a time. Two from distant places use more of the memory bandwidth: with AVX2
// they take 0.7 of the time.
constexpr int kPlainRows = kLanes == 8 ? 2 : 1;

// Row product of plain weights: y[n-n0] = x . W[n] for n in [n0, n1), with float32 x. Independent sums hide the latency
// of FMA.
template <class T>
static void plain_rows(const Weights& w, const float* x, int64_t n0, int64_t n1, float* y) {
  constexpr int S = kPlainRows, kSums = 4;
  constexpr int kAhead = S > 1 ? kSums * kLanes * int(sizeof(T)) : 1;  // bytes; hardware prefetches the rest of one row
  const int64_t stride = (n1 - n0 + S - 1) / S;
  for (int64_t r = 0; r < stride; r++) {
    int64_t rows[S];
    const T* row[S];
    F sum[S][kSums];
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      rows[s] = s ? n1 - stride + r : n0 + r;  // the middle row may be computed twice
      row[s] = reinterpret_cast<const T*>(w.codes) + rows[s] * w.columns;
#pragma GCC unroll 4
      for (int i = 0; i < kSums; i++) {
        sum[s][i] = set(0);
      }
    }
    int64_t k = 0;
    for (; k + kSums * kLanes <= w.columns; k += kSums * kLanes) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        for (int line = 0; line < kAhead; line += 64) {
          prefetch(reinterpret_cast<const char*>(row[s] + k) + 2048 + line);
        }
#pragma GCC unroll 4
        for (int i = 0; i < kSums; i++) {
          sum[s][i] = fma(load(row[s] + k + i * kLanes), load(x + k + i * kLanes), sum[s][i]);
        }
      }
    }
    for (; k < w.columns; k += kLanes) {
      int left = int(w.columns - k < kLanes ? w.columns - k : kLanes);
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        sum[s][0] = fma(load_some(row[s] + k, left), load_some(x + k, left), sum[s][0]);
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      y[rows[s] - n0] = INGOT_ISA::sum((sum[s][0] + sum[s][1]) + (sum[s][2] + sum[s][3]));
    }
  }
}

static void plain_row_product(const Weights& w, const float* x, int64_t n0, int64_t n1, float* y) {
  switch (w.type) {
    case Type::f32:
      return plain_rows<float>(w, x, n0, n1, y);
    case Type::f16:
      return plain_rows<f16>(w, x, n0, n1, y);
    case Type::bf16:
      return plain_rows<bf16>(w, x, n0, n1, y);
  }
}

// ---- Scales and biases in float32.

// Converts e8m0: 2^(e - 127).
IG_INLINE float power_of_two_bits(uint8_t e) {
  uint32_t bits = e ? uint32_t(e) << 23 : 0x00400000;  // 2^-127 is subnormal
  float v;
  __builtin_memcpy(&v, &bits, 4);
  return v;
}

IG_INLINE float e4m3(uint8_t code) {
  // The shifted bits are a float16 that is too small by a factor of 2^8. 0x7f is 480, as in MLX; the OCP format has NaN
  // there.
  f16 half = {uint16_t((code & 0x80) << 8 | (code & 0x7f) << 7)};
  return get(&half) * 256.0f;
}

static float scale_at(const Weights& w, const void* p, int64_t i) {
  switch (w.scale_type) {
    case ScaleType::f32:
      return static_cast<const float*>(p)[i];
    case ScaleType::f16:
      return get(static_cast<const f16*>(p) + i);
    case ScaleType::bf16:
      return get(static_cast<const bf16*>(p) + i);
    case ScaleType::e8m0:
      return power_of_two_bits(static_cast<const uint8_t*>(p)[i]);
    case ScaleType::e4m3:
      return e4m3(static_cast<const uint8_t*>(p)[i]);
  }
  return 0;
}

static void read_scales(const Weights& w, const void* p, int64_t at, int64_t n, float* to) {
  switch (w.scale_type) {
    case ScaleType::f32:
      return widen_all(static_cast<const float*>(p) + at, to, n);
    case ScaleType::f16:
      return widen_all(static_cast<const f16*>(p) + at, to, n);
    case ScaleType::bf16:
      return widen_all(static_cast<const bf16*>(p) + at, to, n);
    default:
      for (int64_t i = 0; i < n; i++) {
        to[i] = scale_at(w, p, at + i);
      }
  }
}

// e2m1 codes as unsigned integers: e2m1 = (kFP4[code] - 12) / 2. fp4 is therefore affine in kFP4[code], which is 0 to
// 24: weight = scale/2 * kFP4[code] - 6 * scale.
alignas(16) constexpr uint8_t kFP4[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

IG_INLINE bool has_codes(const Weights& w) { return w.format == Format::affine || w.format == Format::fp4; }

// Reads the scales and biases of groups [g, g+n) of a weight row, such that weight = scale * code + bias in every
// format.
static void row_scales(const Weights& w, int64_t row, int64_t g, int64_t n, float* scales, float* biases) {
  int64_t at = row * w.groups() + g;
  read_scales(w, w.scales, at, n, scales);
  switch (w.format) {
    case Format::affine:
      if (w.biases) {
        read_scales(w, w.biases, at, n, biases);
        break;
      }
      for (int64_t i = 0; i < n; i++) {
        biases[i] = scales[i] * float(-w.zero);
      }
      break;
    case Format::fp4:
      for (int64_t i = 0; i < n; i++) {
        biases[i] = scales[i] * -6.0f;
        scales[i] *= 0.5f;
      }
      break;
    default:
      for (int64_t i = 0; i < n; i++) {
        biases[i] = 0;
      }
  }
}

}  // namespace ingot::cpu::INGOT_ISA
