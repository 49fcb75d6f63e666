// Activations, alone and as gates; element-wise sums and products; softmax.
#pragma once

#include "cpu/rows/rows.h"
#include "cpu/rows/sweep.h"

namespace ingot::cpu::INGOT_ISA {

// Returns e^(a^2) erfc(a) (1 + 2a) for a >= 0: a least-squares polynomial in (a - 3.5)/(a + 3.5) over Chebyshev nodes
// of [0, 9.5], with an error below 4e-9. Beyond 9.5, e^-a^2 is 0.
IG_INLINE F scaled_erfc(F a) {
  F t = (a - set(3.5f)) / (a + set(3.5f));
  F p = set(4.927826828e-4f);
  p = fma(p, t, set(-5.604361060e-4f));
  p = fma(p, t, set(-4.297871912e-3f));
  p = fma(p, t, set(1.919573320e-2f));
  p = fma(p, t, set(-4.877578284e-2f));
  p = fma(p, t, set(8.797013337e-2f));
  p = fma(p, t, set(-1.150970962e-1f));
  p = fma(p, t, set(9.751981131e-2f));
  p = fma(p, t, set(-1.055522238e-2f));
  p = fma(p, t, set(-1.400091943e-1f));
  return fma(p, t, set(1.242349242f));
}

// x times the normal CDF of x. The lower tail is computed directly rather than as 1 minus the upper one.
IG_INLINE F gelu(F x) {
  F c = min(abs(x), set(16.0f));  // beyond 16 the tail is 0
  F a = c * set(0.70710678118654752f);
  // The exponent c^2/2 and its rounding error: the square of the leading digits is exact.
  F lead = rounded<bf16>(c);
  F square = set(0.5f) * lead * lead, rest = set(0.5f) * (c - lead) * (c + lead);
  F exponent = square + rest, lost = rest - (exponent - square);
  F e = quick_exp(set(0.0f) - exponent);
  F tail = set(0.5f) * scaled_erfc(a) / (set(1.0f) + a + a) * (e - e * lost);
  return x * select(x > set(0.0f), set(1.0f) - tail, tail);
}

// 0.5 (1 + tanh(u)) = sigmoid(2u).
IG_INLINE F gelu_tanh(F x) {
  F u = x * fma(x * x, set(0.044715f), set(1.0f));
  return x / (set(1.0f) + quick_exp(u * set(-1.5957691216057308f)));
}

template <Act A>
IG_INLINE F act(F x, F limit, F inverse) {
  if constexpr (A == Act::sigmoid) {
    return set(1.0f) / (set(1.0f) + quick_exp(set(0.0f) - x));
  } else if constexpr (A == Act::silu) {
    return silu(x);
  } else if constexpr (A == Act::gelu) {
    return gelu(x);
  } else if constexpr (A == Act::gelu_tanh) {
    return gelu_tanh(x);
  } else if constexpr (A == Act::relu2) {
    F y = select(set(0.0f) > x, set(0.0f), x);  // a NaN stays
    return y * y;
  } else if constexpr (A == Act::clip) {
    F y = select(x > limit, limit, x), least = set(0.0f) - limit;
    return select(least > y, least, y);
  } else if constexpr (A == Act::exp_tail) {
    F y = select(x > limit, limit, x);
    return select(x > set(0.0f), set(0.0f), quick_exp(y) - set(1.0f) - x);
  } else {
    return limit * tanh(x * inverse);
  }
}

// act at the end of a row, once for all types.
template <Act A>
static __attribute__((noinline)) F last_act(F x, F limit, F inverse) { return act<A>(x, limit, inverse); }

template <Act A, class Part>
IG_INLINE F act_of(Part, F x, F limit, F inverse) {
  if constexpr (kSame<Part, PartialVector>) {
    return last_act<A>(x, limit, inverse);
  } else {
    return act<A>(x, limit, inverse);
  }
}

template <Act A, class T>
static void activate(const void* gate, const void* up, void* to, int64_t n, float limit) {
  const T* g = static_cast<const T*>(gate);
  const T* u = static_cast<const T*>(up);
  T* out = static_cast<T*>(to);
  F cap = set(limit), inverse = set(1.0f) / cap;
  if (!u) {
    sweep(n, [=](int64_t i, auto part) IG_LAMBDA {
      part.store(out + i, act_of<A>(part, part.load(g + i), cap, inverse));
    });
    return;
  }
  sweep(n, [=](int64_t i, auto part) IG_LAMBDA {
    part.store(out + i, act_of<A>(part, part.load(g + i), cap, inverse) * part.load(u + i));
  });
}

template <class T>
static void clamped_gate(const ClampedGate& c) {
  const T *gate = static_cast<const T*>(c.gate), *up = static_cast<const T*>(c.up);
  const T *gate_bias = static_cast<const T*>(c.gate_bias), *up_bias = static_cast<const T*>(c.up_bias);
  T* out = static_cast<T*>(c.out);
  F most = set(c.limit), least = set(-c.limit), rate = set(-c.alpha), shift = set(c.shift);
  sweep(c.n, [=](int64_t i, auto part) IG_LAMBDA {
    F g = part.load(gate + i), u = part.load(up + i);
    if (gate_bias) {
      g = g + part.load(gate_bias + i);
      u = u + part.load(up_bias + i);
    }
    g = select(g > most, most, g);  // a NaN stays
    u = select(u > most, most, u);
    u = select(least > u, least, u);
    F swish = g / (set(1.0f) + quick_exp(g * rate));
    part.store(out + i, (u + shift) * swish);
  });
}

template <class T>
static void add(const void* a, const void* b, void* to, int64_t n) {
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  T* out = static_cast<T*>(to);
  sweep(n, [=](int64_t i, auto part) IG_LAMBDA { part.store(out + i, part.load(x + i) + part.load(y + i)); });
}

template <class T>
static void multiply(const void* a, const void* b, void* to, int64_t n) {
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  T* out = static_cast<T*>(to);
  sweep(n, [=](int64_t i, auto part) IG_LAMBDA { part.store(out + i, part.load(x + i) * part.load(y + i)); });
}

template <class T>
static void scale(const void* from, float by, void* to, int64_t n) {
  const T* x = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  F f = set(by);
  sweep(n, [=](int64_t i, auto part) IG_LAMBDA { part.store(out + i, part.load(x + i) * f); });
}

// Ignores NaN: returns -inf if all elements are NaN.
template <class T>
IG_INLINE float largest_of(const T* x, int64_t n) {
  F m = set(-__builtin_inff());
  sweep(n, [=, &m](int64_t i, auto part) IG_LAMBDA {
    F v = part.keep(part.load(x + i), -__builtin_inff());
    m = select(v > m, v, m);
  });
  return highest(m);
}

template <class T>
static void softmax(const void* from, void* to, int64_t n, float* work) {
  const T* x = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  F m = set(largest_of(x, n));
  float total = sum_over(n, [=](int64_t i, auto part) IG_LAMBDA {
    F e = part.keep(quick_exp(part.load(x + i) - m), 0.0f);
    part.store(work + i, e);
    return e;
  });
  F factor = set(1.0f / total);
  sweep(n, [=](int64_t i, auto part) IG_LAMBDA { part.store(out + i, part.load(work + i) * factor); });
}

template <class T>
static void exp_sum(const void* from, int64_t n, float* largest, float* sum) {
  const T* x = static_cast<const T*>(from);
  *largest = largest_of(x, n);
  F m = set(*largest > -__builtin_inff() ? *largest : 0.0f);
  *sum = sum_over(n, [=](int64_t i, auto part) IG_LAMBDA { return part.keep(quick_exp(part.load(x + i) - m), 0.0f); });
}

}  // namespace ingot::cpu::INGOT_ISA
