#include "blocks_matmul.h"

#include <limits>
#include <stdexcept>

#include "call.h"
#include "checks.h"
#include "cpu.h"
#include "cpu_matmul.h"
#include "cpu_node.h"

namespace ingot {

namespace {

using Optional = std::optional<mx::array>;

constexpr const char* kModes[] = {"affine", "mxfp4", "mxfp8", "nvfp4"};

bool floating(mx::Dtype d) { return d == mx::float32 || d == mx::float16 || d == mx::bfloat16; }

cpu::Type type_of(mx::Dtype d) {
  return d == mx::float32 ? cpu::Type::f32 : d == mx::float16 ? cpu::Type::f16 : cpu::Type::bf16;
}

cpu::ScaleType scale_type_of(mx::Dtype d) {
  return d == mx::float32   ? cpu::ScaleType::f32
         : d == mx::float16 ? cpu::ScaleType::f16
                            : cpu::ScaleType::bf16;
}

// A matrix of weights as arrays; what its pointers will be is known when the node runs.
struct Matrix {
  cpu::Weights form;  // without pointers
  mx::Dtype type = mx::float32;  // of a product with float32 activations narrowed to theirs
};

// Quantized weights [..., out, in] that our kernels take; the shape of w before its last two axes is not looked at.
std::optional<Matrix> quantized_matrix(int columns, const mx::array& w, const mx::array& scales, const Optional& biases,
                                       std::optional<int> group, std::optional<int> bits, const std::string& mode) {
  Matrix m;
  cpu::Weights& f = m.form;
  if (mode == "affine") {
    f.format = cpu::Format::affine;
    f.group = group.value_or(64);
    f.bits = bits.value_or(4);
    if (!biases || !floating(scales.dtype()) || biases->dtype() != scales.dtype() || biases->shape() != scales.shape()) {
      return {};
    }
    f.scale_type = scale_type_of(scales.dtype());
    m.type = scales.dtype();
  } else {
    f.format = mode == "mxfp8" ? cpu::Format::fp8 : cpu::Format::fp4;
    f.group = mode == "nvfp4" ? 16 : 32;
    f.bits = mode == "mxfp8" ? 8 : 4;
    if (scales.dtype() != mx::uint8 || biases) {
      return {};
    }
    f.scale_type = mode == "nvfp4" ? cpu::ScaleType::e4m3 : cpu::ScaleType::e8m0;
    m.type = mx::bfloat16;  // decides nothing: the activations' type does
  }
  bool known = mode == "affine" ? (f.group == 32 || f.group == 64 || f.group == 128) &&
                                       ((f.bits >= 2 && f.bits <= 6) || f.bits == 8)
                                : group.value_or(f.group) == f.group && bits.value_or(f.bits) == f.bits;
  int n = int(w.ndim());
  if (!known || n < 2 || int(scales.ndim()) != n || w.dtype() != mx::uint32 || columns <= 0 || columns % f.group != 0 ||
      int64_t(w.shape(-1)) * 32 != int64_t(columns) * f.bits || w.shape(-2) != scales.shape(-2) || w.shape(-2) == 0 ||
      scales.shape(-1) != columns / f.group) {
    return {};
  }
  for (int i = 0; i + 2 < n; i++) {
    if (w.shape(i) != scales.shape(i)) {
      return {};
    }
  }
  f.rows = w.shape(-2);
  f.columns = columns;
  return m;
}

Matrix plain_matrix(const mx::array& w) {
  Matrix m;
  m.form.format = cpu::Format::plain;
  m.form.type = type_of(w.dtype());
  m.form.bits = w.dtype() == mx::float32 ? 32 : 16;
  m.form.rows = w.shape(-2);
  m.form.columns = w.shape(-1);
  m.type = w.dtype();
  return m;
}

mx::Dtype product_type(const mx::array& x, const Matrix& m) {
  bool decided_by_x = m.form.format == cpu::Format::fp4 || m.form.format == cpu::Format::fp8;
  return decided_by_x ? x.dtype() : mx::promote_types(x.dtype(), m.type);
}

cpu::Weights at(const cpu::Weights& form, const cpu::Memory& memory, int& next) {
  cpu::Weights w = form;
  w.codes = memory.input<uint8_t>(next++);
  if (w.format != cpu::Format::plain) {
    w.scales = memory.input<void>(next++);
    w.biases = w.format == cpu::Format::affine ? memory.input<void>(next++) : nullptr;
  }
  return w;
}

size_t size_of(cpu::Type t) { return t == cpu::Type::f32 ? 4 : 2; }

// x [..., in] times the rows of matrices, to results of the given shapes; arrays are theirs in order, then of each that is
// biased its bias in float32.
std::vector<mx::array> multiply(mx::array x, const std::vector<Matrix>& matrices, std::vector<mx::array> arrays,
                                const std::vector<int>& biased, const std::vector<mx::Shape>& shapes, mx::Dtype type,
                                mx::StreamOrDevice s) {
  x = mx::astype(x, type, s);
  int64_t columns = matrices[0].form.columns, rows = int64_t(x.size()) / columns;
  arrays.insert(arrays.begin(), x);
  bool fast = cpu::math() == cpu::Math::fast;
  auto kind = type_of(type);
  return cpu::node("matmul", std::move(arrays), shapes, std::vector<mx::Dtype>(shapes.size(), type), s,
                   [=](const cpu::Memory& memory) {
                     std::vector<cpu::Product> products(matrices.size());
                     int next = 1;
                     for (size_t i = 0; i < products.size(); i++) {
                       products[i].weights = at(matrices[i].form, memory, next);
                       products[i].added = biased[i] ? memory.input<float>(next++) : nullptr;
                       products[i].y = memory.output<void>(int(i));
                       products[i].type = kind;
                     }
                     cpu::multiply(memory.in[0], kind, rows, columns, products.data(), int(products.size()), fast);
                   });
}

mx::Shape with_last(mx::Shape shape, int64_t n) {
  shape.back() = int(n);
  return shape;
}

bool takes(const mx::array& x) { return floating(x.dtype()) && x.ndim() >= 1 && x.size() > 0; }

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
  return mx::quantized_matmul(not_empty(x), packed(w, scales, group, bits, mode), scales, biases, transpose, group, bits,
                              mode, s);
}

mx::array matrix_product(const mx::array& a, const mx::array& b, mx::StreamOrDevice s) {
  bool fits = cpu::on_cpu(s) && takes(a) && takes(b) && a.ndim() >= 2 && b.ndim() >= 2 && a.shape(-1) == b.shape(-2);
  if (!fits) {
    return mx::matmul(a, b, s);
  }
  auto type = mx::promote_types(a.dtype(), b.dtype());
  auto turned = mx::swapaxes(b, -1, -2, s);  // the rows of weights are the columns of b
  if (b.ndim() == 2) {
    return multiply(a, {plain_matrix(turned)}, {turned}, {0}, {with_last(a.shape(), turned.shape(0))}, type, s)[0];
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
  turned = shaped(turned);
  auto m = plain_matrix(turned);
  int64_t rows = x.shape(-2), columns = x.shape(-1), count = 1;
  for (int n : batch) {
    count *= n;
  }
  auto shape = batch;
  shape.push_back(int(rows));
  shape.push_back(int(m.form.rows));
  auto kind = type_of(type);
  return cpu::node("matmul", {x, turned}, {shape}, {type}, s, [=](const cpu::Memory& memory) {
    auto matrix = m.form;
    size_t step = size_of(kind);
    for (int64_t i = 0; i < count; i++) {
      matrix.codes = memory.input<uint8_t>(1) + size_t(i * matrix.rows * matrix.row_bytes());
      cpu::Product p{.weights = matrix, .y = memory.output<uint8_t>(0) + size_t(i * rows * matrix.rows) * step, .type = kind};
      cpu::multiply(memory.input<uint8_t>(0) + size_t(i * rows * columns) * step, kind, rows, columns, &p, 1, false);
    }
  })[0];
}

std::vector<mx::array> linear_layers(const mx::array& x, const std::vector<mx::array>& parts, bool joined,
                                     const std::vector<int>& formats, const std::vector<int>& groups,
                                     const std::vector<int>& bits, const std::vector<int>& biased,
                                     const std::vector<int>& heads, mx::StreamOrDevice s) {
  size_t n = formats.size(), next = 0;
  if (groups.size() != n || bits.size() != n || biased.size() != n || heads.size() != n) {
    throw std::invalid_argument("linear layers: lists of different lengths");
  }
  if (x.ndim() < (joined ? 2 : 1)) {
    throw std::invalid_argument("linear layers: the activations " + to_string(x) + " have too few axes");
  }
  mx::Shape rows(x.shape().begin(), x.shape().end() - (joined ? 2 : 1));
  const int64_t columns = joined ? int64_t(x.shape(-1)) * x.shape(-2) : x.shape(-1);
  if (columns > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("linear layers: the activations " + to_string(x) + " are too wide");
  }
  auto flat = [&] {
    auto shape = rows;
    shape.push_back(int(columns));
    return joined ? mx::reshape(x, shape, s) : x;
  };
  auto take = [&]() -> const mx::array& {
    if (next >= parts.size()) {
      throw std::invalid_argument("linear layers: " + std::to_string(parts.size()) + " arrays are too few for the formats");
    }
    return parts[next++];
  };
  struct Layer {
    mx::array w;
    Optional scales, biases, bias;
    std::string mode;
  };
  std::vector<Layer> layers;
  layers.reserve(n);
  for (size_t i = 0; i < n; i++) {
    if (formats[i] < -1 || formats[i] >= int(std::size(kModes))) {
      throw std::invalid_argument("linear layers: unknown format " + std::to_string(formats[i]));
    }
    Layer l{.w = take()};
    if (l.w.ndim() != 2) {
      throw std::invalid_argument("linear layers: weights are " + to_string(l.w) + ", not a matrix");
    }
    if (formats[i] >= 0) {
      l.mode = kModes[formats[i]];
      l.scales = take();
      if (formats[i] == 0) {
        l.biases = take();
      }
    } else if (l.w.shape(1) != columns) {
      throw std::invalid_argument("linear layers: weights " + to_string(l.w) + " do not fit " + to_string(x));
    }
    if (biased[i]) {
      l.bias = take();
      if (l.bias->ndim() != 1 || l.bias->shape(0) != l.w.shape(0)) {
        throw std::invalid_argument("linear layers: the bias " + to_string(*l.bias) + " does not fit " + to_string(l.w));
      }
    }
    if (heads[i] < 0 || (heads[i] > 0 && l.w.shape(0) % heads[i] != 0)) {
      throw std::invalid_argument("linear layers: " + to_string(l.w) + " has no " + std::to_string(heads[i]) + " heads");
    }
    layers.push_back(std::move(l));
  }
  if (next != parts.size()) {
    throw std::invalid_argument("linear layers: " + std::to_string(parts.size()) + " arrays, " + std::to_string(next) +
                                " belong to the formats");
  }

  // One node for all that our kernels take and that give the same type.
  std::vector<mx::array> out(n, x), arrays;
  arrays.reserve(parts.size() + 1);
  std::vector<Matrix> matrices;
  std::vector<int> added;
  std::vector<size_t> ours;
  std::vector<mx::Shape> shapes;
  auto shape_of_result = [&](size_t i) {
    auto shape = rows;
    int outputs = layers[i].w.shape(0);
    if (heads[i] > 0) {
      shape.push_back(heads[i]);
      outputs /= heads[i];
    }
    shape.push_back(outputs);
    return shape;
  };
  std::optional<mx::Dtype> type;
  for (size_t i = 0; i < n; i++) {
    auto& l = layers[i];
    std::optional<int> group = groups[i] ? std::optional<int>(groups[i]) : std::nullopt;
    std::optional<int> width = bits[i] ? std::optional<int>(bits[i]) : std::nullopt;
    std::optional<Matrix> m;
    if (cpu::on_cpu(s) && takes(x) && (!l.bias || floating(l.bias->dtype()))) {
      if (l.scales) {
        m = quantized_matrix(int(columns), l.w, *l.scales, l.biases, group, width, l.mode);
      } else if (takes(l.w)) {
        m = plain_matrix(l.w);
      }
    }
    if (m && (!type || *type == product_type(x, *m))) {
      type = product_type(x, *m);
      ours.push_back(i);
      matrices.push_back(*m);
      shapes.push_back(shape_of_result(i));
      arrays.push_back(l.w);
      if (l.scales) {
        arrays.push_back(*l.scales);
      }
      if (l.biases) {
        arrays.push_back(*l.biases);
      }
      if (l.bias) {
        arrays.push_back(mx::astype(*l.bias, mx::float32, s));
      }
      added.push_back(l.bias ? 1 : 0);
      continue;
    }
    auto x = flat();
    out[i] = l.scales ? quantized_product(x, l.w, *l.scales, l.biases, true, group, width, l.mode, s)
                      : matrix_product(x, mx::transpose(l.w, s), s);
    if (l.bias) {
      out[i] = mx::add(out[i], mx::astype(*l.bias, out[i].dtype(), s), s);
    }
    if (heads[i] > 0) {
      out[i] = mx::reshape(out[i], shape_of_result(i), s);
    }
  }
  if (!ours.empty()) {
    auto results = multiply(x, matrices, std::move(arrays), added, shapes, *type, s);
    for (size_t i = 0; i < ours.size(); i++) {
      out[ours[i]] = results[i];
    }
  }
  return out;
}

namespace {

// Rows of x [..., rows, in] meet matrices of w [experts..., out, in], both picked by index; the indices are uint32 of one
// shape.
mx::array gather(const mx::array& x, const Matrix& m, std::vector<mx::array> arrays, const Optional& lhs, const Optional& rhs,
                 mx::Dtype type, mx::StreamOrDevice s) {
  const auto& w = arrays[0];
  int64_t rows = x.shape(-2), columns = x.shape(-1);
  int64_t sources = int64_t(x.size()) / (rows * columns), experts = int64_t(w.size()) / (int64_t(w.shape(-1)) * w.shape(-2));
  auto all = [&](int64_t n, const mx::Shape& from) {
    return mx::reshape(mx::arange(0, double(n), 1, mx::uint32, s), mx::Shape(from.begin(), from.end() - 2), s);
  };
  auto left = lhs ? *lhs : all(sources, x.shape()), right = rhs ? *rhs : all(experts, w.shape());
  auto both = mx::broadcast_arrays({mx::astype(left, mx::uint32, s), mx::astype(right, mx::uint32, s)}, s);
  auto shape = both[0].shape();
  int64_t picks = int64_t(both[0].size());
  shape.push_back(int(rows));
  shape.push_back(int(m.form.rows));
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
    size_t in = size_t(columns) * size_of(kind), out = size_t(m.form.rows) * size_of(kind);
    for (int64_t i = 0; i < g.rows; i++) {
      int64_t pick = i / rows;
      // An index outside is a caller's bug that must not read elsewhere; there is nobody to tell it to here.
      int64_t source = std::min<int64_t>(memory.input<uint32_t>(1)[pick], sources - 1);
      expert[size_t(i)] = uint32_t(std::min<int64_t>(memory.input<uint32_t>(2)[pick], experts - 1));
      from[size_t(i)] = memory.input<uint8_t>(0) + size_t(source * rows + i % rows) * in;
      to[size_t(i)] = memory.output<uint8_t>(0) + size_t(i) * out;
    }
    g.x = from.data();
    g.expert = expert.data();
    g.y = to.data();
    cpu::multiply_gathered(g, fast);
  })[0];
}

bool integral(const Optional& a) { return !a || mx::issubdtype(a->dtype(), mx::integer); }

}  // namespace

