#include "blocks_layers.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "blocks_matmul.h"
#include "call.h"
#include "cpu.h"
#include "cpu_eval.h"

namespace ingot {

Layers::Layers(const std::vector<mx::array>& parts, bool joined, const std::vector<int>& formats, const std::vector<int>& groups,
               const std::vector<int>& bits, const std::vector<int>& biased, const std::vector<int>& heads)
    : joined_(joined) {
  size_t n = formats.size(), next = 0;
  if (groups.size() != n || bits.size() != n || biased.size() != n || heads.size() != n) {
    throw std::invalid_argument("linear layers: lists of different lengths");
  }
  auto take = [&]() -> const mx::array& {
    if (next >= parts.size()) {
      throw std::invalid_argument("linear layers: " + std::to_string(parts.size()) + " arrays are too few for the formats");
    }
    return parts[next++];
  };
  layers_.reserve(n);
  for (size_t i = 0; i < n; i++) {
    if (formats[i] < -1 || formats[i] >= int(std::size(kModes))) {
      throw std::invalid_argument("linear layers: unknown format " + std::to_string(formats[i]));
    }
    Layer l{.w = take(), .heads = heads[i]};
    if (l.w.ndim() != 2) {
      throw std::invalid_argument("linear layers: weights are " + to_string(l.w) + ", not a matrix");
    }
    if (formats[i] >= 0) {
      l.mode = kModes[formats[i]];
      l.group = groups[i] ? std::optional<int>(groups[i]) : std::nullopt;
      l.bits = bits[i] ? std::optional<int>(bits[i]) : std::nullopt;
      l.scales = take();
      if (formats[i] == 0) {
        l.biases = take();
      }
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
    layers_.push_back(std::move(l));
  }
  if (next != parts.size()) {
    throw std::invalid_argument("linear layers: " + std::to_string(parts.size()) + " arrays, " + std::to_string(next) +
                                " belong to the formats");
  }
}

void Layers::fix(mx::StreamOrDevice s) {
  auto fixed = std::make_shared<Fixed>();
  std::vector<mx::array> all;
  for (auto& l : layers_) {
    int64_t columns = l.scales ? int64_t(l.w.shape(1)) * 32 / l.bits.value_or(l.mode == "mxfp8" ? 8 : 4) : l.w.shape(1);
    if (columns > std::numeric_limits<int>::max() || (l.bias && !floating(l.bias->dtype()))) {
      return;
    }
    std::optional<Matrix> m;
    if (l.scales) {
      m = quantized_matrix(int(columns), l.w, *l.scales, l.biases, l.group, l.bits, l.mode);
    } else if (takes(l.w)) {
      m = plain_matrix(l.w);
    }
    if (!m || (!fixed->matrices.empty() && m->form.columns != fixed->matrices[0].form.columns)) {
      return;
    }
    fixed->matrices.push_back(*m);
    for (auto* a : {&l.scales, &l.biases}) {
      if (*a) {
        all.push_back(**a);
      }
    }
    all.push_back(l.w);
    fixed->added.push_back(l.bias ? Optional(mx::astype(*l.bias, mx::float32, s)) : std::nullopt);
    if (l.bias) {
      all.push_back(*fixed->added.back());
    }
  }
  if (all.empty() || !cpu::evaluate(all)) {
    return;
  }
  for (auto& a : all) {
    if (!a.flags().row_contiguous) {
      return;
    }
  }
  for (size_t i = 0; i < layers_.size(); i++) {
    cpu::Product p{.weights = fixed->matrices[i].form};
    p.weights.codes = layers_[i].w.data<uint8_t>();
    p.weights.scales = layers_[i].scales ? layers_[i].scales->data<void>() : nullptr;
    p.weights.biases = layers_[i].biases ? layers_[i].biases->data<void>() : nullptr;
    p.added = fixed->added[i] ? fixed->added[i]->data<float>() : nullptr;
    fixed->products.push_back(p);
  }
  fixed->held = std::move(all);
  fixed_ = std::move(fixed);
}

mx::Shape Layers::result(size_t i, const mx::array& x) const {
  mx::Shape shape(x.shape().begin(), x.shape().end() - (joined_ ? 2 : 1));
  int outputs = layers_[i].w.shape(0);
  if (layers_[i].heads > 0) {
    shape.push_back(layers_[i].heads);
    outputs /= layers_[i].heads;
  }
  shape.push_back(outputs);
  return shape;
}

std::vector<mx::array> Layers::operator()(const mx::array& x, mx::StreamOrDevice s) const {
  if (x.ndim() < (joined_ ? 2 : 1)) {
    throw std::invalid_argument("linear layers: the activations " + to_string(x) + " have too few axes");
  }
  const int64_t columns = joined_ ? int64_t(x.shape(-1)) * x.shape(-2) : x.shape(-1);
  if (columns > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("linear layers: the activations " + to_string(x) + " are too wide");
  }
  for (auto& l : layers_) {
    if (!l.scales && l.w.shape(1) != columns) {
      throw std::invalid_argument("linear layers: weights " + to_string(l.w) + " do not fit " + to_string(x));
    }
  }
  if (fixed_ && cpu::on_cpu(s) && takes(x) && columns == fixed_->matrices[0].form.columns) {
    auto type = product_type(x, fixed_->matrices[0]);
    bool one = std::all_of(fixed_->matrices.begin(), fixed_->matrices.end(), [&](const auto& m) { return product_type(x, m) == type; });
    if (one) {
      return of_fixed(mx::astype(x, type, s), s);
    }
  }
  return of_arrays(x, int(columns), s);
}

std::vector<mx::array> Layers::of_fixed(const mx::array& x, mx::StreamOrDevice s) const {
  std::vector<mx::Shape> shapes;
  shapes.reserve(layers_.size());
  for (size_t i = 0; i < layers_.size(); i++) {
    shapes.push_back(result(i, x));
  }
  int64_t columns = fixed_->matrices[0].form.columns, rows = int64_t(x.size()) / columns;
  bool fast = cpu::math() == cpu::Math::fast;
  auto kind = type_of(x.dtype());
  return cpu::node("matmul", {x}, std::move(shapes), std::vector<mx::Dtype>(layers_.size(), x.dtype()), s,
                   [fixed = fixed_, rows, columns, kind, fast](const cpu::Memory& memory) {
                     auto products = fixed->products;
                     for (size_t i = 0; i < products.size(); i++) {
                       products[i].y = memory.out[i];
                       products[i].type = kind;
                     }
                     cpu::multiply(memory.in[0], kind, rows, columns, products.data(), int(products.size()), fast);
                   });
}

std::vector<mx::array> Layers::of_arrays(const mx::array& x, int columns, mx::StreamOrDevice s) const {
  auto flat = [&] {
    mx::Shape shape(x.shape().begin(), x.shape().end() - (joined_ ? 2 : 1));
    shape.push_back(columns);
    return joined_ ? mx::reshape(x, shape, s) : x;
  };
  // One node for all that our kernels take and that give the same type.
  std::vector<mx::array> out(layers_.size(), x), arrays;
  std::vector<Matrix> matrices;
  std::vector<int> added;
  std::vector<size_t> ours;
  std::vector<mx::Shape> shapes;
  std::optional<mx::Dtype> type;
  for (size_t i = 0; i < layers_.size(); i++) {
    auto& l = layers_[i];
    std::optional<Matrix> m;
    if (cpu::on_cpu(s) && takes(x) && (!l.bias || floating(l.bias->dtype()))) {
      if (l.scales) {
        m = quantized_matrix(columns, l.w, *l.scales, l.biases, l.group, l.bits, l.mode);
      } else if (takes(l.w)) {
        m = plain_matrix(l.w);
      }
    }
    if (m && (!type || *type == product_type(x, *m))) {
      type = product_type(x, *m);
      ours.push_back(i);
      matrices.push_back(*m);
      shapes.push_back(result(i, x));
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
    auto y = flat();
    out[i] = l.scales ? quantized_product(y, l.w, *l.scales, l.biases, true, l.group, l.bits, l.mode, s)
                      : matrix_product(y, mx::transpose(l.w, s), s);
    if (l.bias) {
      out[i] = mx::add(out[i], mx::astype(*l.bias, out[i].dtype(), s), s);
    }
    if (l.heads > 0) {
      out[i] = mx::reshape(out[i], result(i, x), s);
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

std::vector<mx::array> linear_layers(const mx::array& x, const std::vector<mx::array>& parts, bool joined,
                                     const std::vector<int>& formats, const std::vector<int>& groups,
                                     const std::vector<int>& bits, const std::vector<int>& biased,
                                     const std::vector<int>& heads, mx::StreamOrDevice s) {
  return Layers(parts, joined, formats, groups, bits, biased, heads)(x, s);
}

}  // namespace ingot

using namespace ingot;

const char* ig_layers_new(ig_frame* frame, void** layers) {
  return guard([&] {
    Call call(frame);
    auto parts = call.arrays();
    auto joined = call.flag();
    auto formats = call.integers(), groups = call.integers(), bits = call.integers(), biased = call.integers(), heads = call.integers();
    auto made = std::make_unique<Layers>(parts, joined, formats, groups, bits, biased, heads);
    made->fix(call.s);
    *layers = made.release();
  });
}

void ig_layers_free(void* layers) { delete static_cast<Layers*>(layers); }

const char* ig_layers_apply(void* layers, void* x, ig_frame* frame) {
  frame->n_outs = 0;
  const char* failed = guard([&] {
    Call call(frame);
    call.result((*static_cast<Layers*>(layers))(*static_cast<mx::array*>(x), call.s));
  });
  if (failed) {
    for (int i = 0; i < frame->n_outs; i++) {
      ig_free(&frame->outs[i].handle, 1);
    }
    frame->n_outs = 0;
  }
  return failed;
}
