#include "ops/layers.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "ops/matmul.h"
#include "core/call.h"
#include "cpu/isa.h"
#include "cpu/eval.h"
#include "cpu/rows/rows.h"
#include "cpu/rows/node.h"

namespace ingot {

Layers::Layers(const std::vector<mx::array>& parts, bool joined, const std::vector<int>& formats,
               const std::vector<int>& groups, const std::vector<int>& bits, const std::vector<int>& biased,
               const std::vector<int>& heads)
    : joined_(joined) {
  size_t n = formats.size(), next = 0;
  if (groups.size() != n || bits.size() != n || biased.size() != n || heads.size() != n) {
    throw std::invalid_argument("linear layers: lists of different lengths");
  }
  auto take = [&]() -> const mx::array& {
    if (next >= parts.size()) {
      throw std::invalid_argument("linear layers: " + std::to_string(parts.size()) +
                                  " arrays are not enough for the formats");
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
        throw std::invalid_argument("linear layers: the bias " + to_string(*l.bias) + " does not fit " +
                                    to_string(l.w));
      }
    }
    if (heads[i] < 0 || (heads[i] > 0 && l.w.shape(0) % heads[i] != 0)) {
      throw std::invalid_argument("linear layers: " + to_string(l.w) + " cannot be split into " +
                                  std::to_string(heads[i]) + " heads");
    }
    layers_.push_back(std::move(l));
  }
  if (next != parts.size()) {
    throw std::invalid_argument("linear layers: " + std::to_string(parts.size()) + " arrays, want " +
                                std::to_string(next) + " for the formats");
  }
}

void Layers::prepare(mx::StreamOrDevice s) {
  auto prepared = std::make_shared<Prepared>();
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
    if (!m || (!prepared->matrices.empty() && m->form.columns != prepared->matrices[0].form.columns)) {
      return;
    }
    prepared->matrices.push_back(*m);
    for (auto* a : {&l.scales, &l.biases}) {
      if (*a) {
        all.push_back(**a);
      }
    }
    all.push_back(l.w);
    prepared->added.push_back(l.bias ? Optional(mx::astype(*l.bias, mx::float32, s)) : std::nullopt);
    if (l.bias) {
      all.push_back(*prepared->added.back());
    }
  }
  if (all.empty() || !cpu::evaluate(all) ||
      !std::all_of(all.begin(), all.end(), [](const auto& a) { return a.flags().row_contiguous; })) {
    return;
  }
  for (size_t i = 0; i < layers_.size(); i++) {
    cpu::Product p{.weights = prepared->matrices[i].form};
    p.weights.codes = layers_[i].w.data<uint8_t>();
    p.weights.scales = layers_[i].scales ? layers_[i].scales->data<void>() : nullptr;
    p.weights.biases = layers_[i].biases ? layers_[i].biases->data<void>() : nullptr;
    cpu::drop_biases(p.weights);
    p.added = prepared->added[i] ? prepared->added[i]->data<float>() : nullptr;
    prepared->products.push_back(p);
  }
  prepared->held = std::move(all);
  prepared_ = std::move(prepared);
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

