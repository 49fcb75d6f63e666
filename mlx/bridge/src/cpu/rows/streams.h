// Rows of models with several residual streams: sums of rows with weights, rows of equal size, and sparse gates.
#pragma once

#include "cpu/rows/rows.h"
#include "cpu/rows/sweep.h"

namespace ingot::cpu::INGOT_ISA {

template <class T>
static void mix(const Mix& a) {
  const T *x = static_cast<const T*>(a.x), *added = static_cast<const T*>(a.added);
  T* out = static_cast<T*>(a.out);
  sweep(a.size, [=, &a](int64_t i, auto part) IG_LAMBDA {
    F v = added ? part.load(added + i) * set(a.scale) : set(0.0f);
    for (int j = 0; j < a.count; j++) {
      v = fma(part.load(x + j * a.size + i), set(a.weights[j]), v);
    }
    part.store(out + i, v);
  });
}

template <class T>
IG_INLINE float squares_of(const T* x, int64_t n) {
  return sum_over(n, [=](int64_t i, auto part) IG_LAMBDA {
    F v = part.load(x + i);
    return v * v;
  });
}

template <class T>
static void rescale(const void* from, const void* like, void* to, int64_t n, float least) {
  const T* x = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  const float own = squares_of(x, n) / float(n), other = squares_of(static_cast<const T*>(like), n) / float(n);
  F factor = sqrt(set(other / (own < least ? least : own)));
  sweep(n, [=](int64_t i, auto part) IG_LAMBDA { part.store(out + i, part.load(x + i) * factor); });
}

template <class T>
static void sparse(const void* from, void* to, int64_t n, float deviations) {
  const T* x = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  F mean = set(sum_over(n, [=](int64_t i, auto part) IG_LAMBDA { return part.load(x + i); }) / float(n));
  const float squares = sum_over(n, [=](int64_t i, auto part) IG_LAMBDA {
    F v = part.keep(part.load(x + i) - mean, 0.0f);
    return v * v;
  });
  F limit = fma(sqrt(set(squares / float(n))), set(deviations), mean);
  sweep(n, [=](int64_t i, auto part) IG_LAMBDA {
    F v = part.load(x + i) - limit;
    part.store(out + i, select(set(0.0f) > v, set(0.0f), v));  // a NaN stays
  });
}

template <class T>
static void blend(const void* x, const void* delta, const void* by, void* to, int64_t n) {
  const T *a = static_cast<const T*>(x), *d = static_cast<const T*>(delta), *w = static_cast<const T*>(by);
  T* out = static_cast<T*>(to);
  sweep(n, [=](int64_t i, auto part) IG_LAMBDA {
    part.store(out + i, fma(part.load(d + i), part.load(w + i), part.load(a + i)));
  });
}

}  // namespace ingot::cpu::INGOT_ISA
