// SparseMixer: a router that chooses two experts, one after the other. https://arxiv.org/abs/2409.12136
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/call.h"
#include "core/checks.h"
#include "cpu/matmul/matmul.h"
#include "cpu/rows/node.h"
#include "ops/experts/experts.h"

namespace ingot {

namespace {

constexpr int kChosen = 2;
constexpr float kNone = -std::numeric_limits<float>::infinity();

std::vector<mx::array> composed(const mx::array& from, double jitter, mx::StreamOrDevice s) {
  auto scores = mx::astype(from, mx::float32, s), left = scores;
  std::vector<mx::array> weights, chosen;
  for (int i = 0; i < kChosen; i++) {
    auto at = mx::argmax(left, -1, true, s);
    auto top = mx::take_along_axis(left, at, -1, s);
    auto below = mx::divide(mx::subtract(top, scores, s), mx::maximum(mx::abs(scores, s), top, s), s);
    auto share = mx::where(mx::greater(below, mx::array(float(2 * jitter)), s), mx::array(0.0f),
                           mx::exp(mx::subtract(left, top, s), s), s);
    weights.push_back(mx::reciprocal(mx::sum(share, -1, true, s), s));
    chosen.push_back(at);
    left = mx::put_along_axis(left, at, mx::array(kNone), -1, s);
  }
  return {mx::concatenate(weights, -1, s), mx::astype(mx::concatenate(chosen, -1, s), mx::uint32, s)};
}

// Routes one row of n scores. left is a copy of them, which it changes.
void choose(const float* scores, float* left, int n, float limit, float* weights, uint32_t* chosen) {
  for (int i = 0; i < kChosen; i++) {
    const auto at = std::max_element(left, left + n) - left;  // the first of equals
    const float top = left[at];
    float total = 0;
    for (int j = 0; j < n; j++) {
      const float below = (top - scores[j]) / std::max(std::abs(scores[j]), top);
      if (!(below > limit)) {
        total += std::exp(left[j] - top);
      }
    }
    weights[i] = 1 / total;
    chosen[i] = uint32_t(at);
    left[at] = kNone;
  }
}

}  // namespace

std::vector<mx::array> sparse_mixer(const mx::array& scores, double jitter, mx::StreamOrDevice s) {
  if (scores.ndim() != 2 || scores.size() == 0 || !mx::issubdtype(scores.dtype(), mx::floating) ||
      scores.shape(1) < kChosen) {
    refuse("sparse mixer: scores are " + to_string(scores) + ", want [rows, two or more experts]");
  }
  if (!(jitter >= 0)) {
    refuse("sparse mixer: the jitter is negative");
  }
  if (!cpu::uses_kernels(scores, s)) {
    return composed(scores, jitter, s);
  }
  const int rows = scores.shape(0), n = scores.shape(1);
  const auto type = cpu::Type(cpu::type_index(scores.dtype()));
  const int64_t bytes = n * int64_t(scores.itemsize());
  auto body = [=](const cpu::Memory& m) {
    cpu::parallel(rows, cpu::rows_per_piece(n * 16), [&](int64_t begin, int64_t end) {
      std::vector<float> x(static_cast<size_t>(n)), left;
      for (int64_t r = begin; r < end; r++) {
        cpu::matmul_kernels().widen(type, cpu::at(m.in[0], r * bytes), x.data(), n);
        left = x;
        choose(x.data(), left.data(), n, float(2 * jitter), m.output<float>(0) + r * kChosen,
               m.output<uint32_t>(1) + r * kChosen);
      }
    });
  };
  return cpu::node("sparse_mixer", {scores}, {{rows, kChosen}, {rows, kChosen}}, {mx::float32, mx::uint32}, s,
                   std::move(body));
}

}  // namespace ingot
