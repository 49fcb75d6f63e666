// Rotary position embedding (rope) of one row.
#pragma once

#include "cpu/rows/rows.h"
#include "cpu/rows/sweep.h"

namespace ingot::cpu::INGOT_ISA {

// The angle is the float32 product, as in reference implementations. Its sine and cosine are computed in float64, so
// that positions in the millions lose no further precision. The loops are plain: compilers vectorize them.
static void angles(const float* freqs, const float* positions, int64_t n, float scale, float* cos, float* sin) {
  // Adding this rounds to an integer, which is then in the low bits.
  constexpr double kRound = 0x1.8p52;
  for (int64_t i = 0; i < n; i++) {
    double x = double(positions[i] * freqs[i]);
    double shifted = x * 0.63661977236758134308 + kRound;
    double quarters = shifted - kRound;
    double r = x - quarters * 1.57079632679489655800;
    r -= quarters * 6.12323399573676603587e-17;
    int64_t bits;
    __builtin_memcpy(&bits, &shifted, 8);
    double s = r * r;
    // Taylor series with an error below 1e-11 for |r| <= pi/4.
    double si =
        r + r * s * (-1.0 / 6 + s * (1.0 / 120 + s * (-1.0 / 5040 + s * (1.0 / 362880 + s * (-1.0 / 39916800)))));
    double co = 1 + s * (-0.5 + s * (1.0 / 24 + s * (-1.0 / 720 + s * (1.0 / 40320 + s * (-1.0 / 3628800)))));
    bool odd = bits & 1;
    double a = odd ? si : co, b = odd ? co : si;
    cos[i] = float(((bits + 1) & 2) ? -a : a) * scale;
    sin[i] = float((bits & 2) ? -b : b) * scale;
  }
}

template <class T>
static void rotate(const void* from, void* to, int64_t n, int64_t half, bool traditional, const float* cos,
                   const float* sin) {
  const T* x = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  if (!traditional) {
    sweep(half, [=](int64_t i, auto part) IG_LAMBDA {
      F a = part.load(x + i), b = part.load(x + half + i), c = part.load(cos + i), s = part.load(sin + i);
      part.store(out + i, a * c - b * s);
      part.store(out + half + i, b * c + a * s);
    });
  } else {
    int64_t i = 0;
    for (; i + kLanes <= half; i += kLanes) {
      float in[2 * kLanes], even[kLanes], odd[kLanes];
      store(in, load(x + 2 * i));
      store(in + kLanes, load(x + 2 * i + kLanes));
      for (int j = 0; j < kLanes; j++) {
        float a = in[2 * j], b = in[2 * j + 1];
        even[j] = a * cos[i + j] - b * sin[i + j];
        odd[j] = b * cos[i + j] + a * sin[i + j];
      }
      for (int j = 0; j < kLanes; j++) {
        in[2 * j] = even[j];
        in[2 * j + 1] = odd[j];
      }
      store(out + 2 * i, load(in));
      store(out + 2 * i + kLanes, load(in + kLanes));
    }
    for (; i < half; i++) {
      float a = get(x + 2 * i), b = get(x + 2 * i + 1);
      put(out + 2 * i, a * cos[i] - b * sin[i]);
      put(out + 2 * i + 1, b * cos[i] + a * sin[i]);
    }
  }
  if (out != x && 2 * half < n) {
    __builtin_memcpy(out + 2 * half, x + 2 * half, sizeof(T) * uint64_t(n - 2 * half));
  }
}

}  // namespace ingot::cpu::INGOT_ISA
