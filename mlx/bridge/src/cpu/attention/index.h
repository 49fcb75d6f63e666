// The scores of an indexer, which chooses the positions that a row attends to; see attention.h.
#pragma once

#include "cpu/attention/kernels.h"

namespace ingot::cpu::INGOT_ISA {

constexpr int kIndexPanel = 2 * kLanes;  // heads that are computed together
constexpr int kIndexKeys = 4;            // keys that share their loads

// Returns the sum over the heads of a panel of weight * max(0, q . key) for K keys of float32. q is [dim][kIndexPanel].
template <int K>
IG_INLINE void index_panel(const float* keys, const float* q, const float* weights, int dim, float* score) {
  F a[K], b[K];
#pragma GCC unroll 4
  for (int i = 0; i < K; i++) {
    a[i] = b[i] = set(0);
  }
  for (int d = 0; d < dim; d++) {
    F q0 = load(q + d * kIndexPanel), q1 = load(q + d * kIndexPanel + kLanes);
#pragma GCC unroll 4
    for (int i = 0; i < K; i++) {
      F x = set(keys[i * dim + d]);
      a[i] = fma(x, q0, a[i]);
      b[i] = fma(x, q1, b[i]);
    }
  }
  F w0 = load(weights), w1 = load(weights + kLanes);
#pragma GCC unroll 4
  for (int i = 0; i < K; i++) {
    score[i] += sum(fma(max(a[i], set(0)), w0, max(b[i], set(0)) * w1));
  }
}

static void index_panels(const IndexTask& t) {
  const int width = (t.heads + kIndexPanel - 1) / kIndexPanel * kIndexPanel, panel = t.dim * kIndexPanel;
  float* keys = t.scratch;
  switch (t.type) {
    case Type::f32:
      for (int j = 0; j < t.count; j++) {
        widen_row(keys + j * t.dim, static_cast<const float*>(t.keys) + j * t.key_row, t.dim, set(1));
      }
      break;
    case Type::f16:
      for (int j = 0; j < t.count; j++) {
        widen_row(keys + j * t.dim, static_cast<const f16*>(t.keys) + j * t.key_row, t.dim, set(1));
      }
      break;
    case Type::bf16:
      for (int j = 0; j < t.count; j++) {
        widen_row(keys + j * t.dim, static_cast<const bf16*>(t.keys) + j * t.key_row, t.dim, set(1));
      }
      break;
  }
  for (int row = 0; row < t.rows; row++) {
    float* score = t.scores + row * t.score_row;
    for (int j = 0; j < t.count; j++) {
      score[j] = 0;
    }
    for (int at = 0; at < width / kIndexPanel; at++) {
      const float *q = t.q + row * t.q_row + at * panel, *w = t.weights + row * width + at * kIndexPanel;
      int j = 0;
      for (; j + kIndexKeys <= t.count; j += kIndexKeys) {
        index_panel<kIndexKeys>(keys + j * t.dim, q, w, t.dim, score + j);
      }
      for (; j < t.count; j++) {
        index_panel<1>(keys + j * t.dim, q, w, t.dim, score + j);
      }
    }
  }
}

}  // namespace ingot::cpu::INGOT_ISA