std::vector<mx::array> Layers::operator()(const mx::array& x, bool wide, mx::StreamOrDevice s) const {
  if (x.ndim() < (joined_ ? 2 : 1)) {
    throw std::invalid_argument("linear layers: the activations " + to_string(x) + " do not have enough axes");
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
  if (prepared_ && cpu::on_cpu(s) && takes(x) && columns == prepared_->columns()) {
    auto type = product_type(x, prepared_->matrices[0]);
    bool one = std::all_of(prepared_->matrices.begin(), prepared_->matrices.end(), [&](const auto& m) {
      return product_type(x, m) == type;
    });
    if (one) {
      return multiply_prepared(mx::astype(x, type, s), wide, s);
    }
  }
  return multiply_arrays(wide ? mx::astype(x, mx::float32, s) : x, int(columns), s);
}

std::vector<mx::array> Layers::multiply_prepared(const mx::array& x, bool wide, mx::StreamOrDevice s) const {
  std::vector<mx::Shape> shapes;
  for (size_t i = 0; i < layers_.size(); i++) {
    shapes.push_back(result(i, x));
  }
  int64_t rows = int64_t(x.size()) / prepared_->columns();
  std::vector<mx::Dtype> types(layers_.size(), wide ? mx::float32 : x.dtype());
  return cpu::node("matmul", {x}, std::move(shapes), std::move(types), s,
                   [prepared = prepared_, wide, rows, kind = type_of(x.dtype()),
                    fast = cpu::math() == cpu::Math::fast](const cpu::Memory& memory) {
                     prepared->multiply(memory.in[0], kind, wide, rows, fast, memory.out);
                   });
}

void Layers::Prepared::multiply(const void* x, cpu::Type type, bool wide, int64_t rows, bool fast,
                                void* const* results) const {
  auto all = products;
  for (size_t i = 0; i < all.size(); i++) {
    all[i].y = results[i];
    all[i].type = wide ? cpu::Type::f32 : type;
  }
  cpu::multiply(x, type, rows, columns(), all.data(), int(all.size()), fast);
}

namespace {

// With more rows the result of the prologue would need too much scratch memory.
constexpr int64_t kMaxFusedRows = 64;
constexpr int kPrologueScratch = 9;
static_assert(int(Activation::gelu_tanh) == int(cpu::Act::gelu_tanh) && int(Activation::silu) == int(cpu::Act::silu));

}  // namespace

bool Layers::fuses(const Prologue& prologue, const mx::array& x, mx::StreamOrDevice s) const {
  if (!prepared_ || !cpu::uses_kernels(x, s) || joined_ || x.ndim() < 1 || x.shape(-1) != prepared_->columns() ||
      int64_t(x.size()) > kMaxFusedRows * prepared_->columns()) {
    return false;
  }
  if (prologue.second && (prologue.second->shape() != x.shape() || prologue.second->dtype() != x.dtype())) {
    return false;
  }
  if (prologue.weight && (prologue.weight->dtype() != x.dtype() || prologue.weight->ndim() != 1 ||
                          prologue.weight->shape(0) != x.shape(-1))) {
    return false;
  }
  return (prologue.kind != Prologue::gate || prologue.second) &&
         std::all_of(prepared_->matrices.begin(), prepared_->matrices.end(), [&](const auto& m) {
           return product_type(x, m) == x.dtype();
         });
}

std::vector<mx::array> Layers::with_prologue(const Prologue& prologue, const mx::array& x, bool wide,
                                             mx::StreamOrDevice s) const {
  const bool sums = prologue.kind == Prologue::norm && prologue.second;
  if (!fuses(prologue, x, s)) {
    std::vector<mx::array> results;
    auto y = x;
    if (prologue.kind == Prologue::gate) {
      y = gated(prologue.act, x, prologue.second, s);
    } else if (sums) {
      results = add_rms_norm(x, *prologue.second, prologue.weight, prologue.eps, prologue.plus_one, s);
      y = results[1];
      results.pop_back();
    } else if (prologue.kind == Prologue::norm) {
      y = prologue.plus_one && prologue.weight ? rms_norm_plus_one(x, *prologue.weight, prologue.eps, s)
                                               : rms_norm(x, prologue.weight, prologue.eps, s);
    }
    if (prologue.keep) {
      results.push_back(y);
    }
    auto products = (*this)(y, wide, s);
    results.insert(results.end(), products.begin(), products.end());
    return results;
  }
  std::vector<mx::array> inputs{x};
  for (auto* a : {&prologue.second, &prologue.weight}) {
    if (*a) {
      inputs.push_back(**a);
    }
  }
  std::vector<mx::Shape> shapes;
  shapes.insert(shapes.end(), size_t(sums) + prologue.keep, x.shape());
  for (size_t i = 0; i < layers_.size(); i++) {
    shapes.push_back(result(i, x));
  }
  std::vector<mx::Dtype> types(shapes.size(), x.dtype());
  std::fill(types.end() - ptrdiff_t(layers_.size()), types.end(), wide ? mx::float32 : x.dtype());
  std::vector<cpu::Reuse> reuse;
  if (sums) {
    reuse = {{0, 0, false}, {0, 1, false}};
  }
  struct Fused {
    bool norm, sums, keep, weight, plus_one, wide, fast;
    float eps;
    Activation act;
    cpu::Type type;
    int64_t rows, bytes;  // bytes per row
  } fused{prologue.kind == Prologue::norm, sums, prologue.keep, prologue.weight.has_value(), prologue.plus_one, wide,
          cpu::math() == cpu::Math::fast, float(prologue.eps),
          prologue.act, type_of(x.dtype()), int64_t(x.size()) / x.shape(-1), x.shape(-1) * int64_t(x.itemsize())};
  return cpu::node(fused.norm ? "norm_matmul" : "gated_matmul", std::move(inputs), std::move(shapes), std::move(types),
                   s,
                   [prepared = prepared_, fused](const cpu::Memory& m) {
                     const int type = int(fused.type);
                     const int64_t n = prepared->columns(), size = fused.bytes / n;
                     auto* y = fused.keep ? m.output<char>(fused.sums)
                                          : cpu::scratch<char>(kPrologueScratch, size_t(fused.rows * fused.bytes));
                     if (fused.norm) {
                       cpu::parallel(fused.rows, cpu::rows_per_piece(n), [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin * fused.bytes; i < end * fused.bytes; i += fused.bytes) {
                           cpu::Norm r{};
                           r.x = cpu::at(m.in[0], i);
                           r.residual = fused.sums ? cpu::at(m.in[1], i) : nullptr;
                           r.sum = fused.sums ? cpu::at(m.out[0], i) : nullptr;
                           r.weight = fused.weight ? m.in[1 + fused.sums] : nullptr;
                           r.offset = fused.plus_one && fused.weight;
                           r.eps = fused.eps;
                           r.out = y + i;
                           r.n = n;
                           cpu::row_kernels().rms_norm[type](r);
                         }
                       });
                     } else {
                       cpu::in_pieces(fused.rows * n, 8, [&](int64_t from, int64_t count) {
                         int64_t o = from * size;
                         cpu::row_kernels().activate[int(fused.act)][type](cpu::at(m.in[0], o), cpu::at(m.in[1], o),
                             y + o, count, 0);
                       });
                     }
                     prepared->multiply(y, fused.type, fused.wide, fused.rows, fused.fast,
                                        m.out + fused.sums + fused.keep);
                   }, std::move(reuse));
}

