// The gated delta rule, selective scans and the causal convolution before them; see cpu/delta/delta.h.
#pragma once

#include "cpu/delta/delta.h"
#include "cpu/rows/sweep.h"

namespace ingot::cpu::INGOT_ISA {

enum class Rule { delta, columns, scan };  // the gated delta rule, with a gate for each column, and a selective scan

// One row of R value channels. s and d are states [R][key_dim] and may be the same memory.
template <class T>
struct DeltaStep {
  int64_t key_dim;
  const float* s;
  float* d;
  const float *k, *q;
  const float* gates;  // of columns
  const float* next;   // the next row's key (times its gates, of columns)
  float gate, beta, skip;
  const T* v;
  T* y;
};

// Computes d = gate*s + beta*(v - (gate*s).k) k^T and y = d.q, or for a scan d = gate*s + beta*v k^T and y = d.q +
// skip*v. seen has s.k before and, if there is a next row, d.next after: the state is then read once for a row.
template <int R, Rule rule, bool Next, class T>
IG_INLINE void delta_step(DeltaStep<T> a, float (&seen)[R]) {
  constexpr bool kColumns = rule == Rule::columns, kScan = rule == Rule::scan;
  const int64_t n = a.key_dim;
  const float *s = a.s, *k = a.k, *q = a.q, *gates = a.gates, *next = a.next;
  float* d = a.d;
  F predicted[R], output[R], update[R];
  const float gate = kColumns ? 1.0f : a.gate;
  for (int r = 0; r < R; r++) {
    predicted[r] = output[r] = set(0.0f);
    update[r] = set((kScan ? get(a.v + r) : get(a.v + r) - gate * seen[r]) * a.beta);
  }
  const F all = set(gate);
  sweep(n, [&, s, d, k, q, gates, next, n, all](int64_t j, auto part) IG_LAMBDA {
    F key = part.load(k + j), query = part.load(q + j), decay = all, after = key;
    if constexpr (kColumns) {
      decay = part.load(gates + j);
    }
    if constexpr (Next && !kScan) {
      after = part.load(next + j);
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      F now = fma(update[r], key, decay * part.load(s + r * n + j));
      part.store(d + r * n + j, now);
      output[r] = fma(now, query, output[r]);
      if constexpr (Next && !kScan) {
        predicted[r] = fma(now, after, predicted[r]);
      }
    }
  });
  for (int r = 0; r < R; r++) {
    put(a.y + r, kScan ? sum(output[r]) + a.skip * get(a.v + r) : sum(output[r]));
    if constexpr (Next && !kScan) {
      seen[r] = sum(predicted[r]);
    }
  }
}

// The products of R rows of a state with a key.
template <int R>
IG_INLINE void predict(const float* s, const float* key, int64_t n, float (&seen)[R]) {
  F predicted[R];
  for (int r = 0; r < R; r++) {
    predicted[r] = set(0.0f);
  }
  sweep(n, [&, s, key, n](int64_t j, auto part) IG_LAMBDA {
    F k = part.load(key + j);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      predicted[r] = fma(part.load(s + r * n + j), k, predicted[r]);
    }
  });
  for (int r = 0; r < R; r++) {
    seen[r] = sum(predicted[r]);
  }
}

// Rows [begin, end) of R value channels from channel i on. work holds their keys, queries and gated keys.
template <int R, Rule rule, class T>
IG_INLINE void delta_rows(const Delta& a, int64_t begin, int64_t end, int64_t i, const float* work,
                          const float* gates) {
  constexpr bool kColumns = rule == Rule::columns;
  int64_t n = a.key_dim;
  const float* seeks = kColumns ? work + 2 * kDeltaRows * n : work;  // what predictions read
  float seen[R] = {};
  for (int64_t t = begin; t < end; t++, work += n, seeks += n) {
    float* d = a.to + t * a.state_stride + i * n;
    const float* s = t > 0 ? d - a.state_stride : a.from ? a.from + i * n : nullptr;
    if (!s) {
      __builtin_memset(d, 0, sizeof(float) * uint64_t(R * n));
      s = d;
    }
    if (rule != Rule::scan && t == begin) {
      predict<R>(s, seeks, n, seen);
    }
    DeltaStep<T> step{.key_dim = n,
                      .s = s,
                      .d = d,
                      .k = work,
                      .q = work + kDeltaRows * n,
                      .gates = kColumns ? a.gate + t * a.gate_stride * n : nullptr,
                      .next = seeks + n,
                      .gate = gates[t - begin],
                      .beta = a.beta[t * a.gate_stride],
                      .skip = a.skip,
                      .v = static_cast<const T*>(a.v) + t * a.value_stride + i,
                      .y = static_cast<T*>(a.y) + t * a.value_stride + i};
    if (t + 1 < end) {
      delta_step<R, rule, true>(step, seen);
    } else {
      delta_step<R, rule, false>(step, seen);
    }
  }
}

