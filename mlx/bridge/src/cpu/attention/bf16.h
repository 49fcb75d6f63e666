// Attention tiles of bfloat16 queries and keys with AVX512_BF16, which multiplies pairs of bfloat16. Scores are as
// exact as with float32: an instruction adds the products of two channels. With fast, softmax weights are rounded to
// bfloat16, and the products with values take two keys per instruction.
#pragma once

#include "cpu/attention/tile.h"

namespace ingot::cpu::INGOT_ISA {

IG_INLINE __m512bh load_pairs(const void* p) { return (__m512bh)_mm512_loadu_si512(p); }
IG_INLINE __m512bh broadcast_pair(const void* p) {
  int32_t v;
  __builtin_memcpy(&v, p, 4);
  return (__m512bh)_mm512_set1_epi32(v);
}

// Micro-kernel: a[r] and b[r] += rows[r][i] . panel[i] over pairs i, for R rows and the two vectors of a panel. Pair i
// of row r is at rows[r * stride + i * step]; panel is [pair][kPanel]. A pair is a dword.
template <int R>
IG_INLINE void accumulate_pairs(const int32_t* rows, int64_t stride, int64_t step, const float* panel, int pairs, F* a,
                                F* b) {
  for (int i = 0; i < pairs; i++) {
    __m512bh p0 = load_pairs(panel + i * kPanel), p1 = load_pairs(panel + i * kPanel + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) {
      __m512bh x = broadcast_pair(rows + r * stride + i * step);
      a[r] = _mm512_dpbf16_ps(a[r], x, p0);
      b[r] = _mm512_dpbf16_ps(b[r], x, p1);
    }
  }
}

template <int R>
static __attribute__((noinline)) void bf16_scores(const int32_t* k, int64_t stride, const float* q, int pairs,
                                                  float scale, float* score) {
  F a[R], b[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    a[r] = b[r] = set(0);
  }
  accumulate_pairs<R>(k, stride, 1, q, pairs, a, b);
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    store(score + r * kPanel, a[r] * set(scale));
    store(score + r * kPanel + kLanes, b[r] * set(scale));
  }
}

template <int R>
static __attribute__((noinline)) void bf16_sums(const int32_t* v, int64_t stride, const float* weights, int pairs,
                                                F factor0, F factor1, float* sum) {
  F a[R], b[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    a[r] = load(sum + r * kPanel) * factor0;
    b[r] = load(sum + r * kPanel + kLanes) * factor1;
  }
  accumulate_pairs<R>(v, 1, stride, weights, pairs, a, b);
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    store(sum + r * kPanel, a[r]);
    store(sum + r * kPanel + kLanes, b[r]);
  }
}

// Scores are products of bfloat16 pairs. Values are widened to float32.
struct BF16Policy : F32Products {
  using Products = BF16Policy;
  struct Keys {
    const bf16* at;
    int64_t stride;
  };

  static void put_query(const AttentionTask& t, int row, int head, float*, float* to) {
    auto from = vector_of<bf16>(t, row, head);
    for (int d = 0; d < t.shape->dim; d += 2) {
      __builtin_memcpy(to + d / 2 * kPanel, from + d, 4);
    }
  }

  static Keys keys_at(const KeyRun& run, int64_t p) {
    return {static_cast<const bf16*>(run.k) + (p - run.position) * run.k_row, run.k_row};
  }

  static void load(const AttentionTask& t, const Tile& w, const KeyRun& run, int64_t p, int n, Keys& k, Values& v) {
    k = keys_at(run, p);
    v = widen_block(static_cast<const bf16*>(run.v) + (p - run.position) * run.v_row, run.v_row, n, t.shape->value_dim,
                    w.v);
  }

  static void scores(const AttentionTask& t, Keys k, int begin, int end, const float* q, float* score) {
    by_rows(end - begin, [&]<int R>(int j) {
      auto rows = reinterpret_cast<const int32_t*>(k.at + (begin + j) * k.stride);
      bf16_scores<R>(rows, k.stride / 2, q, t.shape->dim / 2, t.shape->scale, score + j * kPanel);
    });
  }
};

// BF16Policy with softmax weights rounded to bfloat16.
struct FastBF16Policy : BF16Policy {
  using Products = FastBF16Policy;
  struct Values {
    const int32_t* at;  // [pair of keys][channel]
    int64_t stride;
  };
  static constexpr int kGrain = 2;

  static void load(const AttentionTask& t, const Tile& w, const KeyRun& run, int64_t p, int n, Keys& k, Values& v) {
    const int dim = t.shape->value_dim;
    k = keys_at(run, p);
    auto to = reinterpret_cast<int32_t*>(w.v);
    v = {to, dim};
    for (int j = 0; j < n; j += 2, to += dim) {
      auto first = static_cast<const bf16*>(run.v) + (p - run.position + j) * run.v_row, second = first + run.v_row;
      int d = 0;
      for (; d + kLanes <= dim && j + 1 < n; d += kLanes) {
        auto wide = [&](const bf16* row) {
          return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + d)));
        };
        _mm512_storeu_si512(to + d, _mm512_or_si512(wide(first), _mm512_slli_epi32(wide(second), 16)));
      }
      for (; d < dim; d++) {
        to[d] = int32_t(uint32_t(first[d].bits) | (j + 1 < n ? uint32_t(second[d].bits) << 16 : 0));
      }
    }
  }

  static void sums(const AttentionTask& t, Values v, const PanelSums& p) {
    const int begin = p.begin, end = p.end, pairs = (end - begin + 1) / 2;
    for (int j = 0; j < pairs; j++) {
      for (int half = 0; half < kPanel; half += kLanes) {
        const float* from = p.weights + 2 * j * kPanel + half;
        F second = begin + 2 * j + 1 < end ? INGOT_ISA::load(from + kPanel) : set(0);
        __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(INGOT_ISA::load(from)));
        __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(second));
        _mm512_storeu_si512(p.copy + j * kPanel + half, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
      }
    }
    by_rows(t.shape->value_dim, [&]<int R>(int d) {
      bf16_sums<R>(v.at + begin / 2 * v.stride + d, v.stride, p.copy, pairs, p.factor[0], p.factor[1],
                   p.sum + d * kPanel);
    });
  }
};

static void tile_bf16(const AttentionTask& t) {
  const auto& s = *t.shape;
  bool even = s.dim % 2 == 0;
  for (int i = 0; i < t.run_count; i++) {
    even = even && t.runs[i].k_row % 2 == 0;
  }
  if (s.bits > 0 || s.q_type != Type::bf16 || s.kv_type != Type::bf16 || !even) {
    return attention_avx512.tile(t);
  }
  return s.fast ? tile_of<FastBF16Policy>(t) : tile_of<BF16Policy>(t);
}

}  // namespace ingot::cpu::INGOT_ISA
