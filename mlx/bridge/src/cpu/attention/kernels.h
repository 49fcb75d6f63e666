// Parts of the attention kernels that tiles and small batches share; see attention.h. Keys are processed in blocks
// with a running maximum of the scores (online softmax: Milakov and Gimelshein 2018), so that a row of scores is never
// stored whole.
#pragma once

#include "cpu/attention/attention.h"
#include "cpu/simd/simd.h"

namespace ingot::cpu::INGOT_ISA {

constexpr float kLowest = -3.40282347e38f;  // score of a masked key: if all keys are masked, all have the same weight
constexpr float kNone = -__builtin_inff();

IG_INLINE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
IG_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// The keys that a row sees are [first_visible, end_visible), relative to a block of n keys that starts at position p.
IG_INLINE int64_t first_visible(const AttentionTask& t, int64_t row, int64_t p, int64_t n) {
  return smaller(n, larger(0, first_seen(t.shape->window, t.shape->chunked, t.position + row) - p));
}
IG_INLINE int64_t end_visible(const AttentionTask& t, int64_t row, int64_t p, int64_t n) {
  return t.shape->causal ? smaller(n, larger(0, t.position + row + 1 - p)) : n;
}

IG_INLINE float scalar_exp(float x) {
  float lanes[kLanes];
  store(lanes, exp(set(x)));
  return lanes[0];
}

// Returns a pointer to a query vector.
template <class T>
IG_INLINE const T* vector_of(const AttentionTask& t, int row, int head) {
  return static_cast<const T*>(t.q) + row * t.q_row + head * t.q_head;
}

template <class T>
IG_INLINE void widen_row(float* to, const T* from, int n, F scale) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(to + i, load(from + i) * scale);
  }
  if (i < n) {
    store_some(to + i, load_some(from + i, n - i) * scale, n - i);
  }
}

// Converts a query vector to float32 and multiplies it by the scale.
IG_INLINE void widen_query(const AttentionTask& t, int row, int head, float* to) {
  const auto& s = *t.shape;
  switch (s.q_type) {
    case Type::f32:
      return widen_row(to, vector_of<float>(t, row, head), s.dim, set(s.scale));
    case Type::f16:
      return widen_row(to, vector_of<f16>(t, row, head), s.dim, set(s.scale));
    case Type::bf16:
      return widen_row(to, vector_of<bf16>(t, row, head), s.dim, set(s.scale));
  }
}

// Reads the mask of a query vector for n keys from position p on to every step-th element of to; booleans become 0 and
// 1.
IG_INLINE void read_mask(const AttentionTask& t, int row, int head, int64_t p, int n, float* to, int step) {
  const auto& m = t.mask;
  int64_t at = row * m.row + head * m.head + p * m.key;
  for (int j = 0; j < n; j++, at += m.key) {
    to[j * step] = m.additive ? static_cast<const float*>(m.data)[at] : float(static_cast<const uint8_t*>(m.data)[at]);
  }
}

IG_INLINE F masked(const AttentionMask& m, F score, F element) {
  return m.additive ? score + element : select(element < set(0.5f), set(kLowest), score);
}

IG_INLINE F capped(F score, float cap) { return set(cap) * tanh(score / set(cap)); }

// Returns a run that has n positions from p on: the one that they are part of or, if they are part of several, a copy.
// Blocks therefore do not depend on the runs.
static inline KeyRun run_at(const AttentionTask& t, int64_t p, int n) {
  const KeyRun* run = t.runs;
  while (p >= run->position + run->count) {
    run++;
  }
  if (p + n <= run->position + run->count) {
    return *run;
  }
  const auto& s = *t.shape;
  const int64_t size = s.bits > 0 ? 1 : s.kv_type == Type::f32 ? 4 : 2;
  const int64_t k_row = s.bits > 0 ? packed_bytes(s.dim, s.bits) : s.dim,
                v_row = s.bits > 0 ? packed_bytes(s.value_dim, s.bits) : s.value_dim;
  const bool apart = run->v != run->k;  // otherwise a value is the beginning of its key
  char *k = static_cast<char*>(t.copy), *v = apart ? k + n * k_row * size : k;
  const KeyRun copy = {k, v, 0, k_row, 0, apart ? v_row : k_row, p, n};
  for (int64_t end = p + n; p < end; run++) {
    for (; p < end && p < run->position + run->count; p++, k += k_row * size, v += v_row * size) {
      const int64_t at = p - run->position;
      __builtin_memcpy(k, static_cast<const char*>(run->k) + at * run->k_row * size, size_t(k_row * size));
      if (apart) {
        __builtin_memcpy(v, static_cast<const char*>(run->v) + at * run->v_row * size, size_t(v_row * size));
      }
    }
  }
  return copy;
}

template <class T>
IG_INLINE void join_rows(const AttentionJoin& j) {
  const int dim = j.shape->value_dim;
  for (int row = 0; row < j.rows; row++) {
    for (int head = 0; head < j.heads; head++) {
      int64_t first = int64_t(row) * j.heads + head;
      float sink = j.sinks ? j.sinks[head] : kNone;
      float top = sink;
      for (int p = 0; p < j.parts; p++) {
        float m = j.highest[p * j.part_vectors + first];
        top = m > top ? m : top;
      }
      float base = top == kNone ? 0 : top;
      float total = j.sinks ? scalar_exp(sink - base) : 0;
      float factors[kMaxParts];
      for (int p = 0; p < j.parts; p++) {
        factors[p] = scalar_exp(j.highest[p * j.part_vectors + first] - base);
        total += j.weights[p * j.part_vectors + first] * factors[p];
      }
      F inverse = set(1.0f) / set(total);
      T* out = static_cast<T*>(j.out) + row * j.out_row + head * j.out_head;
      for (int d = 0; d < dim; d += kLanes) {
        int n = dim - d < kLanes ? dim - d : kLanes;
        F sum = set(0);
        for (int p = 0; p < j.parts; p++) {
          int64_t vector = p * j.part_vectors + first;
          const float* from = j.sums + vector * dim + d;
          sum = fma(n == kLanes ? load(from) : load_some(from, n), set(factors[p]), sum);
        }
        sum = sum * inverse;
        if (n == kLanes) {
          store(out + d, sum);
        } else {
          store_some(out + d, sum, n);
        }
      }
    }
  }
}

static void join(const AttentionJoin& j) {
  switch (j.shape->q_type) {
    case Type::f32:
      return join_rows<float>(j);
    case Type::f16:
      return join_rows<f16>(j);
    case Type::bf16:
      return join_rows<bf16>(j);
  }
}

}  // namespace ingot::cpu::INGOT_ISA
