// Experts without weights, which return their input, and experts whose weights another rank has.
#include <algorithm>

#include "core/call.h"
#include "core/checks.h"
#include "cpu/rows/node.h"
#include "ops/experts/experts.h"

namespace ingot {

namespace {

void need_choice(const char* what, const mx::array& weights, const mx::array& chosen, bool sensible) {
  if (chosen.ndim() != 2 || chosen.size() == 0 || chosen.dtype() != mx::uint32 || weights.dtype() != mx::float32 ||
      weights.shape() != chosen.shape() || !sensible) {
    refuse(std::string(what) + " experts: weights " + to_string(weights) + " and experts " + to_string(chosen) +
           ", want float32 and uint32 [rows, k]");
  }
}

}  // namespace

std::vector<mx::array> identity_experts(const mx::array& weights, const mx::array& chosen, int n,
                                        mx::StreamOrDevice s) {
  need_choice("identity", weights, chosen, n >= 1);
  const int rows = chosen.shape(0), k = chosen.shape(1);
  if (!cpu::on_cpu(s)) {
    auto end = mx::array(uint32_t(n)), zero = mx::array(0.0f);
    auto is_identity = mx::greater_equal(chosen, end, s);
    auto own = mx::sum(mx::where(is_identity, weights, zero, s), -1, true, s);
    auto other = mx::minimum(mx::min(chosen, -1, true, s), mx::array(uint32_t(n - 1)), s);
    return {own, mx::where(is_identity, zero, weights, s), mx::where(is_identity, other, chosen, s)};
  }
  auto body = [=](const cpu::Memory& m) {
    for (int i = 0; i < rows; i++) {
      const float* weight = m.input<float>(0) + int64_t(i) * k;
      const uint32_t* expert = m.input<uint32_t>(1) + int64_t(i) * k;
      float *own = m.output<float>(0) + i, *rest = m.output<float>(1) + int64_t(i) * k;
      uint32_t* others = m.output<uint32_t>(2) + int64_t(i) * k;
      const uint32_t other = std::min(*std::min_element(expert, expert + k), uint32_t(n - 1));
      *own = 0;
      for (int j = 0; j < k; j++) {
        const bool is_identity = expert[j] >= uint32_t(n);
        *own += is_identity ? weight[j] : 0;
        rest[j] = is_identity ? 0 : weight[j];
        others[j] = is_identity ? other : expert[j];
      }
    }
  };
  return cpu::node("identity_experts", {weights, chosen}, {{rows, 1}, {rows, k}, {rows, k}},
                   {mx::float32, mx::float32, mx::uint32}, s, std::move(body));
}

std::vector<mx::array> own_experts(const mx::array& weights, const mx::array& chosen, int first, int n,
                                   mx::StreamOrDevice s) {
  need_choice("own", weights, chosen, first >= 0 && n >= 1);
  const auto begin = uint32_t(first), count = uint32_t(n);
  if (!cpu::on_cpu(s)) {
    auto local = mx::subtract(chosen, mx::array(begin), s);  // others wrap around, or are too large
    auto own = mx::less(local, mx::array(count), s);
    auto other = mx::min(mx::where(own, local, mx::array(count - 1), s), -1, true, s);
    return {mx::where(own, weights, mx::array(0.0f), s), mx::where(own, local, other, s)};
  }
  const int rows = chosen.shape(0), k = chosen.shape(1);
  auto body = [=](const cpu::Memory& m) {
    for (int i = 0; i < rows; i++) {
      const float* weight = m.input<float>(0) + int64_t(i) * k;
      const uint32_t* expert = m.input<uint32_t>(1) + int64_t(i) * k;
      float* rest = m.output<float>(0) + int64_t(i) * k;
      uint32_t* local = m.output<uint32_t>(1) + int64_t(i) * k;
      uint32_t other = count - 1;
      for (int j = 0; j < k; j++) {
        other = std::min(other, expert[j] - begin);  // others wrap around, or are too large
      }
      for (int j = 0; j < k; j++) {
        const bool own = expert[j] - begin < count;
        rest[j] = own ? weight[j] : 0;
        local[j] = own ? expert[j] - begin : other;
      }
    }
  };
  return cpu::node("own_experts", {weights, chosen}, {{rows, k}, {rows, k}}, {mx::float32, mx::uint32}, s,
                   std::move(body));
}

}  // namespace ingot
