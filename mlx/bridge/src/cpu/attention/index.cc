#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "cpu/attention/attention.h"
#include "cpu/scratch.h"
#include "cpu/team/team.h"

namespace ingot::cpu {

namespace {

// Scratch slots: of all threads' scores and queries, of one thread's keys and copies, and of the gathered keys.
constexpr int kScores = 7, kQueries = 8, kOwnKeys = 9, kGathered = 10;
constexpr int64_t kBlockKeys = 128;           // keys of a piece
constexpr int64_t kScoreFloats = 4 << 20;     // the scores of the rows that are computed together
constexpr int64_t kGatheredBytes = 32 << 20;  // the keys of the rows that attend together

// Sets the positions of the budget highest of n scores, in ascending order. Of equal scores the first are chosen.
void choose(const float* scores, int64_t n, int budget, int32_t* to) {
  if (n <= budget) {
    for (int64_t i = 0; i < budget; i++) {
      to[i] = i < n ? int32_t(i) : -1;
    }
    return;
  }
  float* copy = scratch<float>(kOwnKeys, size_t(n));
  std::memcpy(copy, scores, size_t(n) * sizeof(float));
  std::nth_element(copy, copy + budget - 1, copy + n, std::greater<float>());
  const float lowest = copy[budget - 1];
  int64_t ties = budget - std::count_if(copy, copy + budget, [=](float v) { return v > lowest; });
  for (int64_t i = 0; i < n; i++) {
    if (scores[i] > lowest || (scores[i] == lowest && ties-- > 0)) {
      *to++ = int32_t(i);
    }
  }
}

// Lays out the queries of a row as panels [heads / panel][dim][panel], and its weights. Heads beyond the last have a
// weight of 0.
void lay_out(const IndexRows& r, int64_t row, int panel, float* q, float* weights) {
  const int width = (r.heads + panel - 1) / panel * panel;
  for (int h = 0; h < width; h++) {
    const float* from = r.q + (row * r.heads + h) * r.dim;
    float* to = q + int64_t(h / panel) * r.dim * panel + h % panel;
    for (int d = 0; d < r.dim; d++) {
      to[int64_t(d) * panel] = h < r.heads ? from[d] : 0;
    }
    weights[h] = h < r.heads ? r.weights[row * r.heads + h] : 0;
  }
}

// Chooses for rows [begin, end) of a sequence.
void choose_rows(const AttentionKernels& k, const IndexRows& r, int64_t begin, int64_t end) {
  const int64_t rows = end - begin, seen = (r.position + end) / r.rate;
  const int width = (r.heads + k.index_panel - 1) / k.index_panel * k.index_panel;
  const int64_t q_row = int64_t(width) * r.dim;
  float* q = scratch<float>(kQueries, size_t(rows * (q_row + width)));
  float *weights = q + rows * q_row, *scores = scratch<float>(kScores, size_t(rows * seen));
  parallel(rows, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      lay_out(r, begin + i, k.index_panel, q + i * q_row, weights + i * width);
    }
  });
  const int64_t size = r.type == Type::f32 ? 4 : 2;
  parallel((seen + kBlockKeys - 1) / kBlockKeys, 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; block++) {
      const int64_t at = block * kBlockKeys;
      IndexTask t{};
      t.q = q;
      t.weights = weights;
      t.q_row = q_row;
      t.rows = int(rows);
      t.heads = r.heads;
      t.dim = r.dim;
      t.type = r.type;
      t.keys = static_cast<const char*>(r.keys) + at * r.key_row * size;
      t.key_row = r.key_row;
      t.count = int(std::min(kBlockKeys, seen - at));
      t.scores = scores + at;
      t.score_row = seen;
      t.scratch = scratch<float>(kOwnKeys, size_t(kBlockKeys * r.dim));
      k.index(t);
    }
  });
  parallel(rows, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      float* own = scores + i * seen;
      const int64_t n = (r.position + begin + i + 1) / r.rate;
      for (int64_t j = 0; j < n; j++) {
        own[j] = std::isnan(own[j]) ? std::numeric_limits<float>::infinity() : own[j];
      }
      choose(own, n, r.budget, r.chosen + (begin + i) * r.budget);
    }
  });
}

}  // namespace

void choose_keys(const std::vector<IndexRows>& sequences) {
  const AttentionKernels& k = attention_kernels();
  for (const auto& r : sequences) {
    const int64_t step = std::max<int64_t>(1, kScoreFloats / ((r.position + r.count) / r.rate + 1));
    for (int64_t begin = 0; begin < r.count; begin += step) {
      const int64_t end = std::min(r.count, begin + step);
      if ((r.position + end) / r.rate > r.budget) {
        choose_rows(k, r, begin, end);
        continue;
      }
      for (int64_t i = begin; i < end; i++) {
        choose(nullptr, (r.position + i + 1) / r.rate, r.budget, r.chosen + i * r.budget);
      }
    }
  }
}

void attend_chosen(const AttentionShape& shape, const std::vector<ChosenRows>& sequences, const float* sinks) {
  const int64_t size = shape.kv_type == Type::f32 ? 4 : 2, q_size = shape.q_type == Type::f32 ? 4 : 2;
  const int64_t bytes = shape.dim * size;
  for (const auto& c : sequences) {
    const int64_t copied = c.chosen ? c.budget * bytes : 0;  // per row
    const int64_t together = copied > 0 ? std::clamp<int64_t>(kGatheredBytes / copied, 1, c.count) : c.count;
    for (int64_t begin = 0; begin < c.count; begin += together) {
      const int64_t rows = std::min(together, c.count - begin);
      char* copies = nullptr;
      if (copied > 0) {
        copies = scratch<char>(kGathered, size_t(rows * copied));
        parallel(rows * c.budget, 64, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; i++) {
            if (const int64_t at = c.chosen[begin * c.budget + i]; at >= 0) {
              std::memcpy(copies + i * bytes, static_cast<const char*>(c.keys) + at * bytes, size_t(bytes));
            }
          }
        });
      }
      std::vector<AttentionRows> all;
      for (int64_t i = begin; i < begin + rows; i++) {
        const int64_t position = c.position + i;
        AttentionRows r{};
        r.q = static_cast<const char*>(c.q) + i * shape.heads * shape.dim * q_size;
        r.out = static_cast<char*>(c.out) + i * shape.heads * shape.value_dim * q_size;
        r.q_head = shape.dim;
        r.q_row = int64_t(shape.heads) * shape.dim;
        r.out_head = shape.value_dim;
        r.out_row = int64_t(shape.heads) * shape.value_dim;
        r.count = 1;
        int64_t keys = 0;
        auto add = [&](const void* from, int64_t n) {
          if (n > 0) {
            r.runs.push_back({from, from, 0, shape.dim, 0, shape.dim, keys, n});
            keys += n;
          }
        };
        for (int64_t p = std::max<int64_t>(0, position + 1 - c.window); c.near && p <= position;) {
          const int64_t slot = p % c.near_capacity, n = std::min(position + 1 - p, c.near_capacity - slot);
          add(static_cast<const char*>(c.near) + slot * bytes, n);
          p += n;
        }
        if (c.chosen) {
          const int32_t* own = c.chosen + i * c.budget;
          add(copies + (i - begin) * copied, std::find(own, own + c.budget, -1) - own);
        } else {
          add(c.keys, (position + 1) / c.rate);
        }
        r.position = keys - 1;
        all.push_back(std::move(r));
      }
      attention(shape, all, sinks);
    }
  }
}

}  // namespace ingot::cpu
