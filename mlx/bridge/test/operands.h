// Operands of product tests: weights of all formats with their exact values, and activations.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/matmul/matmul.h"
#include "check.h"

namespace operands {

using namespace ingot::cpu;
using check::Exact;

struct Kind {
  const char* name;
  Format format;
  int bits, group;
  ScaleType scale;
  Type type;  // of plain elements
  int zero = -1;  // of affine codes without biases; -1: they have biases
  bool biases() const { return format == Format::affine && zero < 0; }
};

inline const Kind kKinds[] = {
    {"affine2x32", Format::affine, 2, 32, ScaleType::bf16, {}},
    {"affine2x64", Format::affine, 2, 64, ScaleType::f16, {}},
    {"affine3x32", Format::affine, 3, 32, ScaleType::f32, {}},
    {"affine3x128", Format::affine, 3, 128, ScaleType::bf16, {}},
    {"affine4x32", Format::affine, 4, 32, ScaleType::f16, {}},
    {"affine4x64", Format::affine, 4, 64, ScaleType::bf16, {}},
    {"affine4x128", Format::affine, 4, 128, ScaleType::f32, {}},
    {"affine5x32", Format::affine, 5, 32, ScaleType::bf16, {}},
    {"affine5x64", Format::affine, 5, 64, ScaleType::f32, {}},
    {"affine6x32", Format::affine, 6, 32, ScaleType::bf16, {}},
    {"affine6x128", Format::affine, 6, 128, ScaleType::f16, {}},
    {"affine8x32", Format::affine, 8, 32, ScaleType::bf16, {}},
    {"affine8x64", Format::affine, 8, 64, ScaleType::bf16, {}},
    {"affine8x128", Format::affine, 8, 128, ScaleType::f32, {}},
    {"symmetric2x64", Format::affine, 2, 64, ScaleType::f16, {}, 1},
    {"symmetric4x32", Format::affine, 4, 32, ScaleType::f16, {}, 8},
    {"symmetric4x64", Format::affine, 4, 64, ScaleType::bf16, {}, 8},
    {"symmetric5x32", Format::affine, 5, 32, ScaleType::f16, {}, 16},
    {"symmetric6x32", Format::affine, 6, 32, ScaleType::f32, {}, 32},
    {"symmetric8x32", Format::affine, 8, 32, ScaleType::f16, {}, 128},
    {"mxfp4", Format::fp4, 4, 32, ScaleType::e8m0, {}},
    {"nvfp4", Format::fp4, 4, 16, ScaleType::e4m3, {}},
    {"mxfp8", Format::fp8, 8, 32, ScaleType::e8m0, {}},
    {"f32", Format::plain, 32, 1, {}, Type::f32},
    {"f16", Format::plain, 16, 1, {}, Type::f16},
    {"bf16", Format::plain, 16, 1, {}, Type::bf16},
};

inline bool guarding = false;  // values are not checked; another run does that

// Returns a normally distributed number, or a uniform one, which is cheaper, if values are not checked.
inline double normal() { return guarding ? double(check::below(512) - 256) / 128 : check::normal(); }

inline int most_threads() { return guarding ? 1 : 3; }

inline const char* const kTypes[] = {"f32", "f16", "bf16"};

inline size_t size_of(Type t) { return t == Type::f32 ? 4 : 2; }

inline double get(Type t, const void* p, size_t i) {
  switch (t) {
    case Type::f32:
      return check::number(static_cast<const float*>(p) + i);
    case Type::f16:
      return check::number(static_cast<const f16*>(p) + i);
    default:
      return check::number(static_cast<const bf16*>(p) + i);
  }
}

inline void put(Type t, void* p, size_t i, double v) {
  switch (t) {
    case Type::f32:
      return check::put(static_cast<float*>(p) + i, v);
    case Type::f16:
      return check::put(static_cast<f16*>(p) + i, v);
    default:
      return check::put(static_cast<bf16*>(p) + i, v);
  }
}

inline double e4m3(uint8_t c) {
  int exponent = c >> 3 & 15, fraction = c & 7;
  double v = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
  return c & 0x80 ? -v : v;
}

// A dequantized weight as two terms, which kernels may sum separately.
struct Parts {
  double scaled, added;
};

// A stack of matrices with random codes, and their dequantized weights.
struct Packed {
  Weights form;
  Exact<uint8_t> codes, scales, biases;
  std::vector<Parts> parts;  // [matrix][row][column]