mx::array gathered_quantized(const mx::array& x, const mx::array& w, const mx::array& scales, const Optional& biases,
                             const Optional& lhs, const Optional& rhs, bool transpose, std::optional<int> group,
                             std::optional<int> bits, const std::string& mode, bool sorted, mx::StreamOrDevice s) {
  if (cpu::on_cpu(s) && transpose && takes(x) && x.ndim() >= 2 && w.ndim() >= 3 && w.size() > 0 && (lhs || rhs) &&
      integral(lhs) && integral(rhs)) {
    if (auto m = quantized_matrix(x.shape(-1), w, scales, biases, group, bits, mode)) {
      std::vector<mx::array> arrays = {w, scales};
      if (biases) {
        arrays.push_back(*biases);
      }
      return gather(x, *m, std::move(arrays), lhs, rhs, product_type(x, *m), s);
    }
  }
  return mx::gather_qmm(not_empty(x), packed(w, scales, group, bits, mode), scales, biases, lhs, rhs, transpose, group, bits,
                        mode, std::nullopt, sorted, s);
}

mx::array gathered_product(const mx::array& a, const mx::array& b, const Optional& lhs, const Optional& rhs, bool sorted,
                           mx::StreamOrDevice s) {
  if (cpu::on_cpu(s) && takes(a) && takes(b) && a.ndim() >= 2 && b.ndim() >= 2 && a.shape(-1) == b.shape(-2) && (lhs || rhs) &&
      integral(lhs) && integral(rhs)) {
    auto turned = mx::swapaxes(b, -1, -2, s);
    return gather(a, plain_matrix(turned), {turned}, lhs, rhs, mx::promote_types(a.dtype(), b.dtype()), s);
  }
  return mx::gather_mm(not_empty(a), not_empty(b), lhs, rhs, sorted, s);
}

}  // namespace ingot
