// Step sizes and gates of recurrent layers; see cpu/delta/delta.h.
#pragma once

#include "cpu/delta/delta.h"
#include "cpu/rows/sweep.h"

namespace ingot::cpu::INGOT_ISA {

// log(1 + e^v)
IG_INLINE F softplus_of(F v) {
  // log(1 + t) is 2 atanh(t / (2 + t)), whose series ends early: t = e^-|v| is at most 1.
  F t = quick_exp(set(0.0f) - abs(v));
  F z = t / (set(2.0f) + t), w = z * z;
  F p = set(1.0f / 13);
  p = fma(p, w, set(1.0f / 11));
  p = fma(p, w, set(1.0f / 9));
  p = fma(p, w, set(1.0f / 7));
  p = fma(p, w, set(1.0f / 5));
  p = fma(p, w, set(1.0f / 3));
  p = fma(p, w, set(1.0f));
  return fma(z + z, p, max(set(0.0f), v));  // max returns its second operand if one is NaN
}

[[maybe_unused]] static void softplus(const Softplus& a) {
  const F least = set(a.least), most = set(a.most);
  if (a.rate) {
    sweep(a.n, [=, &a](int64_t i, auto part) IG_LAMBDA {
      F soft = softplus_of(part.load(a.x + i) + part.load(a.bias + i));
      part.store(a.out + i, quick_exp(part.load(a.rate + i) * soft));
    });
    return;
  }
  sweep(a.n, [=, &a](int64_t i, auto part) IG_LAMBDA {
    F soft = softplus_of(part.load(a.x + i) + part.load(a.bias + i));
    part.store(a.out + i, min(most, max(least, soft)));
  });
}

template <class T>
static void unit_gates(const UnitGates& a) {
  const T *x = static_cast<const T*>(a.x), *input = static_cast<const T*>(a.input),
          *decay = static_cast<const T*>(a.decay);
  sweep(a.n, [=, &a](int64_t i, auto part) IG_LAMBDA {
    const F zero = set(0.0f), one = set(1.0f);
    F rate = part.load(a.rate + i) / (one + quick_exp(zero - (part.load(decay + i) + part.load(a.decay_bias + i))));
    F in = part.load(x + i) / (one + quick_exp(zero - (part.load(input + i) + part.load(a.input_bias + i))));
    part.store(a.gate + i, quick_exp(rate));
    if (!a.first) {
      // 1 - e^2r is -2 tanh(r) / (1 - tanh(r)), without the rounding error of a gate near 1.
      F t = tanh(zero - rate);
      in = in * sqrt((t + t) / (one + t));
    }
    part.store(a.out + i, in);
  });
}

}  // namespace ingot::cpu::INGOT_ISA
