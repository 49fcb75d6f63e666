// The gated feed-forward blocks of experts: the gate and up product, the activation, the down product and the sum.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "ops/experts/experts.h"
#include "ops/experts/sum.h"
#include "ops/matmul.h"
#include "ops/matrix.h"
#include "ops/rows.h"
#include "core/call.h"
#include "cpu/isa.h"
#include "cpu/rows/rows.h"
#include "cpu/rows/node.h"

namespace ingot {

namespace {

// One matrix of all experts.
struct Bank {
  mx::array w;
  Optional scales, biases;
  std::string mode;  // empty: not quantized
  std::optional<int> group, bits;

  std::vector<mx::array> arrays() const {
    std::vector<mx::array> all = {w};
    for (auto* a : {&scales, &biases}) {
      if (*a) {
        all.push_back(**a);
      }
    }
    return all;
  }

  std::optional<Matrix> matrix(int columns) const {
    if (scales) {
      return quantized_matrix(columns, w, *scales, biases, group, bits, mode);
    }
    return takes(w) && w.shape(-1) == columns ? std::optional(plain_matrix(w)) : std::nullopt;
  }

  // Multiplies rows of x [..., 1, in] by the matrices of experts, both chosen by index.
  mx::array apply(const mx::array& x, const mx::array& rows, const mx::array& experts, Where s) const {
    if (scales) {
      return gathered_quantized({.x = x, .w = w, .scales = *scales, .biases = biases, .lhs = rows, .rhs = experts,
                                 .transpose = true, .group = group, .bits = bits, .mode = mode, .sorted = false},
                                s);
    }
    return gathered_product(x, mx::swapaxes(w, -1, -2, s), rows, experts, false, s);
  }
};

std::vector<Bank> banks(const std::vector<mx::array>& parts, const std::vector<int>& formats,
                        const std::vector<int>& groups, const std::vector<int>& bits) {
  if (formats.size() != 2 || groups.size() != 2 || bits.size() != 2) {
    throw std::invalid_argument("experts: " + std::to_string(formats.size()) + " formats for two matrices");
  }
  size_t next = 0;
  auto take = [&]() -> const mx::array& {
    if (next >= parts.size()) {
      throw std::invalid_argument("experts: " + std::to_string(parts.size()) +
                                  " arrays are not enough for the formats");
    }
    return parts[next++];
  };
  std::vector<Bank> all;
  for (size_t i = 0; i < 2; i++) {
    if (formats[i] < -1 || formats[i] >= int(std::size(kModes))) {
      throw std::invalid_argument("experts: unknown format " + std::to_string(formats[i]));
    }
    Bank b{.w = take()};
    if (b.w.ndim() != 3) {
      throw std::invalid_argument("experts: weights are " + to_string(b.w) + ", want a matrix per expert");
    }
    if (formats[i] >= 0) {
      b.mode = kModes[formats[i]];
      b.group = groups[i] ? std::optional<int>(groups[i]) : std::nullopt;
      b.bits = bits[i] ? std::optional<int>(bits[i]) : std::nullopt;
      b.scales = take();
      if (formats[i] == 0) {
        b.biases = take();
      }
    }
    all.push_back(std::move(b));
  }
  return all;
}

// With more (row, expert) pairs than this, the intermediate results would need too much scratch memory.
constexpr int64_t kMaxFusedPicks = 512;
constexpr int kHidden = 10, kActivated = 11, kExpertOutputs = 12;  // scratch slots

}  // namespace

mx::array gated_experts(const GatedExperts& e, Where s) {
  const mx::array &x = e.x, &weights = e.weights, &chosen = e.chosen;
  const Optional &added = e.added, &gate = e.gate;
  const bool gelu = e.gelu;
  auto both = banks(e.parts, e.formats, e.groups, e.bits);
  if (x.ndim() != 2 || chosen.ndim() != 2 || chosen.shape(0) != x.shape(0) ||
      !mx::issubdtype(chosen.dtype(), mx::integer) ||
      weights.shape() != chosen.shape()) {
    throw std::invalid_argument("experts " + to_string(chosen) + " and weights " + to_string(weights) +
                                " do not fit rows " + to_string(x));
  }
  const bool clamped = e.clamp.limit != 0, biased = !e.biases.empty();
  if (biased && (!clamped || e.biases.size() != 2)) {
    throw std::invalid_argument("experts: " + std::to_string(e.biases.size()) +
                                " biases, want two, and a clamped gate");
  }
  const Optional wide_bias = biased ? Optional(e.biases[0]) : std::nullopt;
  const Optional out_bias = biased ? Optional(e.biases[1]) : std::nullopt;
  const auto act = gelu ? Activation::gelu_tanh : Activation::silu;
  const int rows = x.shape(0), k = chosen.shape(1), in = x.shape(1), wide = both[0].w.shape(1),
      out = both[1].w.shape(1);
  const int64_t picks = int64_t(rows) * k, experts = both[0].w.shape(0);
  std::optional<Matrix> up, down;
  if (cpu::uses_kernels(x, s) && takes(x) && picks > 0 && picks <= kMaxFusedPicks && wide % 2 == 0 &&
      both[1].w.shape(0) == experts &&
      (!clamped || (e.clamp.limit > 0 && e.clamp.alpha > 0)) &&
      (!biased || (wide_bias->shape() == mx::Shape{int(experts), wide} &&
                   out_bias->shape() == mx::Shape{int(experts), out})) &&
      (!added || added->shape() == mx::Shape{rows, out}) && (!gate || (added && gate->shape() == mx::Shape{rows, 1}))) {
    up = both[0].matrix(in);
    down = both[1].matrix(wide / 2);
  }
  if (!up || !down || product_type(x, *up) != x.dtype() || product_type(x, *down) != x.dtype()) {
    std::vector<uint32_t> of(static_cast<size_t>(picks)), each(static_cast<size_t>(picks));
    for (size_t i = 0; i < of.size(); i++) {
      of[i] = uint32_t(i) / uint32_t(k);
    }
    std::iota(each.begin(), each.end(), 0);
    auto index = [&](const std::vector<uint32_t>& v) { return mx::array(v.begin(), {rows, k}, mx::uint32); };
    auto h = both[0].apply(mx::expand_dims(x, 1, s), index(of), chosen, s);
    auto who = biased ? Optional(chosen) : std::nullopt;
    auto a = clamped ? clamped_gate(h, wide_bias, who, e.clamp, s) : gated(act, h, std::nullopt, s);
    return combine_rows(both[1].apply(a, index(each), chosen, s), weights, out_bias, who, added, gate, s);
  }

  std::vector<mx::array> inputs = {x, mx::astype(weights, mx::float32, s), mx::astype(chosen, mx::uint32, s)};
  for (const auto& b : both) {
    auto arrays = b.arrays();
    inputs.insert(inputs.end(), arrays.begin(), arrays.end());
  }
  const int first_bias = int(inputs.size());
  for (const auto& b : e.biases) {
    inputs.push_back(mx::astype(b, x.dtype(), s));
  }
  const int last = int(inputs.size());
  if (added) {
    inputs.push_back(mx::astype(*added, x.dtype(), s));
  }
  if (gate) {
    inputs.push_back(mx::astype(*gate, mx::float32, s));
  }
  const auto type = type_of(x.dtype());
  const int64_t size = int64_t(x.itemsize()), half = wide / 2;
  ExpertSum sum{.type = type, .rows = rows, .k = k, .n = out, .adds = added.has_value(), .gates = gate.has_value()};
  auto body = [=, clamp = e.clamp, up = up->form, down = down->form,
               fast = cpu::math() == cpu::Math::fast](const cpu::Memory& m) {
    auto* h = cpu::scratch<char>(kHidden, size_t(picks * wide * size));
    auto* a = cpu::scratch<char>(kActivated, size_t(picks * half * size));
    auto* y = cpu::scratch<char>(kExpertOutputs, size_t(picks * out * size));
    std::vector<uint32_t> expert(static_cast<size_t>(picks));
    std::vector<const void*> from(2 * static_cast<size_t>(picks));
    std::vector<void*> to(from.size());
    int next = 3;
    auto product = [&](const cpu::Weights& form, int64_t first) {
      return cpu::Gathered{.weights = at(form, m, next), .experts = experts, .x = from.data() + first,
                           .expert = expert.data(), .y = to.data() + first, .rows = picks, .type = type};
    };
    const auto first_product = product(up, 0), second_product = product(down, picks);
    for (int64_t i = 0; i < picks; i++) {
      // An index out of range is a bug of the caller. It cannot be reported from here, but must not read other memory.
      expert[size_t(i)] = uint32_t(std::min<int64_t>(m.input<uint32_t>(2)[i], experts - 1));
      from[size_t(i)] = cpu::at(m.in[0], i / k * in * size);
      to[size_t(i)] = h + i * wide * size;
      from[size_t(picks + i)] = a + i * half * size;
      to[size_t(picks + i)] = y + i * out * size;
    }
    ExpertBias of_wide, of_out;
    if (biased) {
      of_wide = {m.in[first_bias], expert.data(), experts};
      of_out = {m.in[first_bias + 1], expert.data(), experts};
    }
    auto activate = cpu::row_kernels().activate[int(gelu ? cpu::Act::gelu_tanh : cpu::Act::silu)][int(type)];
    auto between = [&](int64_t i) {
      const char* row = h + i * wide * size;
      if (clamped) {
        gate_row(row, a + i * half * size, i, half, int(type), of_wide, clamp);
        return;
      }
      activate(row, row + half * size, a + i * half * size, half, 0);
    };
    cpu::multiply_gathered(first_product, between, second_product, fast);
    sum.run(y, m.input<float>(1), of_out, sum.adds ? m.in[last] : nullptr,
            sum.gates ? m.input<float>(last + 1) : nullptr, m.out[0]);
  };
  return cpu::node("gated_experts", std::move(inputs), {{rows, out}}, {x.dtype()}, s, std::move(body))[0];
}

}  // namespace ingot
