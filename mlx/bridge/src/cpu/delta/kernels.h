// The gated delta rule, selective scans and the causal convolution before them; see cpu/delta/delta.h.
#pragma once

#include "cpu/delta/delta.h"
#include "cpu/rows/sweep.h"

namespace ingot::cpu::INGOT_ISA {

// One row of R value channels. s and d are states [R][key_dim] and may be the same memory.
template <class T>
struct DeltaStep {
  int64_t key_dim;
  const float* s;
  float* d;
  const float *k, *q;
  float gate, beta, skip;
  const T* v;
  T* y;
};

// Computes d = gate*s + beta*(v - gate * s.k) k^T and y = d.q, or for a scan d = gate*s + beta*v k^T and y = d.q +
// skip*v.
template <int R, bool Scan, class T>
IG_INLINE void delta_step(DeltaStep<T> a) {
  const int64_t n = a.key_dim;
  const float *s = a.s, *k = a.k, *q = a.q;
  float* d = a.d;
  F predicted[R], output[R], update[R];
  for (int r = 0; r < R; r++) {
    predicted[r] = output[r] = set(0.0f);
  }
  if constexpr (!Scan) {
    sweep(n, [&, s, k, n](int64_t j, auto part) IG_LAMBDA {
      F key = part.load(k + j);
#pragma GCC unroll 4
      for (int r = 0; r < R; r++) {
        predicted[r] = fma(part.load(s + r * n + j), key, predicted[r]);
      }
    });
  }
  for (int r = 0; r < R; r++) {
    update[r] = set((Scan ? get(a.v + r) : get(a.v + r) - a.gate * sum(predicted[r])) * a.beta);
  }
  F decay = set(a.gate);
  sweep(n, [&, s, d, k, q, n, decay](int64_t j, auto part) IG_LAMBDA {
    F key = part.load(k + j), query = part.load(q + j);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      F now = fma(update[r], key, decay * part.load(s + r * n + j));
      part.store(d + r * n + j, now);
      output[r] = fma(now, query, output[r]);
    }
  });
  for (int r = 0; r < R; r++) {
    put(a.y + r, Scan ? sum(output[r]) + a.skip * get(a.v + r) : sum(output[r]));
  }
}

template <int R, bool Scan, class T>
IG_INLINE void delta_rows(const Delta& a, int64_t begin, int64_t end, int64_t i, const float* k, const float* q,
                          const float* gates) {
  int64_t n = a.key_dim;
  for (int64_t t = begin; t < end; t++, k += n, q += n) {
    float* d = a.to + t * a.state_stride + i * n;
    const float* s = t > 0 ? d - a.state_stride : a.from ? a.from + i * n : nullptr;
    if (!s) {
      __builtin_memset(d, 0, sizeof(float) * uint64_t(R * n));
      s = d;
    }
    delta_step<R, Scan, T>({.key_dim = n,
                            .s = s,
                            .d = d,
                            .k = k,
                            .q = q,
                            .gate = gates[t - begin],
                            .beta = a.beta[t * a.gate_stride],
                            .skip = a.skip,
                            .v = static_cast<const T*>(a.v) + t * a.value_stride + i,
                            .y = static_cast<T*>(a.y) + t * a.value_stride + i});
  }
}

template <bool Scan, class T>
IG_INLINE void delta_all(const Delta& a, float* work) {
  int64_t n = a.key_dim;
  float gates[kDeltaRows];
  float *k = work, *q = work + kDeltaRows * n;
  for (int64_t begin = 0; begin < a.rows; begin += kDeltaRows) {
    int64_t end = begin + kDeltaRows < a.rows ? begin + kDeltaRows : a.rows;
    for (int64_t t = begin; t < end; t++) {
      if constexpr (Scan) {
        store_some(gates + t - begin, exp(set(a.beta[t * a.gate_stride] * a.rate)), 1);
      } else {
        gates[t - begin] = a.gate[t * a.gate_stride];
      }
      const T* key = static_cast<const T*>(a.k) + t * a.key_stride;
      const T* query = static_cast<const T*>(a.q) + t * a.key_stride;
      float *to_key = k + (t - begin) * n, *to_query = q + (t - begin) * n;
      sweep(n, [=](int64_t j, auto part) IG_LAMBDA {
        part.store(to_key + j, part.load(key + j));
        part.store(to_query + j, part.load(query + j));
      });
    }
    int64_t i = a.begin;
    for (; i + 4 <= a.end; i += 4) {
      delta_rows<4, Scan, T>(a, begin, end, i, k, q, gates);
    }
    for (; i < a.end; i++) {
      delta_rows<1, Scan, T>(a, begin, end, i, k, q, gates);
    }
  }
}

template <class T>
static void delta(const Delta& a, float* work) {
  delta_all<false, T>(a, work);
}

template <class T>
static void scan(const Delta& a, float* work) {
  delta_all<true, T>(a, work);
}

[[maybe_unused]] static void channels(const ChannelScan& a) {
  const int64_t n = a.states;
  for (int64_t i = 0; i < a.n; i++) {
    const float *rate = a.rate + i * n, *s = a.from + i * n;
    float* d = a.to + i * n;
    for (int64_t t = 0; t < a.rows; t++, s = d) {
      const float x = a.x[t * a.stride + i], step = a.step[t * a.stride + i];
      const float *b = a.b + t * n, *c = a.c + t * n;
      const F steps = set(step), input = set(step * x);
      F output = set(0.0f);
      sweep(n, [&, s, d, b, c, rate](int64_t j, auto part) IG_LAMBDA {
        F decay = exp(part.load(rate + j) * steps);
        F now = fma(decay, part.load(s + j), input * part.load(b + j));
        part.store(d + j, now);
        output = fma(now, part.load(c + j), output);
      });
      a.y[t * a.stride + i] = sum(output) + (a.skip ? a.skip[i] * x : 0.0f);
    }
  }
}

template <class T>
static void conv(const Conv& a) {
  const T* w = static_cast<const T*>(a.weight);
  const T* bias = static_cast<const T*>(a.bias);
  T* out = static_cast<T*>(a.out);
  sweep(a.n, [=, &a](int64_t i, auto part) IG_LAMBDA {
    F v = bias ? part.load(bias + i) : set(0.0f);
    for (int j = 0; j < a.count; j++) {
      v = fma(part.load(static_cast<const T*>(a.taps[j]) + i), part.load(w + j * a.weight_stride + i), v);
    }
    part.store(out + i, a.silu ? silu(v) : v);
  });
}

}  // namespace ingot::cpu::INGOT_ISA
