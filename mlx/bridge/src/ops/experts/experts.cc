#include "ops/experts/experts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "ops/experts/sum.h"
#include "core/call.h"
#include "core/checks.h"
#include "cpu/matmul/matmul.h"
#include "cpu/rows/node.h"

namespace ingot {

namespace {

using Optional = std::optional<mx::array>;
using Where = mx::StreamOrDevice;

bool floating(const mx::array& x) { return mx::issubdtype(x.dtype(), mx::floating); }

void check(const mx::array& scores, const Optional& correction, const Optional& given, const Choosing& c) {
  if (scores.ndim() != 2 || scores.size() == 0 || !floating(scores)) {
    refuse("choose experts: scores are " + to_string(scores) + ", want [rows, experts]");
  }
  int n = scores.shape(1);
  if (c.groups < 1 || n % c.groups != 0 || c.top_groups < 1 || c.top_groups > c.groups ||
      (c.top_groups < c.groups && n / c.groups < c.group_best) || c.group_best < 1 || c.group_best > 2) {
    refuse("cannot choose " + std::to_string(c.top_groups) + " of " + std::to_string(c.groups) +
           " groups of the experts of " + to_string(scores));
  }
  if (c.k < 1 || int64_t(c.k) > int64_t(c.top_groups) * (n / c.groups)) {
    refuse("cannot choose " + std::to_string(c.k) + " of the experts of " + to_string(scores));
  }
  if (correction && (correction->ndim() != 1 || correction->shape(0) != n || !floating(*correction))) {
    refuse("the correction " + to_string(*correction) + " does not fit the scores " + to_string(scores));
  }
  if (c.scoring < Scoring::softmax || c.scoring > Scoring::sqrt_softplus) {
    refuse("choose experts: unknown scoring " + std::to_string(int(c.scoring)));
  }
  if (given && (given->dtype() != mx::uint32 || given->shape() != mx::Shape{scores.shape(0), c.k})) {
    refuse("the experts " + to_string(*given) + " do not fit the scores " + to_string(scores));
  }
}

// Returns the indices of the k largest elements of the last axis, in descending order.
mx::array best(const mx::array& x, int k, Where s) {
  auto stop = x.shape();
  stop.back() = k;
  return mx::slice(mx::argsort(mx::negative(x, s), -1, s), mx::Shape(x.ndim(), 0), stop, s);
}

mx::array probabilities(const mx::array& scores, Scoring how, Where s) {
  auto x = mx::astype(scores, mx::float32, s);
  switch (how) {
    case Scoring::softmax:
      return mx::softmax(x, -1, true, s);
    case Scoring::sigmoid:
      return mx::sigmoid(x, s);
    case Scoring::sqrt_softplus:
      break;
  }
  return mx::sqrt(mx::logaddexp(x, mx::array(0.0f), s), s);
}

std::vector<mx::array> composed(const mx::array& scores, const Optional& correction, const Optional& given,
                                const Choosing& c, Where s) {
  auto x = probabilities(scores, c.scoring, s);
  auto corrected = correction ? mx::add(x, mx::astype(*correction, mx::float32, s), s) : x;
  if (c.top_groups < c.groups) {
    int rows = x.shape(0);
    auto grouped = mx::reshape(corrected, {rows, c.groups, -1}, s);
    auto sums = mx::sum(mx::take_along_axis(grouped, best(grouped, c.group_best, s), -1, s), -1, false, s);
    auto mask = mx::put_along_axis(mx::full({rows, c.groups}, -std::numeric_limits<float>::infinity(), mx::float32, s),
                                   best(sums, c.top_groups, s), mx::array(0.0f), -1, s);
    corrected = mx::reshape(mx::add(grouped, mx::expand_dims(mask, -1, s), s), x.shape(), s);
  }
  auto chosen = given ? mx::minimum(*given, mx::array(uint32_t(x.shape(1) - 1)), s) : best(corrected, c.k, s);
  auto weights = mx::take_along_axis(x, chosen, -1, s);
  if (c.sum_to_one) {
    weights = mx::divide(weights, mx::add(mx::sum(weights, -1, true, s), mx::array(1e-20f), s), s);
  }
  return {mx::multiply(weights, mx::array(float(c.scale)), s), chosen};
}

// Routes one row: converts n scores to probabilities and chooses the best experts.
struct Row {
  const Choosing& c;
  int n;
  std::vector<float> key;
  std::vector<int> order, groups;

