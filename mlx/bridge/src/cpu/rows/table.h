// Rows of quantized tables (embeddings), rounded as in MLX 0.32.4.
#pragma once

#include "cpu/rows/rows.h"
#include "cpu/rows/sweep.h"

namespace ingot::cpu::INGOT_ISA {

// Unpacks eight codes of the given width, which occupy `bits` bytes.
IG_INLINE void eight_codes(const uint8_t* p, int bits, float* codes) {
  uint64_t word = 0;
  for (int i = 0; i < bits; i++) {
    word |= uint64_t(p[i]) << (8 * i);
  }
  uint64_t mask = (uint64_t(1) << bits) - 1;
  for (int i = 0; i < 8; i++) {
    codes[i] = float(int32_t(word >> (i * bits) & mask));
  }
}

// Decodes a float with one sign bit and the given exponent and fraction widths, without infinities and NaN.
IG_INLINE float small_float(uint32_t code, int exponent_bits, int fraction_bits, int bias) {
  uint32_t fraction = code & ((1u << fraction_bits) - 1),
           exponent = code >> fraction_bits & ((1u << exponent_bits) - 1);
  // Subnormals and the smallest exponent share the unit 2^(1 - bias - fraction_bits).
  float v = exponent ? float(fraction + (1u << fraction_bits)) : float(fraction);
  int power = (exponent ? int(exponent) - 1 : 0) + 1 - bias - fraction_bits;
  uint32_t bits = uint32_t(power + 127) << 23;
  float unit;
  __builtin_memcpy(&unit, &bits, 4);
  v *= unit;
  return code >> (exponent_bits + fraction_bits) & 1 ? -v : v;
}

IG_INLINE float e2m1(uint32_t code) { return small_float(code, 2, 1, 1); }
IG_INLINE float e4m3(uint32_t code) {
  return (code & 0x7f) == 0x7f ? __builtin_nanf("") : small_float(code, 4, 3, 7);
}
// 2^(code - 127). 255 is NaN in the OCP specification of microscaling formats (1.0), and infinity in MLX.
IG_INLINE float e8m0(uint32_t code) {
  uint32_t bits = code == 0 ? 0x00400000u : code << 23;
  float v;
  __builtin_memcpy(&v, &bits, 4);
  return v;
}

template <class T>
static void unpack(const PackedRow& a) {
  T* out = static_cast<T*>(a.out);
  const uint8_t* codes = a.codes;
  F by = set(a.multiplier);
  bool again = a.multiplier != 1.0f;
  float table[16];
  for (uint32_t i = 0; i < 16; i++) {
    table[i] = e2m1(i);
  }
  for (int64_t g = 0; g < a.n / a.group; g++, out += a.group) {
    float values[128];
    F scale, bias = set(0.0f);
    bool affine = a.packing == Packing::affine;
    if (affine) {
      for (int i = 0; i < a.group; i += 8, codes += a.bits) {
        eight_codes(codes, a.bits, values + i);
      }
      scale = set(get(static_cast<const T*>(a.scales) + g));
      bias = set(get(static_cast<const T*>(a.biases) + g));
    } else {
      uint8_t s = static_cast<const uint8_t*>(a.scales)[g];
      scale = rounded<T>(set(a.packing == Packing::nvfp4 ? e4m3(s) : e8m0(s)));
      for (int i = 0; i < a.group; i++) {
        if (a.packing == Packing::mxfp8) {
          values[i] = e4m3(*codes++);
        } else {
          values[i] = table[i & 1 ? *codes >> 4 : *codes & 15];
          codes += i & 1;
        }
      }
    }
    sweep(a.group, [=, &values](int64_t i, auto part) IG_LAMBDA {
      F v = rounded<T>(part.load(values + i) * scale);
      if (affine) {
        IG_SEPARATE(v);
        v = rounded<T>(v + bias);
      }
      part.store(out + i, again ? v * by : v);
    });
  }
}

}  // namespace ingot::cpu::INGOT_ISA
