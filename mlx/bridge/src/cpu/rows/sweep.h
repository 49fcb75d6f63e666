// Vectorized loops over a row, with the remainder at its end.
#pragma once

#include "cpu/simd/simd.h"

namespace ingot::cpu::INGOT_ISA {

#define IG_LAMBDA __attribute__((always_inline))
// Keeps the compiler from contracting the product v and a following sum to an FMA, which rounds once.
#if defined(__x86_64__)
#define IG_SEPARATE(v) asm("" : "+x"(v))
#elif defined(__aarch64__)
#define IG_SEPARATE(v) asm("" : "+w"(v))
#else
#define IG_SEPARATE(v) asm("" : "+m"(v))
#endif

// FullVector accesses a whole vector, PartialVector the first n lanes of one.
struct FullVector {
  template <class T>
  IG_LAMBDA F load(const T* p) const { return INGOT_ISA::load(p); }
  template <class T>
  IG_LAMBDA void store(T* p, F v) const { INGOT_ISA::store(p, v); }
  IG_LAMBDA F keep(F v, float) const { return v; }
};
struct PartialVector {
  int n;
  template <class T>
  IG_LAMBDA F load(const T* p) const { return load_some(p, n); }
  template <class T>
  IG_LAMBDA void store(T* p, F v) const { store_some(p, v, n); }
  // Sets the lanes from n on to other.
  IG_LAMBDA F keep(F v, float other) const {
    float lanes[kLanes];
    INGOT_ISA::store(lanes, v);
    for (int i = n; i < kLanes; i++) {
      lanes[i] = other;
    }
    return INGOT_ISA::load(lanes);
  }
};

template <class Fn>
IG_INLINE void sweep(int64_t n, Fn fn) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    fn(i, FullVector{});
  }
  if (i < n) {
    fn(i, PartialVector{int(n - i)});
  }
}

// e^x with two operations fewer than exp: 0 below -87.7, infinity above 88.4, NaN for NaN (min and max return their
// second operand then).
IG_INLINE F quick_exp(F x) {
  F c = max(set(-88.0f), min(set(89.0f), x));
  F n = round(c * set(1.44269504088896341f));
  F r = fma(n, set(-0.693359375f), c);
  r = fma(n, set(2.12194440e-4f), r);
  F p = set(1.9875691500e-4f);
  p = fma(p, r, set(1.3981999507e-3f));
  p = fma(p, r, set(8.3334519073e-3f));
  p = fma(p, r, set(4.1665795894e-2f));
  p = fma(p, r, set(1.6666665459e-1f));
  p = fma(p, r, set(5.0000001201e-1f));
  // The biased exponents of n = -127 and n = 128 are those of 0 and infinity.
  return (fma(p, r * r, r) + set(1.0f)) * power_of_two(n);
}

// x / (1 + e^-x)
IG_INLINE F silu(F x) { return x / (set(1.0f) + quick_exp(set(0.0f) - x)); }

// Returns the sum of fn over n elements. fn returns 0 in the lanes past the end.
template <class Fn>
IG_INLINE float sum_over(int64_t n, Fn fn) {
  F a = set(0.0f), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = a + fn(i, FullVector{});
    b = b + fn(i + kLanes, FullVector{});
    c = c + fn(i + 2 * kLanes, FullVector{});
    d = d + fn(i + 3 * kLanes, FullVector{});
  }
  for (; i + kLanes <= n; i += kLanes) {
    a = a + fn(i, FullVector{});
  }
  if (i < n) {
    b = b + fn(i, PartialVector{int(n - i)});
  }
  return sum((a + b) + (c + d));
}

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

// Returns v rounded to T.
template <class T>
IG_INLINE F rounded(F v) {
  if constexpr (kSame<T, float>) {
    return v;
  } else {
    T lanes[kLanes];
    store(lanes, v);
    return load(lanes);
  }
}

}  // namespace ingot::cpu::INGOT_ISA