  Row(const Choosing& c, int n) : c(c), n(n), key(size_t(n)) {}

  // Orders by descending score, then by index. NaN counts as infinity.
  static bool better(float a, int i, float b, int j) {
    a = std::isnan(a) ? INFINITY : a;
    b = std::isnan(b) ? INFINITY : b;
    return a != b ? a > b : i < j;
  }

  void squash(float* x) const {
    if (c.scoring != Scoring::softmax) {
      for (int i = 0; i < n; i++) {
        x[i] = c.scoring == Scoring::sigmoid
                   ? 1 / (1 + std::exp(-x[i]))
                   : std::sqrt(std::max(x[i], 0.0f) + std::log1p(std::exp(-std::abs(x[i]))));
      }
      return;
    }
    float peak = *std::max_element(x, x + n), total = 0;
    for (int i = 0; i < n; i++) {
      total += x[i] = std::exp(x[i] - peak);
    }
    for (int i = 0; i < n; i++) {
      x[i] /= total;
    }
  }

  // Chooses the groups with the largest sums of their best one or two experts.
  void pick_groups() {
    int size = n / c.groups;
    std::vector<float> sums(size_t(c.groups));
    for (int g = 0; g < c.groups; g++) {
      const float* of = key.data() + g * size;
      int first = 0, second = -1;
      for (int i = 1; i < size; i++) {
        if (better(of[i], i, of[first], first)) {
          second = first;
          first = i;
        } else if (second < 0 || better(of[i], i, of[second], second)) {
          second = i;
        }
      }
      sums[size_t(g)] = c.group_best == 1 ? of[first] : of[first] + of[second];
    }
    groups.resize(size_t(c.groups));
    std::iota(groups.begin(), groups.end(), 0);
    std::partial_sort(groups.begin(), groups.begin() + c.top_groups, groups.end(),
                      [&](int a, int b) { return better(sums[size_t(a)], a, sums[size_t(b)], b); });
    order.clear();
    for (int i = 0; i < c.top_groups; i++) {
      for (int j = 0; j < size; j++) {
        order.push_back(groups[size_t(i)] * size + j);
      }
    }
  }

  void choose(float* x, const float* correction, const uint32_t* given, float* weights, uint32_t* chosen) {
    squash(x);
    if (given) {
      order.resize(size_t(c.k));
      for (int i = 0; i < c.k; i++) {
        order[size_t(i)] = int(std::min<uint32_t>(given[i], uint32_t(n - 1)));
      }
    } else {
      rank(x, correction);
    }
    float total = 1e-20f;  // as in the reference implementation of the sigmoid router
    for (int i = 0; i < c.k; i++) {
      chosen[i] = uint32_t(order[size_t(i)]);
      total += weights[i] = x[chosen[i]];
    }
    for (int i = 0; i < c.k; i++) {
      weights[i] = (c.sum_to_one ? weights[i] / total : weights[i]) * float(c.scale);
    }
  }

