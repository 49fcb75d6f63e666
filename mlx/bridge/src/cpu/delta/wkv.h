// The scan of RWKV 7; see cpu/delta/delta.h.
#pragma once

#include "cpu/delta/delta.h"
#include "cpu/rows/sweep.h"

namespace ingot::cpu::INGOT_ISA {

// Computes R rows of the state: d = s*decay - (s.removal) write^T + v key^T, and y = d.r.
template <int R>
IG_INLINE void wkv_step(const float* s, float* d, int64_t n, const float* inputs, const float* v, float* y) {
  const float *decay = inputs, *removal = inputs + n, *write = inputs + 2 * n, *key = inputs + 3 * n,
              *read = inputs + 4 * n;
  F predicted[R], output[R], value[R];
  for (int r = 0; r < R; r++) {
    predicted[r] = output[r] = set(0.0f);
    value[r] = set(v[r]);
  }
  sweep(n, [&, s, removal, n](int64_t j, auto part) IG_LAMBDA {
    F k = part.load(removal + j);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      predicted[r] = fma(part.load(s + r * n + j), k, predicted[r]);
    }
  });
  for (int r = 0; r < R; r++) {
    predicted[r] = set(0.0f - sum(predicted[r]));
  }
  sweep(n, [&, s, d, n, decay, write, key, read](int64_t j, auto part) IG_LAMBDA {
    F w = part.load(decay + j), b = part.load(write + j), k = part.load(key + j), q = part.load(read + j);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      F now = fma(value[r], k, fma(predicted[r], b, w * part.load(s + r * n + j)));
      part.store(d + r * n + j, now);
      output[r] = fma(now, q, output[r]);
    }
  });
  for (int r = 0; r < R; r++) {
    y[r] = sum(output[r]);
  }
}

template <class T>
static void wkv(const Wkv& a, float* work) {
  const int64_t n = a.dim;
  float *decay = work, *removal = work + n, *write = work + 2 * n, *key = work + 3 * n, *read = work + 4 * n;
  float *value = work + 5 * n, *y = work + 6 * n;
  const float* s = a.from;
  for (int64_t t = 0; t < a.rows; t++, s = a.to) {
    const int64_t at = t * a.stride;
    auto row = [=](const void* p) { return static_cast<const T*>(p) + at; };
    const T *in_r = row(a.r), *in_w = row(a.w), *in_k = row(a.k), *in_v = row(a.v), *in_a = row(a.a);
    const float squares = sum_over(n, [=, &a](int64_t j, auto part) IG_LAMBDA {
      F k = part.load(in_k + j) * part.load(a.key_scale + j);
      part.store(removal + j, k);
      return k * k;
    });
    F unit = sqrt(set(squares));
    unit = set(1.0f) / max(unit, set(1e-7f));
    const float bonus = sum_over(n, [=, &a](int64_t j, auto part) IG_LAMBDA {
      const F one = set(1.0f), zero = set(0.0f);
      F rate = one / (one + quick_exp(zero - part.load(in_a + j)));
      F r = part.load(in_r + j), k = part.load(in_k + j);
      // e^-0.5 is the fastest decay.
      F gate = set(-0.60653065971263342f) / (one + quick_exp(zero - part.load(in_w + j)));
      part.store(decay + j, quick_exp(gate));
      F removed = part.load(removal + j) * unit;
      part.store(removal + j, removed);
      part.store(write + j, removed * rate);
      k = k * fma(rate - one, part.load(a.key_rate + j), one);
      part.store(key + j, k);
      part.store(read + j, r);
      part.store(value + j, part.load(in_v + j));
      return r * k * part.load(a.bonus + j);
    });
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      wkv_step<4>(s + i * n, a.to + i * n, n, work, value + i, y + i);
    }
    for (; i < n; i++) {
      wkv_step<1>(s + i * n, a.to + i * n, n, work, value + i, y + i);
    }
    F mean = set(sum_over(n, [=](int64_t j, auto part) IG_LAMBDA { return part.load(y + j); }) / float(n));
    const float spread = sum_over(n, [=](int64_t j, auto part) IG_LAMBDA {
      F v = part.keep(part.load(y + j) - mean, 0.0f);
      return v * v;
    });
    F factor = set(1.0f) / sqrt(set(spread / float(n) + a.eps)), more = set(bonus);
    T* out = static_cast<T*>(a.y) + at;
    sweep(n, [=, &a](int64_t j, auto part) IG_LAMBDA {
      F normed = fma((part.load(y + j) - mean) * factor, part.load(a.weight + j), part.load(a.bias + j));
      part.store(out + j, fma(more, part.load(value + j), normed));
    });
  }
}

}  // namespace ingot::cpu::INGOT_ISA
