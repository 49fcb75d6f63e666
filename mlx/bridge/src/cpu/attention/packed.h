// Packing and unpacking of quantized keys and values; see pack_rows in cpu/attention/attention.h.
//
// All instruction sets give the same bits: the product of a code and a bfloat16 scale is exact in float32, so adding
// the bias rounds once, fused or not.
#pragma once

#include "cpu/attention/kernels.h"

namespace ingot::cpu::INGOT_ISA {

// Unpacks a row to float32.
template <int Bits>
IG_INLINE void unpack_row(const uint8_t* row, int dim, float* to) {
  const int groups = packed_groups(dim);
  auto scales = reinterpret_cast<const bf16*>(row + packed_codes(dim, Bits)), biases = scales + groups;
  for (int g = 0; g < groups; g++) {
    const int n = dim - g * kPackedGroup < kPackedGroup ? dim - g * kPackedGroup : kPackedGroup;
    const uint8_t* codes = row + g * kPackedGroup * Bits / 8;
    float scale = get(scales + g), bias = get(biases + g);
    float* out = to + g * kPackedGroup;
    int i = 0;
    if constexpr (Bits == 8) {
      for (; i + kLanes <= n; i += kLanes) {
        store(out + i, fma(load(codes + i), set(scale), set(bias)));
      }
      for (; i < n; i++) {
        out[i] = float(codes[i]) * scale + bias;
      }
    } else {
      const int half = n / 2;
      for (; i + kLanes <= half; i += kLanes) {
        F low, high;
        load_halves(codes + i, low, high);
        store(out + i, fma(low, set(scale), set(bias)));
        store(out + half + i, fma(high, set(scale), set(bias)));
      }
      for (; i < half; i++) {
        out[i] = float(codes[i] & 15) * scale + bias;
        out[half + i] = float(codes[i] >> 4) * scale + bias;
      }
    }
  }
}

static void unpack_rows(const void* from, int64_t stride, int n, int dim, int bits, float* to) {
  auto row = static_cast<const uint8_t*>(from);
  for (int j = 0; j < n; j++, row += stride, to += dim) {
    if (bits == 8) {
      unpack_row<8>(row, dim, to);
    } else {
      unpack_row<4>(row, dim, to);
    }
  }
}

// Unpacks n positions of a run from position p on to float32 and returns them as a run. If the values are a prefix of
// the keys, the unpacked keys serve for both.
IG_INLINE KeyRun unpack_run(const AttentionTask& t, const KeyRun& run, int64_t p, int n, float* k, float* v) {
  const auto& s = *t.shape;
  const int64_t first = p - run.position;
  unpack_rows(static_cast<const uint8_t*>(run.k) + first * run.k_row, run.k_row, n, s.dim, s.bits, k);
  KeyRun r{k, k, 0, s.dim, 0, s.dim, p, n};
  if (run.v != run.k) {
    unpack_rows(static_cast<const uint8_t*>(run.v) + first * run.v_row, run.v_row, n, s.value_dim, s.bits, v);
    r.v = v;
    r.v_row = s.value_dim;
  }
  return r;
}

// rounded_down returns the largest bfloat16 that is at most v. rounded_up returns the smallest that is at least v, for
// v >= 0.
IG_INLINE uint32_t bits_of(float v) {
  uint32_t bits;
  __builtin_memcpy(&bits, &v, 4);
  return bits;
}
IG_INLINE bf16 rounded_down(float v) {
  uint32_t bits = bits_of(v);
  return {uint16_t((bits + (bits >> 31 ? 0xffff : 0)) >> 16)};
}
IG_INLINE bf16 rounded_up(float v) { return {uint16_t((bits_of(v) + 0xffff) >> 16)}; }

// Quantizes a group. The bias is rounded down and the scale up, so that the codes cover the group's whole range.
template <class T>
static void pack_group(const T* from, int n, int bits, uint8_t* codes, bf16* scale, bf16* bias) {
  float x[kPackedGroup];
  widen_row(x, from, n, set(1));
  for (int i = n; i < kPackedGroup; i++) {
    x[i] = x[0];
  }
  F low = load(x), high = low, nonfinite = low - low;  // 0, or NaN if an element is not finite
  for (int i = kLanes; i < kPackedGroup; i += kLanes) {
    F v = load(x + i);
    low = min(low, v);
    high = max(high, v);
    nonfinite = nonfinite + (v - v);
  }
  float lows[kLanes], highs[kLanes];
  store(lows, low);
  store(highs, high);
  for (int i = 1; i < kLanes; i++) {
    lows[0] = lows[i] < lows[0] ? lows[i] : lows[0];
    highs[0] = highs[i] > highs[0] ? highs[i] : highs[0];
  }
  const float most = bits == 8 ? 255 : 15;
  if (sum(nonfinite) == 0) {
    *bias = rounded_down(lows[0] + 0.0f);  // + 0.0f turns -0 into 0
    *scale = rounded_up((highs[0] + 0.0f - get(bias)) / most);
  } else {
    bias->bits = scale->bits = 0x7fc0;
  }
  F divisor = set(get(scale)), from_bias = set(get(bias)), top = set(most);
  for (int i = 0; i < kPackedGroup; i += kLanes) {
    F code = round((load(x + i) - from_bias) / divisor);
    store(x + i, select(code < top, code, top));  // NaN from 0/0 becomes top, too
  }
  if (bits == 8) {
    for (int i = 0; i < n; i++) {
      codes[i] = uint8_t(int(x[i]));
    }
  } else {
    for (int i = 0; i < n / 2; i++) {
      codes[i] = uint8_t(int(x[i]) | int(x[n / 2 + i]) << 4);
    }
  }
}

template <class T>
static void pack_all(const T* from, int64_t rows, int dim, int bits, uint8_t* to) {
  const int groups = packed_groups(dim), codes = packed_codes(dim, bits);
  for (int64_t r = 0; r < rows; r++, from += dim, to += packed_bytes(dim, bits)) {
    auto scales = reinterpret_cast<bf16*>(to + codes);
    for (int g = 0; g < groups; g++) {
      const int at = g * kPackedGroup, n = dim - at < kPackedGroup ? dim - at : kPackedGroup;
      pack_group(from + at, n, bits, to + at * bits / 8, scales + g, scales + groups + g);
    }
  }
}

static void pack(Type type, const void* from, int64_t rows, int dim, int bits, uint8_t* to) {
  switch (type) {
    case Type::f32:
      return pack_all(static_cast<const float*>(from), rows, dim, bits, to);
    case Type::f16:
      return pack_all(static_cast<const f16*>(from), rows, dim, bits, to);
    case Type::bf16:
      return pack_all(static_cast<const bf16*>(from), rows, dim, bits, to);
  }
}

}  // namespace ingot::cpu::INGOT_ISA