  // Sets the first k of order to the best experts.
  void rank(const float* x, const float* correction) {
    for (int i = 0; i < n; i++) {
      key[size_t(i)] = correction ? x[i] + correction[i] : x[i];
    }
    if (c.top_groups < c.groups) {
      pick_groups();
    } else {
      order.resize(size_t(n));
      std::iota(order.begin(), order.end(), 0);
    }
    std::partial_sort(order.begin(), order.begin() + c.k, order.end(),
                      [&](int a, int b) { return better(key[size_t(a)], a, key[size_t(b)], b); });
  }
};

}  // namespace

std::vector<mx::array> choose_experts(const mx::array& scores, const Optional& correction, const Optional& given,
                                      const Choosing& c, Where s) {
  check(scores, correction, given, c);
  if (!cpu::uses_kernels(scores, s)) {
    return composed(scores, correction, given, c, s);
  }
  int rows = scores.shape(0), n = scores.shape(1);
  auto type = cpu::Type(cpu::type_index(scores.dtype()));
  int64_t bytes = n * int64_t(scores.itemsize());
  std::vector<mx::array> inputs = {scores};
  if (correction) {
    inputs.push_back(mx::astype(*correction, mx::float32, s));
  }
  if (given) {
    inputs.push_back(*given);
  }
  const int at_given = given ? int(inputs.size()) - 1 : 0;
  auto body = [=, corrects = correction.has_value()](const cpu::Memory& m) {
    cpu::parallel(rows, cpu::rows_per_piece(n * 16), [&](int64_t begin, int64_t end) {
      Row row(c, n);
      std::vector<float> x(static_cast<size_t>(n));
      for (int64_t r = begin; r < end; r++) {
        cpu::matmul_kernels().widen(type, cpu::at(m.in[0], r * bytes), x.data(), n);
        row.choose(x.data(), corrects ? m.input<float>(1) : nullptr,
                   at_given > 0 ? m.input<uint32_t>(at_given) + r * c.k : nullptr, m.output<float>(0) + r * c.k,
                   m.output<uint32_t>(1) + r * c.k);
      }
    });
  };
  return cpu::node("choose_experts", std::move(inputs), {{rows, c.k}, {rows, c.k}}, {mx::float32, mx::uint32}, s,
                   std::move(body));
}

mx::array combine_rows(const mx::array& x, const mx::array& weights, const Optional& bias, const Optional& chosen,
                       const Optional& added, const Optional& gate, Where s) {
  int axes = int(x.ndim());
  if ((axes != 3 && (axes != 4 || x.shape(2) != 1)) || !floating(x) || weights.ndim() != 2 || !floating(weights) ||
      weights.shape(0) != x.shape(0) || weights.shape(1) != x.shape(1)) {
    refuse("rows " + to_string(x) + " do not fit the weights " + to_string(weights));
  }
  int rows = x.shape(0), k = x.shape(1), n = x.shape(-1);
  if (added && (added->shape() != mx::Shape{rows, n} || !floating(*added))) {
    refuse("rows " + to_string(x) + " do not fit the summand " + to_string(*added));
  }
  if (gate && (!added || gate->shape() != mx::Shape{rows, 1} || !floating(*gate))) {
    refuse("the gate " + to_string(*gate) + " does not fit rows " + to_string(x));
  }
  if (bias.has_value() != chosen.has_value() ||
      (bias && (bias->ndim() != 2 || bias->shape(0) < 1 || bias->shape(1) != n || !floating(*bias) ||
                chosen->shape() != weights.shape() || !mx::issubdtype(chosen->dtype(), mx::integer)))) {
    refuse("the biases " + to_string(bias ? *bias : *chosen) + " do not fit rows " + to_string(x));
  }
  auto f32 = [&](const mx::array& a) { return mx::astype(a, mx::float32, s); };
  if (!cpu::uses_kernels(x, s)) {
    auto each = mx::reshape(f32(x), {rows, k, n}, s);
    if (bias) {
      each = mx::add(each, f32(mx::take(*bias, *chosen, 0, s)), s);
    }
    auto sum = mx::sum(mx::multiply(each, mx::expand_dims(f32(weights), -1, s), s), 1, false, s);
    if (added) {
      auto more = f32(*added);
      sum = mx::add(sum, gate ? mx::multiply(more, mx::sigmoid(f32(*gate), s), s) : more, s);
    }
    return mx::astype(sum, x.dtype(), s);
  }
  auto type = cpu::Type(cpu::type_index(x.dtype()));
  std::vector<mx::array> inputs = {x, f32(weights)};
  if (bias) {
    inputs.push_back(mx::astype(*bias, x.dtype(), s));
    inputs.push_back(mx::astype(*chosen, mx::uint32, s));
  }
  const int last = int(inputs.size());
  if (added) {
    inputs.push_back(mx::astype(*added, x.dtype(), s));
  }
  if (gate) {
    inputs.push_back(f32(*gate));
  }
  ExpertSum sum{.type = type, .rows = rows, .k = k, .n = n, .adds = added.has_value(), .gates = gate.has_value()};
  auto body = [sum, last, experts = bias ? int64_t(bias->shape(0)) : 0](const cpu::Memory& m) {
    ExpertBias biases;
    if (experts > 0) {
      biases = {m.in[2], m.input<uint32_t>(3), experts};
    }
    sum.run(m.in[0], m.input<float>(1), biases, sum.adds ? m.in[last] : nullptr,
            sum.gates ? m.input<float>(last + 1) : nullptr, m.out[0]);
  };
  return cpu::node("combine_rows", std::move(inputs), {{rows, n}}, {x.dtype()}, s, std::move(body))[0];
}

mx::array clamped_gate(const mx::array& x, const Optional& bias, const Optional& rows, const Clamp& c, Where s) {
  if (x.ndim() < 1 || x.shape(-1) % 2 != 0 || !floating(x)) {
    refuse("cannot split the last axis of " + to_string(x) + " into halves");
  }
  if (!(c.limit > 0) || !(c.alpha > 0)) {
    refuse("a clamped SwiGLU with alpha " + std::to_string(c.alpha) + " and limit " + std::to_string(c.limit));
  }
  const int64_t wide = x.shape(-1), n = wide / 2, count = wide > 0 ? int64_t(x.size()) / wide : 0;
  if (bias.has_value() != rows.has_value() ||
      (bias && (bias->ndim() != 2 || bias->shape(0) < 1 || bias->shape(1) != wide || !floating(*bias) ||
                int64_t(rows->size()) != count || !mx::issubdtype(rows->dtype(), mx::integer)))) {
    refuse("the biases " + to_string(bias ? *bias : *rows) + " do not fit rows " + to_string(x));
  }
  if (!cpu::uses_kernels(x, s)) {
    auto number = [&](float v) { return mx::array(v, x.dtype()); };
    auto sum = x;
    if (bias) {
      sum = mx::add(x, mx::astype(mx::reshape(mx::take(*bias, *rows, 0, s), x.shape(), s), x.dtype(), s), s);
    }
    auto halves = mx::split(sum, 2, -1, s);
    auto g = mx::minimum(halves[0], number(c.limit), s);
    auto u = mx::clip(halves[1], number(-c.limit), number(c.limit), s);
    auto swish = mx::multiply(g, mx::sigmoid(mx::multiply(g, number(c.alpha), s), s), s);
    return mx::multiply(mx::add(u, number(c.shift), s), swish, s);
  }
  auto shape = x.shape();
  shape.back() = int(n);
  std::vector<mx::array> inputs = {x};
  if (bias) {
    inputs.push_back(mx::astype(*bias, x.dtype(), s));
    inputs.push_back(mx::astype(*rows, mx::uint32, s));
  }
  const auto type = cpu::type_index(x.dtype());
  const int64_t size = int64_t(x.itemsize());
  auto body = [=, experts = bias ? int64_t(bias->shape(0)) : 0](const cpu::Memory& m) {
    ExpertBias biases;
    if (experts > 0) {
      biases = {m.in[1], m.input<uint32_t>(2), experts};
    }
    cpu::parallel(count, cpu::rows_per_piece(n * 8), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        gate_row(cpu::at(m.in[0], i * wide * size), cpu::at(m.out[0], i * n * size), i, n, type, biases, c);
      }
    });
  };
  return cpu::node("clamped_gate", std::move(inputs), {shape}, {x.dtype()}, s, std::move(body))[0];
}

}  // namespace ingot
