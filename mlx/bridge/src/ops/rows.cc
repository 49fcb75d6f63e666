// Norms.
#include "ops/rows.h"

#include "core/checks.h"
#include "cpu/rows/rows.h"
#include "cpu/rows/node.h"
#include "mlx/fast.h"

namespace ingot {

namespace {

bool fits_last_axis(const Optional& weight, const mx::array& x) {
  return !weight || (weight->ndim() == 1 && weight->shape(0) == x.shape(-1));
}

// NormNode creates a node that normalizes rows. Its inputs are x and then, as far as they exist, residual, weight and
// bias.
struct NormNode {
  bool residual = false, weight = false, bias = false, weight_f32 = false;
  float offset = 0, eps = 0;

  std::vector<mx::array> make(const char* name, std::vector<mx::array> inputs, bool layer, Where s) const {
    const auto& x = inputs[0];
    auto type = x.dtype();
    int kind = cpu::type_index(type);
    int64_t n = x.shape(-1), rows = int64_t(x.size()) / n, bytes = n * int64_t(type.size());
    std::vector<mx::Shape> shapes(residual ? 2 : 1, x.shape());
    std::vector<mx::Dtype> types(shapes.size(), type);
    std::vector<cpu::Reuse> reuse{{0, 0, false}};
    if (residual) {
      reuse.push_back({1, 1, false});
    }
    auto body = [*this, kind, n, rows, bytes, layer](const cpu::Memory& m) {
      auto run = layer ? cpu::row_kernels().layer_norm[kind] : cpu::row_kernels().rms_norm[kind];
      int next = 1 + residual;
      cpu::Norm row{};
      row.weight = weight ? m.in[next++] : nullptr;
      row.bias = bias ? m.in[next] : nullptr;
      row.weight_f32 = weight_f32;
      row.offset = offset;
      row.eps = eps;
      row.n = n;
      cpu::parallel(rows, cpu::rows_per_piece(n), [&](int64_t begin, int64_t end) {
        cpu::Norm r = row;
        for (int64_t i = begin * bytes; i < end * bytes; i += bytes) {
          r.x = cpu::at(m.in[0], i);
          r.residual = residual ? cpu::at(m.in[1], i) : nullptr;
          r.sum = residual ? cpu::at(m.out[0], i) : nullptr;
          r.out = cpu::at(m.out[residual], i);
          run(r);
        }
      });
    };
    return cpu::node(name, std::move(inputs), std::move(shapes), std::move(types), s, std::move(body),
                     std::move(reuse));
  }
};

mx::array one_plus(const mx::array& weight, Where s) {
  return mx::add(mx::astype(weight, mx::float32, s), mx::array(1.0f), s);
}

// Returns norm, the result of one of MLX's norms, or zeros of its shape without computing it if it has no rows: MLX's
// CUDA kernels divide by the number of rows.
mx::array of_rows(mx::array norm, Where s) {
  return norm.size() == 0 ? mx::zeros(norm.shape(), norm.dtype(), s) : norm;
}

// Returns weights to which 1 is added in float32: in the type of x, or in float32.
mx::array as_offset(const mx::array& weight, const mx::array& x, Where s) {
  return weight.dtype() == x.dtype() ? weight : mx::astype(weight, mx::float32, s);
}

}  // namespace

mx::array rms_norm(const mx::array& x, const Optional& weight, double eps, Where s) {
  auto type = weight ? mx::promote_types(x.dtype(), weight->dtype()) : x.dtype();
  if (!cpu::uses_kernels(x, s) || x.ndim() < 1 || !cpu::has_kernels(type) || !fits_last_axis(weight, x)) {
    return of_rows(mx::fast::rms_norm(x, weight, float(eps), s), s);
  }
  std::vector<mx::array> inputs{mx::astype(x, type, s)};
  NormNode node{.weight = weight.has_value(), .eps = float(eps)};
  if (weight) {
    inputs.push_back(mx::astype(*weight, type, s));
  }
  return node.make("rms_norm", std::move(inputs), false, s)[0];
}

mx::array rms_norm_plus_one(const mx::array& x, const mx::array& weight, double eps, Where s) {
  if (!cpu::uses_kernels(x, s) || x.ndim() < 1 || !fits_last_axis(weight, x)) {
    auto y = mx::fast::rms_norm(mx::astype(x, mx::float32, s), one_plus(weight, s), float(eps), s);
    return mx::astype(of_rows(y, s), x.dtype(), s);
  }
  auto w = as_offset(weight, x, s);
  NormNode node{.weight = true, .weight_f32 = w.dtype() == mx::float32, .offset = 1, .eps = float(eps)};
  return node.make("rms_norm", {x, w}, false, s)[0];
}

std::vector<mx::array> add_rms_norm(const mx::array& x, const mx::array& residual, const Optional& weight, double eps,
                                    bool plus_one, Where s) {
  bool same = x.shape() == residual.shape() && x.dtype() == residual.dtype();
  bool weight_type = !weight || plus_one || weight->dtype() == x.dtype();
  if (!same || !weight_type || !cpu::uses_kernels(x, s) || x.ndim() < 1 || !fits_last_axis(weight, x)) {
    auto sum = mx::add(x, residual, s);
    return {sum, plus_one && weight ? rms_norm_plus_one(sum, *weight, eps, s) : rms_norm(sum, weight, eps, s)};
  }
  std::vector<mx::array> inputs{x, residual};
  NormNode node{.residual = true, .weight = weight.has_value(), .eps = float(eps)};
  if (weight) {
    inputs.push_back(plus_one ? as_offset(*weight, x, s) : *weight);
    node.weight_f32 = inputs.back().dtype() == mx::float32;
    node.offset = plus_one;
  }
  return node.make("add_rms_norm", std::move(inputs), false, s);
}

mx::array layer_norm(const mx::array& x, const Optional& weight, const Optional& bias, double eps, Where s) {
  auto type = x.dtype();
  for (auto& a : {weight, bias}) {
    type = a ? mx::promote_types(type, a->dtype()) : type;
  }
  if (!cpu::uses_kernels(x, s) || x.ndim() < 1 || !cpu::has_kernels(type) || !fits_last_axis(weight, x) ||
      !fits_last_axis(bias, x)) {
    return of_rows(mx::fast::layer_norm(x, weight, bias, float(eps), s), s);
  }
  std::vector<mx::array> inputs{mx::astype(x, type, s)};
  NormNode node{.weight = weight.has_value(), .bias = bias.has_value(), .eps = float(eps)};
  for (auto& a : {weight, bias}) {
    if (a) {
      inputs.push_back(mx::astype(*a, type, s));
    }
  }
  return node.make("layer_norm", std::move(inputs), true, s)[0];
}

}  // namespace ingot