template <Rule rule, class T>
IG_INLINE void delta_all(const Delta& a, float* work) {
  int64_t n = a.key_dim;
  float gates[kDeltaRows] = {};
  for (int64_t begin = 0; begin < a.rows; begin += kDeltaRows) {
    int64_t end = begin + kDeltaRows < a.rows ? begin + kDeltaRows : a.rows;
    for (int64_t t = begin; t < end; t++) {
      if constexpr (rule == Rule::scan) {
        store_some(gates + t - begin, exp(set(a.beta[t * a.gate_stride] * a.rate)), 1);
      } else if constexpr (rule == Rule::delta) {
        gates[t - begin] = a.gate[t * a.gate_stride];
      }
      const T* key = static_cast<const T*>(a.k) + t * a.key_stride;
      const T* query = static_cast<const T*>(a.q) + t * a.key_stride;
      const float* columns = rule == Rule::columns ? a.gate + t * a.gate_stride * n : nullptr;
      float *to_key = work + (t - begin) * n, *to_query = to_key + kDeltaRows * n, *gated = to_query + kDeltaRows * n;
      sweep(n, [=](int64_t j, auto part) IG_LAMBDA {
        part.store(to_key + j, part.load(key + j));
        part.store(to_query + j, part.load(query + j));
        if constexpr (rule == Rule::columns) {
          part.store(gated + j, part.load(key + j) * part.load(columns + j));
        }
      });
    }
    int64_t i = a.begin;
    for (; i + 4 <= a.end; i += 4) {
      delta_rows<4, rule, T>(a, begin, end, i, work, gates);
    }
    for (; i < a.end; i++) {
      delta_rows<1, rule, T>(a, begin, end, i, work, gates);
    }
  }
}

template <class T>
static void delta(const Delta& a, float* work) {
  delta_all<Rule::delta, T>(a, work);
}

template <class T>
static void column_delta(const Delta& a, float* work) {
  delta_all<Rule::columns, T>(a, work);
}

template <class T>
static void scan(const Delta& a, float* work) {
  delta_all<Rule::scan, T>(a, work);
}

// The scan of a few rows of a channel: vectors are along its states.
IG_INLINE void channel_rows(const ChannelScan& a, int64_t i) {
  const int64_t n = a.states;
  const float *rate = a.rate + i * n, *s = a.from + i * n;
  float* d = a.to + i * n;
  for (int64_t t = 0; t < a.rows; t++, s = d) {
    const float x = a.x[t * a.stride + i], step = a.step[t * a.stride + i];
    const float *b = a.b + t * n, *c = a.c + t * n;
    const F steps = set(step), input = set(step * x);
    F output = set(0.0f);
    sweep(n, [&, s, d, b, c, rate](int64_t j, auto part) IG_LAMBDA {
      F decay = quick_exp(part.load(rate + j) * steps);
      F now = fma(decay, part.load(s + j), input * part.load(b + j));
      part.store(d + j, now);
      output = fma(now, part.load(c + j), output);
    });
    a.y[t * a.stride + i] = sum(output) + (a.skip ? a.skip[i] * x : 0.0f);
  }
}

// The scan of many rows of count channels, which a vector holds: work has their rates and states by state.
template <class Part>
IG_INLINE void channel_vector(const ChannelScan& a, int64_t i, int count, Part part, float* work) {
  const int64_t n = a.states;
  float *rate = work, *state = work + n * kLanes;
  for (int64_t j = 0; j < n; j++) {
    for (int l = 0; l < kLanes; l++) {
      rate[j * kLanes + l] = l < count ? a.rate[(i + l) * n + j] : 0;
      state[j * kLanes + l] = l < count ? a.from[(i + l) * n + j] : 0;
    }
  }
  for (int64_t t = 0; t < a.rows; t++) {
    const float *b = a.b + t * n, *c = a.c + t * n;
    const F x = part.load(a.x + t * a.stride + i), step = part.load(a.step + t * a.stride + i), input = step * x;
    F output = a.skip ? part.load(a.skip + i) * x : set(0.0f);
    for (int64_t j = 0; j < n; j++) {
      F now = fma(quick_exp(load(rate + j * kLanes) * step), load(state + j * kLanes), input * set(b[j]));
      store(state + j * kLanes, now);
      output = fma(now, set(c[j]), output);
    }
    part.store(a.y + t * a.stride + i, output);
  }
  for (int l = 0; l < count; l++) {
    for (int64_t j = 0; j < n; j++) {
      a.to[(i + l) * n + j] = state[j * kLanes + l];
    }
  }
}

[[maybe_unused]] static void channels(const ChannelScan& a, float* work) {
  constexpr int64_t kSmallBatch = 4;  // for which it takes longer to reorder states than to add along them
  if (a.rows < kSmallBatch) {
    for (int64_t i = 0; i < a.n; i++) {
      channel_rows(a, i);
    }
    return;
  }
  sweep(a.n, [&a, work](int64_t i, auto part) IG_LAMBDA {
    channel_vector(a, i, a.n - i < kLanes ? int(a.n - i) : kLanes, part, work);
  });
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
