// Recurrent layers: the scan of RWKV 7.
#include <algorithm>
#include <cmath>

#include "ops/rows.h"
#include "ops/recurrent/segments.h"
#include "core/call.h"
#include "core/checks.h"
#include "cpu/delta/delta.h"
#include "cpu/rows/node.h"

namespace ingot {

namespace {

constexpr float kFastest = -0.60653065971263342f;  // -e^-0.5

// One row in MLX's operations. All arrays are [heads, dim], the state [heads, dim, dim].
mx::array wkv_row(const mx::array& decay, const mx::array& unit, const mx::array& write, const mx::array& v,
                  const mx::array& key, const mx::array& r, mx::array& state, Where s) {
  auto columns = [&](const mx::array& x) { return mx::expand_dims(x, 2, s); };
  auto lines = [&](const mx::array& x) { return mx::expand_dims(x, 1, s); };
  auto removed = mx::multiply(mx::matmul(state, columns(unit), s), lines(write), s);
  auto added = mx::multiply(columns(v), lines(key), s);
  state = mx::add(mx::subtract(mx::multiply(state, lines(decay), s), removed, s), added, s);
  return mx::squeeze(mx::matmul(state, columns(r), s), 2, s);
}

}  // namespace

std::vector<mx::array> wkv_scan(const mx::array& r, const mx::array& w, const mx::array& k, const mx::array& v,
                                const mx::array& a, const std::vector<mx::array>& parts, double eps,
                                const std::vector<mx::array>& states, bool in_place, const std::vector<int>& lengths,
                                Where s) {
  bool fits = r.ndim() == 3 && r.size() > 0 && mx::issubdtype(r.dtype(), mx::floating) && parts.size() == 5 &&
              states.size() == lengths.size();
  for (const auto* x : {&w, &k, &v, &a}) {
    fits = fits && x->shape() == r.shape() && x->dtype() == r.dtype();
  }
  for (const auto& x : parts) {
    fits = fits && x.dtype() == mx::float32 && x.shape() == mx::Shape{r.shape(1), r.shape(2)};
  }
  for (const auto& x : states) {
    fits = fits && x.dtype() == mx::float32 && x.shape() == mx::Shape{r.shape(1), r.shape(2), r.shape(2)};
  }
  if (!fits) {
    throw std::invalid_argument("rows " + shapes_of({r, w, k, v, a}) + ", parts " + shapes_of(parts) + " and states " +
                                shapes_of(states) + " do not fit together");
  }
  result_count(int(lengths.size()) + 1);
  Segments segments(lengths, r.shape(0));
  const int64_t heads = r.shape(1), dim = r.shape(2);
  std::vector<mx::array> inputs{r, w, k, v, a};
  inputs.insert(inputs.end(), parts.begin(), parts.end());
  if (cpu::uses_kernels(r, s)) {
    std::vector<mx::Shape> shapes{r.shape()};
    std::vector<mx::Dtype> types{r.dtype()};
    std::vector<cpu::Reuse> reuse;
    const int first = int(inputs.size());
    for (size_t i = 0; i < states.size(); i++) {
      reuse.push_back({int(i) + 1, first + int(i), in_place});
      inputs.push_back(states[i]);
      shapes.push_back(states[i].shape());
      types.push_back(mx::float32);
    }
    auto body = [=, type = cpu::type_index(r.dtype()), size = int64_t(r.itemsize()),
                 eps = float(eps)](const cpu::Memory& m) {
      auto run = cpu::delta_kernels().wkv[type];
      cpu::parallel(int64_t(segments.size()) * heads, 1, [&](int64_t begin, int64_t end) {
        auto* work = cpu::scratch<float>(cpu::kRowsScratch, size_t(cpu::kWkvWork * dim));
        for (int64_t i = begin; i < end; i++) {
          const int64_t g = i / heads, head = i % heads;
          const int64_t at = (segments.first[size_t(g)] * heads + head) * dim * size;
          auto part = [&](int j) { return m.input<float>(5 + j) + head * dim; };
          cpu::Wkv c{};
          c.rows = segments.count[size_t(g)];
          c.dim = dim;
          c.stride = heads * dim;
          c.r = cpu::at(m.in[0], at);
          c.w = cpu::at(m.in[1], at);
          c.k = cpu::at(m.in[2], at);
          c.v = cpu::at(m.in[3], at);
          c.a = cpu::at(m.in[4], at);
          c.key_scale = part(0);
          c.key_rate = part(1);
          c.bonus = part(2);
          c.weight = part(3);
          c.bias = part(4);
          c.eps = eps;
          c.from = m.input<float>(first + int(g)) + head * dim * dim;
          c.to = m.output<float>(1 + int(g)) + head * dim * dim;
          c.y = cpu::at(m.out[0], at);
          run(c, work);
        }
      });
    };
    return cpu::node("wkv_scan", std::move(inputs), std::move(shapes), std::move(types), s, std::move(body),
                     std::move(reuse));
  }
  auto wide = [&](const mx::array& x) { return mx::astype(x, mx::float32, s); };
  auto one = mx::array(1.0f);
  auto reads = wide(r), keys = wide(k), values = wide(v), rates = mx::sigmoid(wide(a), s);
  auto decays = mx::exp(mx::multiply(mx::sigmoid(wide(w), s), mx::array(kFastest), s), s);
  auto units = mx::multiply(keys, parts[0], s);
  auto length = mx::sqrt(mx::sum(mx::square(units, s), -1, true, s), s);
  units = mx::divide(units, mx::maximum(length, mx::array(1e-7f), s), s);
  keys = mx::multiply(keys, mx::add(mx::multiply(mx::subtract(rates, one, s), parts[1], s), one, s), s);
  auto writes = mx::multiply(units, rates, s);
  auto bonus = mx::sum(mx::multiply(mx::multiply(reads, keys, s), parts[2], s), -1, true, s);
  std::vector<mx::array> ys, out;
  for (size_t i = 0; i < states.size(); i++) {
    auto state = states[i];
    for (int64_t t = 0; t < segments.count[i]; t++) {
      auto row = [&](const mx::array& x) { return mx::squeeze(segment(x, segments.first[i] + t, 1, s), 0, s); };
      ys.push_back(wkv_row(row(decays), row(units), row(writes), row(values), row(keys), row(reads), state, s));
    }
    out.push_back(state);
  }
  auto y = mx::stack(ys, 0, s);
  auto centered = mx::subtract(y, mx::mean(y, -1, true, s), s);
  auto spread = mx::mean(mx::square(centered, s), -1, true, s);
  y = mx::multiply(centered, mx::rsqrt(mx::add(spread, mx::array(float(eps)), s), s), s);
  y = mx::add(mx::add(mx::multiply(y, parts[3], s), parts[4], s), mx::multiply(bonus, values, s), s);
  out.insert(out.begin(), mx::astype(y, r.dtype(), s));
  return out;
}

}  // namespace ingot
