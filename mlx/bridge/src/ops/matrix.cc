#include "ops/matrix.h"

#include "cpu/isa.h"

namespace ingot {

namespace {

cpu::ScaleType scale_type_of(mx::Dtype d) {
  return d == mx::float32   ? cpu::ScaleType::f32
         : d == mx::float16 ? cpu::ScaleType::f16
                            : cpu::ScaleType::bf16;
}

}  // namespace

bool floating(mx::Dtype d) { return d == mx::float32 || d == mx::float16 || d == mx::bfloat16; }

cpu::Type type_of(mx::Dtype d) {
  return d == mx::float32 ? cpu::Type::f32 : d == mx::float16 ? cpu::Type::f16 : cpu::Type::bf16;
}

std::optional<Matrix> quantized_matrix(int columns, const mx::array& w, const mx::array& scales, const Optional& biases,
                                       std::optional<int> group, std::optional<int> bits, const std::string& mode) {
  Matrix m;
  cpu::Weights& f = m.form;
  if (mode == "affine") {
    f.format = cpu::Format::affine;
    f.group = group.value_or(64);
    f.bits = bits.value_or(4);
    if (!biases || !floating(scales.dtype()) || biases->dtype() != scales.dtype() ||
        biases->shape() != scales.shape()) {
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
    m.type = mx::bfloat16;  // the result has the type of the activations, see product_type
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

bool takes(const mx::array& x) { return floating(x.dtype()) && x.ndim() >= 1 && x.size() > 0; }

}  // namespace ingot
