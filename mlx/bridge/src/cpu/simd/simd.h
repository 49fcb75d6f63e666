// Vectors of float32 under one set of names for all instruction sets.
//
// A unit of kernels defines INGOT_ISA (portable, avx2, avx512, avx512bf16 or neon), includes this header and then the
// kernels. They have internal linkage, in namespace ingot::cpu::INGOT_ISA. No function of the standard library may be
// inlined in such a unit: the linker keeps one copy of it for the whole library, and that copy may need instructions
// that the processor lacks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/types.h"

#ifndef INGOT_ISA
#error "define INGOT_ISA before including cpu/simd/simd.h"
#endif

#define IG_INLINE static inline __attribute__((always_inline, unused))
// Keeps GCC 12 from hoisting loads out of a loop, which causes spills.
#define IG_BARRIER() asm volatile("" ::: "memory")
// Keeps GCC 12 from reassociating integer sums, which causes spills.
#if defined(__x86_64__)
#define IG_KEEP(v) asm("" : "+v"(v))
#else
#define IG_KEEP(v) asm("" : "+w"(v))
#endif
// Keeps GCC 12 from holding the address of each element of a small array in a register of its own.
#define IG_HIDE(p) asm("" : "+r"(p))

#if defined(__AVX512F__)
#include "cpu/simd/avx512.h"
#elif defined(__AVX2__)
#include "cpu/simd/avx2.h"
#elif defined(__ARM_NEON) && !defined(INGOT_PORTABLE)
#include "cpu/simd/neon.h"
#else
#include "cpu/simd/portable.h"
#endif

namespace ingot::cpu::INGOT_ISA {

// Loads or stores the first n lanes. Other lanes are zero after a load; a store leaves other memory unchanged.
template <class T>
IG_INLINE F load_some(const T* p, int n) {
  T lanes[kLanes] = {};
  for (int i = 0; i < n; i++) {
    lanes[i] = p[i];
  }
  return load(lanes);
}

template <class T>
IG_INLINE void store_some(T* p, F v, int n) {
  T lanes[kLanes];
  store(lanes, v);
  for (int i = 0; i < n; i++) {
    p[i] = lanes[i];
  }
}

// Converts one element to float32 and back.
template <class T>
IG_INLINE float get(const T* p) {
  float lanes[kLanes];
  store(lanes, load_some(p, 1));
  return lanes[0];
}
IG_INLINE float get(const float* p) { return *p; }
IG_INLINE float get(const bf16* p) {
  uint32_t bits = uint32_t(p->bits) << 16;
  float v;
  __builtin_memcpy(&v, &bits, 4);
  return v;
}

template <class T>
IG_INLINE void put(T* p, float v) { store_some(p, set(v), 1); }
IG_INLINE void put(float* p, float v) { *p = v; }

// e^x within 1 ulp. 0 below -104, NaN for NaN.
IG_INLINE F exp(F x) {
  F low = set(-104.0f), high = set(89.0f);
  F c = select(x < low, low, select(x > high, high, x));  // NaN passes both comparisons
  F n = round(c * set(1.44269504088896341f));
  F r = fma(n, set(-0.693359375f), c);
  r = fma(n, set(2.12194440e-4f), r);
  F p = set(1.9875691500e-4f);
  p = fma(p, r, set(1.3981999507e-3f));
  p = fma(p, r, set(8.3334519073e-3f));
  p = fma(p, r, set(4.1665795894e-2f));
  p = fma(p, r, set(1.6666665459e-1f));
  p = fma(p, r, set(5.0000001201e-1f));
  p = fma(p, r * r, r) + set(1.0f);
  // Multiplies by 2^n in two steps, so that results may be subnormal and n may exceed the exponent's range.
  F half = round(n * set(0.5f));
  return p * power_of_two(half) * power_of_two(n - half);
}

IG_INLINE F sigmoid(F x) { return set(1.0f) / (set(1.0f) + exp(set(0.0f) - x)); }

// tanh(x) with a relative error of about 1e-7.
IG_INLINE F tanh(F x) {
  F s = x * x;
  F p = set(-5.70498872745e-3f);
  p = fma(p, s, set(2.06390887954e-2f));
  p = fma(p, s, set(-5.37397155531e-2f));
  p = fma(p, s, set(1.33314422036e-1f));
  p = fma(p, s, set(-3.33332819422e-1f));
  F small = fma(p * s, x, x);
  F a = abs(x);
  F big = set(1.0f) - set(2.0f) / (exp(a + a) + set(1.0f));
  return select(a < set(0.625f), small, copy_sign(big, x));
}

}  // namespace ingot::cpu::INGOT_ISA
