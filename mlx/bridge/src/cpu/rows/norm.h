// RMS norm and layer norm of one row.
#pragma once

#include "cpu/rows/rows.h"
#include "cpu/rows/sweep.h"

namespace ingot::cpu::INGOT_ISA {

// Returns weight + offset of the elements from i on.
template <class T, class P>
IG_INLINE F weight_of(const Norm& a, int64_t i, P part) {
  F w = a.weight_f32 ? part.load(static_cast<const float*>(a.weight) + i)
                     : part.load(static_cast<const T*>(a.weight) + i);
  return w + set(a.offset);
}

template <class T>
static void rms_norm(const Norm& a) {
  const T* x = static_cast<const T*>(a.x);
  T* out = static_cast<T*>(a.out);
  float squares;
  if (a.residual) {
    const T* r = static_cast<const T*>(a.residual);
    T* sum = static_cast<T*>(a.sum);
    squares = sum_over(a.n, [=](int64_t i, auto part) IG_LAMBDA {
      F v = rounded<T>(part.load(x + i) + part.load(r + i));
      part.store(sum + i, v);
      return v * v;
    });
    x = sum;
  } else {
    squares = sum_over(a.n, [=](int64_t i, auto part) IG_LAMBDA {
      F v = part.load(x + i);
      return v * v;
    });
  }
  F factor = set(1.0f) / sqrt(set(squares / float(a.n) + a.eps));
  if (!a.weight) {
    sweep(a.n, [=](int64_t i, auto part) IG_LAMBDA { part.store(out + i, part.load(x + i) * factor); });
    return;
  }
  sweep(a.n, [=, &a](int64_t i, auto part) IG_LAMBDA {
    part.store(out + i, part.load(x + i) * factor * weight_of<T>(a, i, part));
  });
}

template <class T>
static void layer_norm(const Norm& a) {
  const T* x = static_cast<const T*>(a.x);
  const T* bias = static_cast<const T*>(a.bias);
  T* out = static_cast<T*>(a.out);
  F mean = set(sum_over(a.n, [=](int64_t i, auto part) IG_LAMBDA { return part.load(x + i); }) / float(a.n));
  float squares = sum_over(a.n, [=](int64_t i, auto part) IG_LAMBDA {
    F v = part.keep(part.load(x + i) - mean, 0.0f);
    return v * v;
  });
  F factor = set(1.0f) / sqrt(set(squares / float(a.n) + a.eps));
  sweep(a.n, [=, &a](int64_t i, auto part) IG_LAMBDA {
    F v = (part.load(x + i) - mean) * factor;
    if (a.weight) {
      v = v * weight_of<T>(a, i, part);
    }
    if (bias) {
      v = v + part.load(bias + i);
    }
    part.store(out + i, v);
  });
}

}  // namespace ingot::cpu::INGOT_ISA