std::vector<mx::array> Layers::multiply_arrays(const mx::array& x, int columns, mx::StreamOrDevice s) const {
  auto flat = [&] {
    mx::Shape shape(x.shape().begin(), x.shape().end() - (joined_ ? 2 : 1));
    shape.push_back(columns);
    return joined_ ? mx::reshape(x, shape, s) : x;
  };
  // One node for all layers that the kernels support and whose results have the same type.
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
  return Layers(parts, joined, formats, groups, bits, biased, heads)(x, false, s);
}

}  // namespace ingot

using namespace ingot;

const char* ig_layers_new(ig_frame* frame, void** layers) {
  return guard([&] {
    Call call(frame);
    auto parts = call.arrays();
    auto joined = call.flag();
    auto formats = call.integers(), groups = call.integers(), bits = call.integers(), biased = call.integers(),
        heads = call.integers();
    auto made = std::make_unique<Layers>(parts, joined, formats, groups, bits, biased, heads);
    made->prepare(call.s);
    *layers = made.release();
  });
}

void ig_layers_free(void* layers) { delete static_cast<Layers*>(layers); }

const char* ig_layers_apply(void* layers, ig_frame* frame) {
  frame->n_outs = 0;
  const char* failed = guard([&] {
    Call call(frame);
    auto x = call.array();
    Prologue prologue{.second = call.optional(), .weight = call.optional()};
    int kind = call.integer(), act = call.integer();
    if (kind < Prologue::nothing || kind > Prologue::gate || act < 0 || act > int(Activation::gelu_tanh)) {
      throw std::invalid_argument("linear layers: unknown prologue " + std::to_string(kind) + " or activation " +
                                  std::to_string(act));
    }
    prologue.kind = Prologue::Kind(kind);
    prologue.act = Activation(act);
    prologue.plus_one = call.flag();
    prologue.keep = call.flag() && kind == Prologue::norm;
    bool wide = call.flag();
    prologue.eps = call.real();
    const auto& all = *static_cast<Layers*>(layers);
    call.result(kind == Prologue::nothing ? all(x, wide, call.s) : all.with_prologue(prologue, x, wide, call.s));
  });
  if (failed) {
    for (int i = 0; i < frame->n_outs; i++) {
      ig_free(&frame->outs[i].handle, 1);
    }
    frame->n_outs = 0;
  }
  return failed;
}
