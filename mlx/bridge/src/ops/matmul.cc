#include "ops/matmul.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "ops/matrix.h"
#include "core/call.h"
#include "core/checks.h"
#include "cpu/isa.h"
#include "mlx/backend/cuda/cuda.h"

namespace ingot {

namespace {

size_t size_of(cpu::Type t) { return t == cpu::Type::f32 ? 4 : 2; }

mx::Shape with_last(mx::Shape shape, int64_t n) {
  shape.back() = int(n);
  return shape;
}

// Returns dequantized weights in the type of the product with x.
mx::array plain_weights(const mx::array& x, const mx::array& w, const mx::array& scales, const Optional& biases,
                        std::optional<int> group, std::optional<int> bits, const std::string& mode,
                        mx::StreamOrDevice s) {
  const auto& codes = packed(w, scales, group, bits, mode);
  if (mode != "affine" || !biases) {
    return mx::dequantize(codes, scales, biases, group, bits, mode, std::nullopt, x.dtype(), s);
  }
  auto type = mx::promote_types(x.dtype(), scales.dtype());
  return mx::dequantize(codes, mx::astype(scales, type, s), mx::astype(*biases, type, s), group, bits, mode,
                        std::nullopt, std::nullopt, s);
}

bool on_cuda(mx::StreamOrDevice s) {
  static const bool available = mx::cu::is_available();
  return available && !cpu::on_cpu(s);
}

// Reports whether an NVIDIA GPU dequantizes weights before a product with x.
bool dequantizes_first(const mx::array& x, std::optional<int> group, std::optional<int> bits, const std::string& mode) {
  // MLX's kernels for packed weights are made for few rows. Writing plain weights and reading them takes less time from
  // about 200 rows on with 4 bits, and from about 400 with 8.
  const size_t many = bits.value_or(4) > 4 ? 512 : 256;
  // MLX's kernel for Hopper takes only matrices of a single group per row, and leaves the result unwritten:
  // https://github.com/ml-explore/mlx/blob/v0.32.2/mlx/backend/cuda/quantized/qmm/qmm.cu (supports_qmm_sm90).
  const bool one_group = mode == "affine" && group.value_or(64) >= x.shape(-1);
  return one_group || x.size() >= many * size_t(x.shape(-1));
}

}  // namespace

mx::array quantized_product(const mx::array& x, const mx::array& w, const mx::array& scales, const Optional& biases,
                            bool transpose, std::optional<int> group, std::optional<int> bits, const std::string& mode,
                            mx::StreamOrDevice s) {
  if (cpu::on_cpu(s) && transpose && takes(x) && w.ndim() == 2) {
    if (auto m = quantized_matrix(x.shape(-1), w, scales, biases, group, bits, mode)) {
      auto type = product_type(x, *m);
      std::vector<mx::array> arrays = {w, scales};
      if (biases) {
        arrays.push_back(*biases);
      }
      return multiply(x, {*m}, std::move(arrays), {0}, {with_last(x.shape(), m->form.rows)}, type, s)[0];
    }
  }
  if (on_cuda(s) && transpose && w.ndim() == 2 && dequantizes_first(x, group, bits, mode)) {
    return mx::matmul(not_empty(x), mx::transpose(plain_weights(x, w, scales, biases, group, bits, mode, s), s), s);
  }
  return mx::quantized_matmul(not_empty(x), packed(w, scales, group, bits, mode), scales, biases, transpose, group,
                              bits, mode, s);
}

mx::array matrix_product(const mx::array& a, const mx::array& b, mx::StreamOrDevice s) {
  bool fits = cpu::on_cpu(s) && takes(a) && takes(b) && a.ndim() >= 2 && b.ndim() >= 2 && a.shape(-1) == b.shape(-2);
  if (!fits) {
    return mx::matmul(a, b, s);
  }
  auto type = mx::promote_types(a.dtype(), b.dtype());
  auto transposed = mx::swapaxes(b, -1, -2, s);  // weight rows are columns of b
  if (b.ndim() == 2) {
    return multiply(a, {plain_matrix(transposed)}, {transposed}, {0}, {with_last(a.shape(), transposed.shape(0))}, type,
                    s)[0];
  }
  auto batch = mx::broadcast_shapes(mx::Shape(a.shape().begin(), a.shape().end() - 2),
                                    mx::Shape(b.shape().begin(), b.shape().end() - 2));
  auto shaped = [&](const mx::array& x) {
    auto shape = batch;
    shape.push_back(x.shape(-2));
    shape.push_back(x.shape(-1));
    return mx::broadcast_to(x, shape, s);
  };
  auto x = shaped(mx::astype(a, type, s));
  transposed = shaped(transposed);
  auto m = plain_matrix(transposed);
  int64_t rows = x.shape(-2), columns = x.shape(-1), count = 1;
  for (int n : batch) {
    count *= n;
  }
  auto shape = batch;
  shape.push_back(int(rows));
  shape.push_back(int(m.form.rows));
  auto kind = type_of(type);
  return cpu::node("matmul", {x, transposed}, {shape}, {type}, s, [=](const cpu::Memory& memory) {
    auto matrix = m.form;
    size_t step = size_of(kind);
    for (int64_t i = 0; i < count; i++) {
      matrix.codes = memory.input<uint8_t>(1) + size_t(i * matrix.rows * matrix.row_bytes());
      cpu::Product p{.weights = matrix, .y = memory.output<uint8_t>(0) + size_t(i * rows * matrix.rows) * step,
                     .type = kind};
      cpu::multiply(memory.input<uint8_t>(0) + size_t(i * rows * columns) * step, kind, rows, columns, &p, 1, false);
    }
  })[0];
}

namespace {

// Multiplies rows of x [..., rows, in] by matrices of w, both chosen by index: [experts..., out, in] or, if across is
// set, [experts..., in, out]. The indices broadcast to one shape.
mx::array gather(const mx::array& x, const Matrix& m, std::vector<mx::array> arrays, const Optional& lhs,
                 const Optional& rhs, bool across, mx::Dtype type, mx::StreamOrDevice s) {
  const auto& w = arrays[0];
  int64_t rows = x.shape(-2), columns = x.shape(-1), outputs = across ? m.form.columns : m.form.rows;
  int64_t sources = int64_t(x.size()) / (rows * columns),
      experts = int64_t(w.size()) / (int64_t(w.shape(-1)) * w.shape(-2));
  auto all = [&](int64_t n, const mx::Shape& from) {
    std::vector<uint32_t> every(static_cast<size_t>(n));
    std::iota(every.begin(), every.end(), 0);
    return mx::array(every.begin(), mx::Shape(from.begin(), from.end() - 2), mx::uint32);
  };
  auto left = lhs ? *lhs : all(sources, x.shape()), right = rhs ? *rhs : all(experts, w.shape());
  auto both = mx::broadcast_arrays({mx::astype(left, mx::uint32, s), mx::astype(right, mx::uint32, s)}, s);
  auto shape = both[0].shape();
  int64_t picks = int64_t(both[0].size());
  shape.push_back(int(rows));
  shape.push_back(int(outputs));
  std::vector<mx::array> inputs = {mx::astype(x, type, s), both[0], both[1]};
  inputs.insert(inputs.end(), arrays.begin(), arrays.end());
  bool fast = cpu::math() == cpu::Math::fast;
  auto kind = type_of(type);
  return cpu::node("gather_matmul", std::move(inputs), {shape}, {type}, s, [=](const cpu::Memory& memory) {
    int next = 3;
    cpu::Gathered g{.weights = at(m.form, memory, next), .experts = experts, .rows = picks * rows, .type = kind};
    std::vector<const void*> from(static_cast<size_t>(g.rows));
    std::vector<void*> to(static_cast<size_t>(g.rows));
    std::vector<uint32_t> expert(static_cast<size_t>(g.rows));
    size_t in = size_t(columns) * size_of(kind), out = size_t(outputs) * size_of(kind);
    for (int64_t i = 0; i < g.rows; i++) {
      int64_t pick = i / rows;
      // An index out of range is a bug of the caller. It cannot be reported from here, but must not read other memory.
      int64_t source = std::min<int64_t>(memory.input<uint32_t>(1)[pick], sources - 1);
      expert[size_t(i)] = uint32_t(std::min<int64_t>(memory.input<uint32_t>(2)[pick], experts - 1));
      from[size_t(i)] = memory.input<uint8_t>(0) + size_t(source * rows + i % rows) * in;
      to[size_t(i)] = memory.output<uint8_t>(0) + size_t(i) * out;
    }
    g.x = from.data();
    g.expert = expert.data();
    g.y = to.data();
    across ? cpu::multiply_across(g) : cpu::multiply_gathered(g, fast);
  })[0];
}

bool integral(const Optional& a) { return !a || mx::issubdtype(a->dtype(), mx::integer); }

}  // namespace

mx::array gathered_quantized(const GatheredQuantized& g, mx::StreamOrDevice s) {
  if (cpu::on_cpu(s) && takes(g.x) && g.x.ndim() >= 2 && g.w.ndim() >= 3 && g.w.size() > 0 && (g.lhs || g.rhs) &&
      integral(g.lhs) && integral(g.rhs)) {
    const int64_t codes = int64_t(g.w.shape(-1)) * 32 / std::max(1, g.bits.value_or(4));  // of a row
    const int64_t columns = g.transpose ? g.x.shape(-1) : std::min<int64_t>(codes, std::numeric_limits<int>::max());
    auto m = quantized_matrix(int(columns), g.w, g.scales, g.biases, g.group, g.bits, g.mode);
    if (m && (g.transpose || (cpu::takes_across(m->form) && m->form.rows == g.x.shape(-1)))) {
      std::vector<mx::array> arrays = {g.w, g.scales};
      if (g.biases) {
        arrays.push_back(*g.biases);
      }
      return gather(g.x, *m, std::move(arrays), g.lhs, g.rhs, !g.transpose, product_type(g.x, *m), s);
    }
  }
  return mx::gather_qmm(not_empty(g.x), packed(g.w, g.scales, g.group, g.bits, g.mode), g.scales, g.biases, g.lhs,
                        g.rhs, g.transpose, g.group, g.bits, g.mode, std::nullopt, g.sorted, s);
}

// Returns a matrix of a single row with the stride that its shape has. MLX's sorted products on GPUs take the stride of
// the rows from that axis, which is 1 where the axis was inserted: https://github.com/ml-explore/mlx/issues/4253.
static mx::array with_row_stride(const mx::array& a, mx::StreamOrDevice s) {
  if (a.ndim() < 2 || a.shape(-2) != 1) {
    return a;
  }
  return mx::reshape(mx::flatten(a, s), a.shape(), s);
}

mx::array gathered_product(const mx::array& a, const mx::array& b, const Optional& lhs, const Optional& rhs,
                           bool sorted, mx::StreamOrDevice s) {
  if (cpu::on_cpu(s) && takes(a) && takes(b) && a.ndim() >= 2 && b.ndim() >= 2 && a.shape(-1) == b.shape(-2) &&
      (lhs || rhs) &&
      integral(lhs) && integral(rhs)) {
    auto transposed = mx::swapaxes(b, -1, -2, s);
    const auto type = mx::promote_types(a.dtype(), b.dtype());
    return gather(a, plain_matrix(transposed), {transposed}, lhs, rhs, false, type, s);
  }
  return mx::gather_mm(sorted ? with_row_stride(not_empty(a), s) : not_empty(a), not_empty(b), lhs, rhs, sorted, s);
}

}  // namespace ingot
