// Attention of few query vectors (decoding), which is bound by reading keys and values: each is read once for up to
// four vectors, in the type in which it is stored.
#pragma once

#include "cpu/attention/packed.h"

namespace ingot::cpu::INGOT_ISA {

constexpr int kChunk = 2 * kLanes;               // channels that are loaded at a time
constexpr int kSums = kLanes == 4 ? 8 : kLanes;  // dot products in registers
constexpr int kSmallBatchKeys = kMaxBlockKeys;   // keys of a block
constexpr int kMaxSmallBatchVectors = 64;        // query vectors of a task

// reorder permutes the channels of a vector to the order in which load_two loads keys and values of type T; restore
// undoes it.
template <class T>
IG_INLINE void reorder(const float* from, float* to, int dim) {
  for (int d = 0; d < dim; d += kLanes) {
    store(to + d, load(from + d));
  }
}
template <class T>
IG_INLINE void restore(const float* from, float* to, int dim) {
  reorder<T>(from, to, dim);
}
template <>
inline __attribute__((always_inline)) void reorder<bf16>(const float* from, float* to, int dim) {
  for (int d = 0; d < dim; d += kChunk) {
    for (int i = 0; i < kLanes; i++) {
      to[d + i] = from[d + 2 * i];
      to[d + kLanes + i] = from[d + 2 * i + 1];
    }
  }
}
template <>
inline __attribute__((always_inline)) void restore<bf16>(const float* from, float* to, int dim) {
  for (int d = 0; d < dim; d += kChunk) {
    for (int i = 0; i < kLanes; i++) {
      to[d + 2 * i] = from[d + i];
      to[d + 2 * i + 1] = from[d + kLanes + i];
    }
  }
}

// Rows of dim channels.
template <class T>
struct Rows {
  const T* at;
  int64_t stride;
  int dim;
};

// Computes score[j*Q+i] = keys[j] . q[i] for n keys and Q query vectors. It also writes up to kSums-1 scores after the
// last. Prefetches the rows of next (the values), which are read afterwards.
template <class T, int Q>
static void small_batch_scores(Rows<T> keys, Rows<T> next, int n, const float* q, float* score) {
  const int dim = keys.dim;
  constexpr int kKeys = kSums / Q;
  for (int j = 0; j < n; j += kKeys) {
    const T* rows[kKeys];
    F sum[kSums];
#pragma GCC unroll 16
    for (int i = 0; i < kKeys; i++) {
      int row = j + i < n ? j + i : n - 1;
      rows[i] = keys.at + row * keys.stride;
      for (int d = 0; d < next.dim; d += int(64 / sizeof(T))) {
        prefetch(next.at + row * next.stride + d);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSums; i++) {
      sum[i] = set(0);
    }
    for (int d = 0; d < dim; d += kChunk) {
      if constexpr (Q == 4) {
        F a[kKeys], b[kKeys];
#pragma GCC unroll 16
        for (int i = 0; i < kKeys; i++) {
          load_two(rows[i] + d, a[i], b[i]);
        }
#pragma GCC unroll 16
        for (int v = 0; v < Q; v++) {
          F q0 = load(q + v * dim + d);
#pragma GCC unroll 16
          for (int i = 0; i < kKeys; i++) {
            sum[i * Q + v] = fma(a[i], q0, sum[i * Q + v]);
          }
        }
#pragma GCC unroll 16
        for (int v = 0; v < Q; v++) {
          F q1 = load(q + v * dim + d + kLanes);
#pragma GCC unroll 16
          for (int i = 0; i < kKeys; i++) {
            sum[i * Q + v] = fma(b[i], q1, sum[i * Q + v]);
          }
        }
      } else {
        F q0[Q], q1[Q];
#pragma GCC unroll 16
        for (int v = 0; v < Q; v++) {
          q0[v] = load(q + v * dim + d);
          q1[v] = load(q + v * dim + d + kLanes);
        }
#pragma GCC unroll 16
        for (int i = 0; i < kKeys; i++) {
          F a, b;
          load_two(rows[i] + d, a, b);
#pragma GCC unroll 16
          for (int v = 0; v < Q; v++) {
            sum[i * Q + v] = fma(a, q0[v], sum[i * Q + v]);
            sum[i * Q + v] = fma(b, q1[v], sum[i * Q + v]);
          }
        }
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSums; i += kLanes) {
      store(score + j * Q + i, sums(sum + i));
    }
  }
}

// Computes out[i] += weight[j*Q+i] * v[j] over n values, for Q query vectors and the C chunks of channels from d on.
template <class T, int Q, int C>
IG_INLINE void small_batch_channels(const T* v, int64_t stride, int n, const float* weight, int dim, int d,
                                    float* out) {
  F a[Q * C], b[Q * C];
#pragma GCC unroll 16
  for (int i = 0; i < Q * C; i++) {
    a[i] = load(out + i / C * dim + d + i % C * kChunk);
    b[i] = load(out + i / C * dim + d + i % C * kChunk + kLanes);
  }
  for (int j = 0; j < n; j++) {
    F x[C], y[C];
#pragma GCC unroll 16
    for (int c = 0; c < C; c++) {
      load_two(v + j * stride + d + c * kChunk, x[c], y[c]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Q; i++) {
      F w = set(weight[j * Q + i]);
#pragma GCC unroll 16
      for (int c = 0; c < C; c++) {
        a[i * C + c] = fma(w, x[c], a[i * C + c]);
        b[i * C + c] = fma(w, y[c], b[i * C + c]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Q * C; i++) {
    store(out + i / C * dim + d + i % C * kChunk, a[i]);
    store(out + i / C * dim + d + i % C * kChunk + kLanes, b[i]);
  }
}

template <class T, int Q>
static void small_batch_sums(const T* v, int64_t stride, int n, const float* weight, int dim, float* out) {
  constexpr int kWide = 4 / Q;
  // Each group of channels is a pass over the values, so only as many values as fit in the L1 cache are processed at a
  // time.
  const int at_once = dim <= 128 ? 64 : dim <= 256 ? 32 : 16;
  for (int j = 0; j < n; j += at_once) {
    int m = n - j < at_once ? n - j : at_once, d = 0;
    for (; d + kWide * kChunk <= dim; d += kWide * kChunk) {
      small_batch_channels<T, Q, kWide>(v + j * stride, stride, m, weight + j * Q, dim, d, out);
    }
    for (; d < dim; d += kChunk) {
      small_batch_channels<T, Q, 1>(v + j * stride, stride, m, weight + j * Q, dim, d, out);
    }
  }
}

// Applies the soft cap and the mask to the scores of n keys from position p on, and sets scores that vectors first to
// first+Q-1 do not see to -inf.
template <int Q>
static __attribute__((noinline)) void small_batch_masks(const AttentionTask& t, int first, int vectors, int64_t p,
                                                        int n, float* score) {
  const auto& s = *t.shape;
  if (s.softcap > 0) {
    for (int i = 0; i < n * Q; i += kLanes) {
      store(score + i, capped(load(score + i), s.softcap));
    }
  }
  for (int i = 0; i < Q; i++) {
    int m = first + i < vectors ? first + i : vectors - 1;
    if (t.mask.data) {
      float mask[kSmallBatchKeys];
      read_mask(t, m / t.heads, m % t.heads, p, n, mask, 1);
      for (int j = 0; j < n; j++) {
        float& x = score[j * Q + i];
        x = t.mask.additive ? x + mask[j] : mask[j] != 0 ? x : kLowest;
      }
    }
    int begin = int(first_visible(t, m / t.heads, p, n)), end = int(end_visible(t, m / t.heads, p, n));
    for (int j = 0; j < begin; j++) {
      score[j * Q + i] = kNone;
    }
    for (int j = end; j < n; j++) {
      score[j * Q + i] = kNone;
    }
  }
  for (int i = n * Q; i % kSums != 0; i++) {
    score[i] = kNone;
  }
}

// Replaces the scores of n keys by their softmax weights relative to the new maximum, and rescales earlier sums to it.
// It is not inlined, so that there is one copy for all types.
template <int Q>
static __attribute__((noinline)) void small_batch_softmax(int n, int value_dim, float* score, float* out,
                                                          float* weights, float* highest) {
  int scores = (n * Q + kSums - 1) / kSums * kSums;
  F most = set(kNone);
  for (int i = 0; i < scores; i += kLanes) {
    most = max(most, load(score + i));
  }
  // Lane i belongs to vector i % Q.
  float lanes[kLanes], bases[kLanes], factors[Q];
  store(lanes, most);
  for (int i = 0; i < Q; i++) {
    float top = highest[i];
    for (int l = i; l < kLanes; l += Q) {
      top = lanes[l] > top ? lanes[l] : top;
    }
    float base = top == kNone ? 0 : top;
    factors[i] = scalar_exp(highest[i] - base);
    highest[i] = top;
    for (int l = i; l < kLanes; l += Q) {
      bases[l] = base;
    }
  }
  F base = load(bases), total = set(0);
  for (int i = 0; i < scores; i += kLanes) {
    F weight = exp(load(score + i) - base);
    store(score + i, weight);
    total = total + weight;
  }
  store(lanes, total);
  for (int i = 0; i < Q; i++) {
    weights[i] *= factors[i];
    for (int l = i; l < kLanes; l += Q) {
      weights[i] += lanes[l];
    }
    if (factors[i] != 1) {
      for (int d = 0; d < value_dim; d += kLanes) {
        store(out + i * value_dim + d, load(out + i * value_dim + d) * set(factors[i]));
      }
    }
  }
}

// Query vectors of a task that are processed together, and their results so far. Pointers are those of the first.
struct QueryGroup {
  int first, vectors;  // index of the first, and the number of vectors of the task
  const float* q;
  float *out, *weights, *highest;
};

// Processes one block of n keys from position p on for a group of Q query vectors.
template <class T, int Q>
static void small_batch_block(const AttentionTask& t, QueryGroup g, int64_t p, int n, const KeyRun& run) {
  const auto& s = *t.shape;
  int last = g.first + Q < g.vectors ? g.first + Q - 1 : g.vectors - 1;
  int begin = int(first_visible(t, g.first / t.heads, p, n)), end = int(end_visible(t, last / t.heads, p, n));
  if (begin >= end) {
    return;
  }
  p += begin;
  n = end - begin;
  const T* k = static_cast<const T*>(run.k) + (p - run.position) * run.k_row;
  const T* v = static_cast<const T*>(run.v) + (p - run.position) * run.v_row;
  float score[kSmallBatchKeys * Q + kSums];
  // Unpacked values are in the cache already.
  const Rows<T> keys = {.at = k, .stride = run.k_row, .dim = s.dim};
  const Rows<T> values = {.at = v, .stride = run.v_row, .dim = s.bits > 0 ? 0 : s.value_dim};
  small_batch_scores<T, Q>(keys, values, n, g.q, score);
  small_batch_masks<Q>(t, g.first, g.vectors, p, n, score);
  small_batch_softmax<Q>(n, s.value_dim, score, g.out, g.weights, g.highest);
  small_batch_sums<T, Q>(v, run.v_row, n, score, s.value_dim, g.out);
}

// Returns how many of the remaining vectors are processed together: 4, 2 or 1. Three are padded to four.
IG_INLINE int group_size(int left) { return left >= 3 ? 4 : left; }

template <class T>
static void small_batch_of(const AttentionTask& t) {
  const auto& s = *t.shape;
  const int vectors = t.rows * t.heads, room = (vectors + 3) / 4 * 4;
  float* q = static_cast<float*>(t.scratch);
  float* out = q + int64_t(room) * s.dim;
  float* row = out + int64_t(room) * s.value_dim;
  float *keys = row + s.dim, *values = keys + int64_t(t.block) * s.dim;  // buffers for unpacked rows
  float weights[kMaxSmallBatchVectors], highest[kMaxSmallBatchVectors];
  for (int m = 0; m < room; m++) {
    float* to = q + int64_t(m) * s.dim;
    if (m < vectors) {
      widen_query(t, m / t.heads, m % t.heads, row);
      reorder<T>(row, to, s.dim);
    } else {
      for (int d = 0; d < s.dim; d += kLanes) {
        store(to + d, set(0));
      }
    }
    weights[m] = 0;
    highest[m] = kNone;
  }
  for (int64_t i = 0; i < int64_t(room) * s.value_dim; i += kLanes) {
    store(out + i, set(0));
  }
  const int64_t block = s.bits > 0 ? smaller(kSmallBatchKeys, t.block) : kSmallBatchKeys;
  for (int64_t p = t.begin; p < t.end; p += block) {
    const int n = int(smaller(block, t.end - p));
    const KeyRun run = run_at(t, p, n), here = s.bits > 0 ? unpack_run(t, run, p, n, keys, values) : run;
    for (int m = 0; m < vectors;) {
      const QueryGroup g = {.first = m,
                            .vectors = vectors,
                            .q = q + int64_t(m) * s.dim,
                            .out = out + int64_t(m) * s.value_dim,
                            .weights = weights + m,
                            .highest = highest + m};
      switch (group_size(vectors - m)) {
        case 4:
          small_batch_block<T, 4>(t, g, p, n, here);
          m += 4;
          break;
        case 2:
          small_batch_block<T, 2>(t, g, p, n, here);
          m += 2;
          break;
        default:
          small_batch_block<T, 1>(t, g, p, n, here);
          m += 1;
      }
    }
  }
  for (int m = 0; m < vectors; m++) {
    restore<T>(out + int64_t(m) * s.value_dim, t.sums + int64_t(m) * s.value_dim, s.value_dim);
    t.weights[m] = weights[m];
    t.highest[m] = highest[m];
  }
}

static void small_batch(const AttentionTask& t) {
  switch (t.shape->bits > 0 ? Type::f32 : t.shape->kv_type) {
    case Type::f32:
      return small_batch_of<float>(t);
    case Type::f16:
      return small_batch_of<f16>(t);
    case Type::bf16:
      return small_batch_of<bf16>(t);
  }
}

}  // namespace ingot::cpu::INGOT_ISA