  Packed(const Kind& k, int64_t count, int64_t rows, int64_t columns)
      : codes(size_t(count * rows * columns * k.bits / 8)),
        scales(size_t(k.format == Format::plain ? 0 : count * rows * columns / k.group) * scale_bytes(k)),
        biases(k.biases() ? scales.size() : 0) {
    form = {.codes = codes.data(),
            .scales = scales.data(),
            .biases = k.biases() ? biases.data() : nullptr,
            .zero = std::max(k.zero, 0),
            .rows = rows,
            .columns = columns,
            .format = k.format,
            .bits = k.bits,
            .group = k.group,
            .scale_type = k.scale,
            .type = k.type};
    if (guarding) {
      fill(k, count * rows * columns);
      return;
    }
    for (size_t i = 0; i < codes.size(); i++) {
      codes[i] = uint8_t(check::random()());
    }
    for (int64_t i = 0; i < count * rows * columns; i++) {
      if (k.format == Format::plain) {
        put(k.type, codes.data(), size_t(i), check::normal() * 0.02);
        parts.push_back({get(k.type, codes.data(), size_t(i)), 0});
        continue;
      }
      if (k.format == Format::fp8 && (codes[size_t(i)] & 0x7f) == 0x7f) {
        codes[size_t(i)] &= 0x80;
      }
      auto g = size_t(i / k.group);
      if (i % k.group == 0) {
        set_scale(k, g);
      }
      double s = scale(k, scales, g);
      int64_t bit = i % columns * k.bits;
      const uint8_t* row = codes.data() + i / columns * form.row_bytes();
      uint32_t code = 0;
      for (int b = 0; b < k.bits; b++) {
        code |= uint32_t(row[(bit + b) / 8] >> (bit + b) % 8 & 1) << b;
      }
      const double fp4[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
      switch (k.format) {
        case Format::affine:
          parts.push_back({code * s, k.biases() ? scale(k, biases, g) : -k.zero * s});
          break;
        case Format::fp4: {
          double v = (code & 8 ? -1 : 1) * fp4[code & 7];
          parts.push_back({(v + 6) * s, -6 * s});
          break;
        }
        default:
          parts.push_back({e4m3(uint8_t(code)) * s, 0});
      }
    }
  }

  // Sets element g of scales or biases.
  static void set(const Kind& k, Exact<uint8_t>& to, size_t g, double v) { put(type(k), to.data(), g, v); }

 private:
  // Fills codes and scales cheaply, without computing their values.
  void fill(const Kind& k, int64_t n) {
    for (int64_t i = 0; k.format == Format::plain && i < n; i++) {
      put(k.type, codes.data(), size_t(i), normal());
    }
    if (k.format == Format::plain) {
      return;
    }
    for (size_t i = 0; i < codes.size(); i += 8) {
      uint64_t word = check::random()();
      word &= k.format == Format::fp8 ? 0xf7f7f7f7f7f7f7f7 : ~uint64_t(0);  // no NaN
      std::memcpy(codes.data() + i, &word, std::min<size_t>(8, codes.size() - i));
    }
    for (int64_t g = 0; g < n / k.group; g++) {
      set_scale(k, size_t(g));
    }
  }
  static size_t scale_bytes(const Kind& k) {
    return k.scale == ScaleType::f32 ? 4 : k.scale == ScaleType::f16 || k.scale == ScaleType::bf16 ? 2 : 1;
  }
  static Type type(const Kind& k) {
    return k.scale == ScaleType::f32 ? Type::f32 : k.scale == ScaleType::f16 ? Type::f16 : Type::bf16;
  }
  static double scale(const Kind& k, const Exact<uint8_t>& from, size_t g) {
    return k.scale == ScaleType::e8m0   ? std::ldexp(1, from[g] - 127)
           : k.scale == ScaleType::e4m3 ? e4m3(from[g])
                                        : get(type(k), from.data(), g);
  }
  void set_scale(const Kind& k, size_t g) {
    if (k.scale == ScaleType::e8m0) {
      scales[g] = uint8_t(118 + check::below(6));
    } else if (k.scale == ScaleType::e4m3) {
      scales[g] = uint8_t(check::below(0x40));
    } else {
      double s = 0.05 * (0.1 + std::fabs(check::normal())) / (1 << k.bits);
      set(k, scales, g, check::below(20) == 0 ? 0 : s);
      if (k.biases()) {
        set(k, biases, g, -s * (1 << (k.bits - 1)) * (1 + 0.1 * check::normal()));
      }
    }
  }
};

struct Rows {
  Type type;
  int64_t columns;
  Exact<uint8_t> bytes;

  Rows(Type t, int64_t rows, int64_t n) : type(t), columns(n), bytes(size_t(rows * n) * size_of(t)) {
    for (int64_t i = 0; i < rows * n; i++) {
      put(t, bytes.data(), size_t(i), normal() * (check::below(300) == 0 ? 40 : 1));
    }
  }
  double at(int64_t r, int64_t k) const { return get(type, bytes.data(), size_t(r * columns + k)); }
  const void* row(int64_t r) const { return bytes.data() + size_t(r * columns) * size_of(type); }
};

}  // namespace operands
