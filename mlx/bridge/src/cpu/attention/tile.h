// Attention of many query vectors (prefill): two matrix products per block of keys, in float32.
//
// Scores are computed transposed, [key][vector], and so are sums, [channel][vector]. Keys and values are then broadcast
// element by element from where they are stored, softmax weights have the layout that the second product needs, and
// neither maxima nor sums are reduced across lanes.
#pragma once

#include "cpu/attention/packed.h"

namespace ingot::cpu::INGOT_ISA {

constexpr int kPanel = 2 * kLanes;  // query vectors of a panel
// Rows of a micro-kernel: as many accumulators as leave registers for two vectors and a broadcast.
#if defined(__AVX512F__)
constexpr int kTileRows = 12;
#elif defined(__AVX2__)
constexpr int kTileRows = 6;
#elif defined(__ARM_NEON)
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 4;
#endif

// Micro-kernel of scores: score[r][j] = k[r] . q[.][j] for R keys and j < kPanel; q is [depth][kPanel].
template <int R>
IG_INLINE void tile_scores(const float* k, int64_t stride, const float* q, int depth, float* score) {
  F a[R], b[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    a[r] = b[r] = set(0);
  }
  for (int d = 0; d < depth; d++) {
    F q0 = load(q + d * kPanel), q1 = load(q + d * kPanel + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) {
      F x = set(k[r * stride + d]);
      a[r] = fma(x, q0, a[r]);
      b[r] = fma(x, q1, b[r]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    store(score + r * kPanel, a[r]);
    store(score + r * kPanel + kLanes, b[r]);
  }
}

// Micro-kernel of sums: sum[r][j] = sum[r][j] * factor[j] + v[.][r] . p[.][j] for R channels, n keys and j < kPanel; p
// is [n][kPanel]. The factors rescale earlier sums to the new maximum.
template <int R>
IG_INLINE void tile_sums(const float* v, int64_t stride, const float* p, int n, F factor0, F factor1, float* sum) {
  F a[R], b[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    a[r] = load(sum + r * kPanel) * factor0;
    b[r] = load(sum + r * kPanel + kLanes) * factor1;
  }
  for (int j = 0; j < n; j++) {
    F p0 = load(p + j * kPanel), p1 = load(p + j * kPanel + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) {
      F x = set(v[j * stride + r]);
      a[r] = fma(x, p0, a[r]);
      b[r] = fma(x, p1, b[r]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    store(sum + r * kPanel, a[r]);
    store(sum + r * kPanel + kLanes, b[r]);
  }
}

// Calls of<R>(i) for rows i to i+R-1 until all n rows are covered, with R = kTileRows and a remainder of 2 and 1.
template <class Of>
IG_INLINE void by_rows(int n, Of of) {
  int i = 0;
  for (; i + kTileRows <= n; i += kTileRows) {
    of.template operator()<kTileRows>(i);
  }
  for (; i + 2 <= n; i += 2) {
    of.template operator()<2>(i);
  }
  if (i < n) {
    of.template operator()<1>(i);
  }
}

static void all_scores(const float* k, int64_t stride, const float* q, int depth, int n, float* score) {
  by_rows(n, [&]<int R>(int j) __attribute__((always_inline)) {
    tile_scores<R>(k + j * stride, stride, q, depth, score + j * kPanel);
  });
}

static void all_sums(const float* v, int64_t stride, const float* p, int n, int dim, F factor0, F factor1, float* sum) {
  by_rows(dim, [&]<int R>(int d) __attribute__((always_inline)) {
    tile_sums<R>(v + d, stride, p, n, factor0, factor1, sum + d * kPanel);
  });
}

// Tile is the workspace of a task.
struct Tile {
  float *q, *sums, *weights, *highest;  // [panels][dim][kPanel], [panels][value_dim][kPanel], [panels][kPanel] twice
  float *scores, *mask;                 // [block][kPanel] twice
  float *k, *v;                         // [block][dim], [block][value_dim]
  float* row;
  int vectors, panels;
};

static Tile make_tile(const AttentionTask& t) {
  const auto& s = *t.shape;
  Tile w;
  w.vectors = t.rows * t.heads;
  w.panels = (w.vectors + kPanel - 1) / kPanel;
  float* at = static_cast<float*>(t.scratch);
  auto take = [&at](int64_t n) {
    float* p = at;
    at += (n + 15) / 16 * 16;
    return p;
  };
  w.q = take(int64_t(w.panels) * s.dim * kPanel);
  w.sums = take(int64_t(w.panels) * s.value_dim * kPanel);
  w.weights = take(int64_t(w.panels) * kPanel);
  w.highest = take(int64_t(w.panels) * kPanel);
  w.scores = take(int64_t(t.block) * kPanel);
  w.mask = take(int64_t(t.block) * kPanel);
  w.k = take(int64_t(t.block) * s.dim);
  w.v = take(int64_t(t.block) * s.value_dim);
  w.row = take(larger(s.dim, s.value_dim));
  return w;
}

template <class Products>
static void load_queries(const AttentionTask& t, const Tile& w) {
  const int dim = t.shape->dim;
  for (int m = 0; m < w.panels * kPanel; m++) {
    float* to = w.q + int64_t(m / kPanel) * dim * kPanel + m % kPanel;
    const int vector = m < w.vectors ? m : w.vectors - 1;  // unused lanes repeat the last vector
    Products::put_query(t, vector / t.heads, vector % t.heads, w.row, to);
    w.weights[m] = 0;
    w.highest[m] = kNone;
  }
  for (int64_t i = 0; i < int64_t(w.panels) * t.shape->value_dim * kPanel; i += kLanes) {
    store(w.sums + i, set(0));
  }
}

// Keys or values of a block in float32, and the stride of positions.
struct Block {
  const float* at;
  int64_t stride;
};

template <class T>
IG_INLINE Block widen_block(const T* from, int64_t stride, int n, int dim, float* to) {
  for (int j = 0; j < n; j++) {
    widen_row(to + int64_t(j) * dim, from + j * stride, dim, set(1));
  }
  return {to, dim};
}
IG_INLINE Block widen_block(const float* from, int64_t stride, int, int, float*) { return {from, stride}; }

// The softmax weights of keys [begin, end) of a block for a panel of queries, and the sums that they are added to.
struct PanelSums {
  int begin, end;
  const float* weights;  // [key][query], from begin on
  float* copy;           // scratch memory for a copy of the weights
  F factor[2];           // of earlier sums
  float* sum;            // [channel][query]
};

// A tile's products determine the types of its operands. F32Products are of float32.
struct F32Products {
  using Keys = Block;
  using Values = Block;
  static constexpr int kGrain = 1;  // the first key of a panel's range is a multiple of it

  static void put_query(const AttentionTask& t, int row, int head, float* copy, float* to) {
    widen_query(t, row, head, copy);
    for (int d = 0; d < t.shape->dim; d++) {
      to[d * kPanel] = copy[d];
    }
  }

  // Computes the scores of keys [begin, end) of a block for a panel of queries.
  static void scores(const AttentionTask& t, Keys k, int begin, int end, const float* q, float* score) {
    all_scores(k.at + begin * k.stride, k.stride, q, t.shape->dim, end - begin, score);
  }

  // Computes sum = sum * factor + weights * values.
  static void sums(const AttentionTask& t, Values v, const PanelSums& p) {
    all_sums(v.at + p.begin * v.stride, v.stride, p.weights, p.end - p.begin, t.shape->value_dim, p.factor[0],
             p.factor[1], p.sum);
  }
};

// A policy loads keys and values for its products. F32Policy converts those of type T to float32.
template <class T>
struct F32Policy : F32Products {
  using Products = F32Products;

  // Loads n positions of a run from position p on.
  static void load(const AttentionTask& t, const Tile& w, const KeyRun& run, int64_t p, int n, Keys& k, Values& v) {
    const auto& s = *t.shape;
    if (s.bits > 0) {
      KeyRun here = unpack_run(t, run, p, n, w.k, w.v);
      k = {static_cast<const float*>(here.k), here.k_row};
      v = {static_cast<const float*>(here.v), here.v_row};
      return;
    }
    const T* keys = static_cast<const T*>(run.k) + (p - run.position) * run.k_row;
    const T* values = static_cast<const T*>(run.v) + (p - run.position) * run.v_row;
    k = widen_block(keys, run.k_row, n, s.dim, w.k);
    v = run.v == run.k && run.v_row == run.k_row ? k : widen_block(values, run.v_row, n, s.value_dim, w.v);
  }
};

// Applies the soft cap and the mask to the scores of a panel, for keys [begin, end) of the block at position p.
IG_INLINE void panel_masks(const AttentionTask& t, const Tile& w, int first, int64_t p, int begin, int end) {
  const auto& s = *t.shape;
  if (s.softcap > 0) {
    for (int i = begin * kPanel; i < end * kPanel; i += kLanes) {
      store(w.scores + i, capped(load(w.scores + i), s.softcap));
    }
  }
  if (t.mask.data) {
    for (int lane = 0; lane < kPanel; lane++) {
      int m = first + lane < w.vectors ? first + lane : w.vectors - 1;
      read_mask(t, m / t.heads, m % t.heads, p + begin, end - begin, w.mask + begin * kPanel + lane, kPanel);
    }
    for (int i = begin * kPanel; i < end * kPanel; i += kLanes) {
      store(w.scores + i, masked(t.mask, load(w.scores + i), load(w.mask + i)));
    }
  }
}

// Sets the scores of keys that a vector of the panel does not see to -inf, for keys [begin, end) of the block.
IG_INLINE void panel_visibility(const AttentionTask& t, const Tile& w, int first, int64_t p, int n, int begin,
                                int end) {
  float from[kPanel], to[kPanel];
  bool all = true;
  for (int lane = 0; lane < kPanel; lane++) {
    int m = first + lane < w.vectors ? first + lane : w.vectors - 1;
    int64_t a = first_visible(t, m / t.heads, p, n), b = end_visible(t, m / t.heads, p, n);
    from[lane] = float(a);
    to[lane] = float(b);
    all = all && a <= begin && b >= end;
  }
  if (all) {
    return;
  }
  for (int half = 0; half < kPanel; half += kLanes) {
    F low = load(from + half), high = load(to + half);
    for (int j = begin; j < end; j++) {
      F at = set(float(j)), score = load(w.scores + j * kPanel + half);
      score = select(at < low, set(kNone), select(at < high, score, set(kNone)));
      store(w.scores + j * kPanel + half, score);
    }
  }
}

// Processes one block of keys for one panel of query vectors.
template <class Products>
static void panel_block(const AttentionTask& t, const Tile& w, int panel, int64_t p, int n, typename Products::Keys k,
                        typename Products::Values v) {
  const auto& s = *t.shape;
  int first = panel * kPanel, last = first + kPanel < w.vectors ? first + kPanel - 1 : w.vectors - 1;
  int begin = int(first_visible(t, first / t.heads, p, n)), end = int(end_visible(t, last / t.heads, p, n));
  if (begin >= end) {
    return;
  }
  begin -= begin % Products::kGrain;
  float* scores = w.scores + begin * kPanel;
  Products::scores(t, k, begin, end, w.q + int64_t(panel) * s.dim * kPanel, scores);
  panel_masks(t, w, first, p, begin, end);
  panel_visibility(t, w, first, p, n, begin, end);

  PanelSums to = {.begin = begin,
                  .end = end,
                  .weights = scores,
                  .copy = w.mask,
                  .factor = {},
                  .sum = w.sums + int64_t(panel) * s.value_dim * kPanel};
  for (int half = 0; half < 2; half++) {
    float* score = scores + half * kLanes;
    F before = load(w.highest + first + half * kLanes), top = before;
    for (int j = 0; j < end - begin; j++) {
      top = max(top, load(score + j * kPanel));
    }
    F base = select(top < set(kLowest), set(0), top);  // -inf: no visible key so far
    F total = set(0);
    for (int j = 0; j < end - begin; j++) {
      F weight = exp(load(score + j * kPanel) - base);
      store(score + j * kPanel, weight);
      total = total + weight;
    }
    to.factor[half] = exp(before - base);
    store(w.weights + first + half * kLanes, fma(load(w.weights + first + half * kLanes), to.factor[half], total));
    store(w.highest + first + half * kLanes, top);
  }
  Products::sums(t, v, to);
}

template <class Policy>
static void tile_of(const AttentionTask& t) {
  const auto& s = *t.shape;
  Tile w = make_tile(t);
  using Products = typename Policy::Products;
  load_queries<Products>(t, w);
  for (int64_t p = t.begin; p < t.end; p += t.block) {
    int n = int(smaller(t.block, t.end - p));
    typename Products::Keys k;
    typename Products::Values v;
    Policy::load(t, w, run_at(t, p, n), p, n, k, v);
    for (int panel = 0; panel < w.panels; panel++) {
      panel_block<Products>(t, w, panel, p, n, k, v);
    }
  }
  for (int m = 0; m < w.vectors; m++) {
    const float* from = w.sums + int64_t(m / kPanel) * s.value_dim * kPanel + m % kPanel;
    for (int d = 0; d < s.value_dim; d++) {
      t.sums[int64_t(m) * s.value_dim + d] = from[d * kPanel];
    }
    t.weights[m] = w.weights[m];
    t.highest[m] = w.highest[m];
  }
}

static void tile(const AttentionTask& t) {
  switch (t.shape->bits > 0 ? Type::f32 : t.shape->kv_type) {
    case Type::f32:
      return tile_of<F32Policy<float>>(t);
    case Type::f16:
      return tile_of<F32Policy<f16>>(t);
    case Type::bf16:
      return tile_of<F32Policy<bf16>>(t);
  }
}

}  // namespace ingot::cpu::INGOT_ISA
