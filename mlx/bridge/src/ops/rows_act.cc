// Activations, element-wise sums and products, softmax.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "ops/rows.h"
#include "core/call.h"
#include "core/checks.h"
#include "cpu/matmul/matmul.h"
#include "cpu/rows/rows.h"
#include "cpu/rows/node.h"
#include "mlx/compile.h"

namespace ingot {

namespace {

mx::array number(double v, const mx::array& like) { return mx::array(v, like.dtype()); }

mx::array composed(Activation a, const mx::array& from, Where s) {
  auto x = mx::issubdtype(from.dtype(), mx::inexact) ? from : mx::astype(from, mx::float32, s);
  switch (a) {
    case Activation::sigmoid:
      return mx::sigmoid(x, s);
    case Activation::silu:
      return mx::multiply(x, mx::sigmoid(x, s), s);
    case Activation::gelu: {
      auto y = mx::erf(mx::multiply(x, number(M_SQRT1_2, x), s), s);
      return mx::multiply(mx::multiply(x, number(0.5, x), s), mx::add(y, number(1, x), s), s);
    }
    case Activation::gelu_tanh:
      break;
  }
  auto u = mx::multiply(x, mx::add(mx::multiply(mx::square(x, s), number(0.044715, x), s), number(1, x), s), s);
  return mx::multiply(x, mx::sigmoid(mx::multiply(u, number(1.5957691216057308, x), s), s), s);
}

// The gate on the default stream, as a function for mx::compile.
template <Activation A>
std::vector<mx::array> gate_of(const std::vector<mx::array>& in) {
  return {mx::multiply(composed(A, in[0], {}), in[1])};
}

// The product of an activation and up. A GPU computes it in one kernel, which MLX compiles at run time.
mx::array composed_gate(Activation a, const mx::array& gate, const mx::array& up, Where s) {
  using Function = std::function<std::vector<mx::array>(const std::vector<mx::array>&)>;
  const bool compiles = !cpu::on_cpu(s) && gate.shape() == up.shape() && gate.dtype() == up.dtype() &&
                        mx::to_stream(s) == mx::default_stream(mx::default_device());
  if (!compiles) {
    return mx::multiply(composed(a, gate, s), up, s);
  }
  static_assert(int(Activation::silu) == 1 && int(Activation::gelu) == 2 && int(Activation::gelu_tanh) == 3);
  static const auto& gates = *new std::array<Function, 4>{  // not freed: MLX may be gone when the process ends
      mx::compile(gate_of<Activation::sigmoid>, true), mx::compile(gate_of<Activation::silu>, true),
      mx::compile(gate_of<Activation::gelu>, true), mx::compile(gate_of<Activation::gelu_tanh>, true)};
  return gates[size_t(a)]({gate, up})[0];
}

cpu::Act kernel_of(Activation a) {
  switch (a) {
    case Activation::sigmoid:
      return cpu::Act::sigmoid;
    case Activation::silu:
      return cpu::Act::silu;
    case Activation::gelu:
      return cpu::Act::gelu;
    case Activation::gelu_tanh:
      break;
  }
  return cpu::Act::gelu_tanh;
}

// The cost of activating an element, relative to an addition.
constexpr int64_t kCost = 8;

mx::array activated(const char* name, cpu::Act act, const mx::array& x, float limit, Where s) {
  int type = cpu::type_index(x.dtype()), size = int(x.itemsize());
  auto body = [act, type, size, limit, n = int64_t(x.size())](const cpu::Memory& m) {
    auto run = cpu::row_kernels().activate[int(act)][type];
    cpu::in_pieces(n, kCost, [&](int64_t from, int64_t count) {
      run(cpu::at(m.in[0], from * size), nullptr, cpu::at(m.out[0], from * size), count, limit);
    });
  };
  return cpu::node(name, {x}, {x.shape()}, {x.dtype()}, s, std::move(body), {{0, 0, false}})[0];
}

// Adds or multiplies two arrays of the same shape and type.
mx::array pairwise(const char* name, bool product, const mx::array& a, const mx::array& b, Where s) {
  int type = cpu::type_index(a.dtype()), size = int(a.itemsize());
  auto body = [product, type, size, n = int64_t(a.size())](const cpu::Memory& m) {
    auto run = product ? cpu::row_kernels().multiply[type] : cpu::row_kernels().add[type];
    cpu::in_pieces(n, 1, [&](int64_t from, int64_t count) {
      int64_t o = from * size;
      run(cpu::at(m.in[0], o), cpu::at(m.in[1], o), cpu::at(m.out[0], o), count);
    });
  };
  return cpu::node(name, {a, b}, {a.shape()}, {a.dtype()}, s, std::move(body), {{0, 0, false}, {0, 1, false}})[0];
}

float first(const void* p, mx::Dtype type) {
  return type == mx::float32   ? *static_cast<const float*>(p)
         : type == mx::float16 ? float(*static_cast<const mx::float16_t*>(p))
                               : float(*static_cast<const mx::bfloat16_t*>(p));
}

// Multiplies x by an array of one element of the same type.
mx::array times(const mx::array& x, const mx::array& factor, Where s) {
  auto body = [type = x.dtype(), n = int64_t(x.size())](const cpu::Memory& m) {
    auto run = cpu::row_kernels().scale[cpu::type_index(type)];
    const float by = first(m.in[1], type);
    cpu::in_pieces(n, 1, [&](int64_t from, int64_t count) {
      int64_t o = from * int64_t(type.size());
      run(cpu::at(m.in[0], o), by, cpu::at(m.out[0], o), count);
    });
  };
  return cpu::node("times", {x, factor}, {x.shape()}, {x.dtype()}, s, std::move(body), {{0, 0, false}})[0];
}

bool alike(const mx::array& a, const mx::array& b, Where s) {
  return cpu::uses_kernels(a, s) && a.dtype() == b.dtype() && a.shape() == b.shape();
}

// Multiplies each block of a by b, whose shape is that of a without leading axes.
mx::array blockwise(const mx::array& a, const mx::array& b, Where s) {
  int type = cpu::type_index(a.dtype());
  int64_t n = int64_t(b.size()), bytes = n * int64_t(a.itemsize()), blocks = int64_t(a.size()) / n;
  auto body = [type, n, bytes, blocks](const cpu::Memory& m) {
    auto run = cpu::row_kernels().multiply[type];
    cpu::parallel(blocks, cpu::rows_per_piece(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * bytes; i < end * bytes; i += bytes) {
        run(cpu::at(m.in[0], i), m.in[1], cpu::at(m.out[0], i), n);
      }
    });
  };
  return cpu::node("blockwise", {a, b}, {a.shape()}, {a.dtype()}, s, std::move(body), {{0, 0, false}})[0];
}

bool ends_alike(const mx::array& a, const mx::array& b, Where s) {
  return cpu::uses_kernels(a, s) && a.dtype() == b.dtype() && b.size() > 1 && b.ndim() < a.ndim() && a.size() > 0 &&
         std::equal(b.shape().begin(), b.shape().end(), a.shape().end() - b.ndim());
}

bool last_axis_only(const mx::array& x, const std::vector<int>& axes) {
  return x.ndim() >= 1 && (axes.empty() ? x.ndim() == 1
                                        : axes.size() == 1 && (axes[0] == -1 || axes[0] == int(x.ndim()) - 1));
}

}  // namespace

mx::array activation(Activation a, const mx::array& x, Where s) {
  return cpu::uses_kernels(x, s) ? activated("activation", kernel_of(a), x, 0, s) : composed(a, x, s);
}

mx::array softcap(const mx::array& x, double limit, Where s) {
  if (!cpu::uses_kernels(x, s)) {
    return mx::multiply(mx::tanh(mx::multiply(x, number(1 / limit, x), s), s), number(limit, x), s);
  }
  return activated("softcap", cpu::Act::cap, x, float(limit), s);
}

mx::array squared_relu(const mx::array& x, Where s) {
  if (!cpu::uses_kernels(x, s)) {
    return mx::square(mx::maximum(x, number(0, x), s), s);
  }
  return activated("squared_relu", cpu::Act::relu2, x, 0, s);
}

mx::array clipped(const mx::array& x, double limit, Where s) {
  if (!(limit >= 0)) {
    throw std::invalid_argument("the limit is not at least 0");
  }
  if (!cpu::uses_kernels(x, s)) {
    return mx::clip(x, number(-limit, x), number(limit, x), s);
  }
  return activated("clipped", cpu::Act::clip, x, float(limit), s);
}

mx::array exp_tail(const mx::array& x, double limit, Where s) {
  if (!cpu::uses_kernels(x, s)) {
    auto tail = mx::subtract(mx::expm1(mx::minimum(x, number(limit, x), s), s), x, s);
    return mx::where(mx::greater(x, number(0, x), s), number(0, x), tail, s);
  }
  return activated("exp_tail", cpu::Act::exp_tail, x, float(limit), s);
}

namespace {

float rounded_to(float v, mx::Dtype type) {
  return type == mx::float32 ? v : type == mx::float16 ? float(mx::float16_t(v)) : float(mx::bfloat16_t(v));
}

}  // namespace

mx::array grown_rows(const mx::array& x, const mx::array& positions, double beta, int context, int shift, Where s) {
  if (x.ndim() < 1 || positions.shape() != mx::Shape{x.shape(0)} || context < 1 || shift < 0 || x.size() == 0) {
    throw std::invalid_argument("rows " + to_string(x) + " with positions " + to_string(positions));
  }
  auto at = mx::astype(positions, mx::int32, s);
  if (!cpu::uses_kernels(x, s)) {
    auto shifted = mx::add(at, mx::array(shift, mx::int32), s);
    auto periods = mx::astype(mx::floor_divide(shifted, mx::array(context, mx::int32), s), mx::float32, s);
    auto by = mx::add(mx::multiply(mx::log1p(periods, s), mx::array(float(beta)), s), mx::array(1.0f), s);
    auto shape = mx::Shape(x.ndim(), 1);
    shape[0] = x.shape(0);
    return mx::multiply(x, mx::astype(mx::reshape(by, shape, s), x.dtype(), s), s);
  }
  auto body = [type = x.dtype(), beta = float(beta), context, shift, rows = x.shape(0),
               n = int64_t(x.size()) / x.shape(0)](const cpu::Memory& m) {
    auto run = cpu::row_kernels().scale[cpu::type_index(type)];
    const auto* positions = static_cast<const int32_t*>(static_cast<const void*>(m.in[1]));
    const int64_t bytes = n * int64_t(type.size());
    cpu::parallel(rows, cpu::rows_per_piece(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        float by = rounded_to(1 + beta * std::log1p(float((int64_t(positions[i]) + shift) / context)), type);
        run(cpu::at(m.in[0], i * bytes), by, cpu::at(m.out[0], i * bytes), n);
      }
    });
  };
  return cpu::node("grown_rows", {x, at}, {x.shape()}, {x.dtype()}, s, std::move(body), {{0, 0, false}})[0];
}

mx::array gated(Activation a, const mx::array& gate, const Optional& up, Where s) {
  if (!up && (gate.ndim() < 1 || gate.shape(-1) % 2 != 0)) {
    throw std::invalid_argument("cannot split the last axis of " + to_string(gate) + " into halves");
  }
  bool same = !up || (up->shape() == gate.shape() && up->dtype() == gate.dtype());
  if (!cpu::uses_kernels(gate, s) || !same) {
    if (up) {
      return composed_gate(a, gate, *up, s);
    }
    auto halves = mx::split(gate, 2, -1, s);
    return composed_gate(a, halves[0], halves[1], s);
  }
  int type = cpu::type_index(gate.dtype());
  int64_t size = int64_t(gate.itemsize());
  auto shape = gate.shape();
  if (up) {
    auto body = [a, type, size, n = int64_t(gate.size())](const cpu::Memory& m) {
      auto run = cpu::row_kernels().activate[int(kernel_of(a))][type];
      cpu::in_pieces(n, kCost, [&](int64_t from, int64_t count) {
        int64_t o = from * size;
        run(cpu::at(m.in[0], o), cpu::at(m.in[1], o), cpu::at(m.out[0], o), count, 0);
      });
    };
    return cpu::node("gated", {gate, *up}, {shape}, {gate.dtype()}, s, std::move(body),
                     {{0, 0, false}, {0, 1, false}})[0];
  }
  shape.back() /= 2;
  int64_t n = shape.back(), rows = int64_t(gate.size()) / (2 * n);
  auto body = [a, type, size, n, rows](const cpu::Memory& m) {
    auto run = cpu::row_kernels().activate[int(kernel_of(a))][type];
    // A piece is a number of rows, or a part of a long row.
    int64_t piece = cpu::kPiece / kCost, parts = (n + piece - 1) / piece, part = (n + parts - 1) / parts;
    cpu::parallel(rows * parts, cpu::rows_per_piece(n * kCost), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        int64_t row = i / parts, from = i % parts * part, count = std::min(part, n - from);
        const char* g = cpu::at(m.in[0], (row * 2 * n + from) * size);
        run(g, g + n * size, cpu::at(m.out[0], (row * n + from) * size), count, 0);
      }
    });
  };
  return cpu::node("gated", {gate}, {shape}, {gate.dtype()}, s, std::move(body))[0];
}

mx::array sum_of(const mx::array& a, const mx::array& b, Where s) {
  return alike(a, b, s) ? pairwise("add", false, a, b, s) : mx::add(a, b, s);
}

namespace {

// Reports whether b has one element for each block of a's last axis.
bool one_per_row(const mx::array& a, const mx::array& b, Where s) {
  return cpu::uses_kernels(a, s) && a.dtype() == b.dtype() && a.ndim() >= 2 && b.ndim() == a.ndim() &&
         b.shape(-1) == 1 && std::equal(b.shape().begin(), b.shape().end() - 1, a.shape().begin());
}

// Multiplies each row of a by the element of b for it.
mx::array rowwise(const mx::array& a, const mx::array& b, Where s) {
  auto body = [type = a.dtype(), n = int64_t(a.shape(-1)), rows = int64_t(b.size())](const cpu::Memory& m) {
    auto run = cpu::row_kernels().scale[cpu::type_index(type)];
    const int64_t size = int64_t(type.size()), bytes = n * size;
    cpu::parallel(rows, cpu::rows_per_piece(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        run(cpu::at(m.in[0], i * bytes), first(cpu::at(m.in[1], i * size), type), cpu::at(m.out[0], i * bytes), n);
      }
    });
  };
  return cpu::node("rowwise", {a, b}, {a.shape()}, {a.dtype()}, s, std::move(body), {{0, 0, false}})[0];
}

}  // namespace

mx::array softplus(const mx::array& x, Where s) {
  if (!cpu::uses_kernels(x, s)) {
    return mx::logaddexp(x, mx::array(0.0f, x.dtype()), s);
  }
  auto body = [type = cpu::Type(cpu::type_index(x.dtype())), size = int64_t(x.itemsize()),
               n = int64_t(x.size())](const cpu::Memory& m) {
    const auto& kernels = cpu::matmul_kernels();
    cpu::in_pieces(n, kCost, [&](int64_t from, int64_t count) {
      auto* work = cpu::scratch<float>(cpu::kRowsScratch, size_t(count));
      kernels.widen(type, cpu::at(m.in[0], from * size), work, count);
      for (int64_t i = 0; i < count; i++) {
        work[i] = std::max(work[i], 0.0f) + std::log1p(std::exp(-std::abs(work[i])));
      }
      kernels.narrow(type, work, cpu::at(m.out[0], from * size), count);
    });
  };
  return cpu::node("softplus", {x}, {x.shape()}, {x.dtype()}, s, std::move(body), {{0, 0, false}})[0];
}

mx::array product_of(const mx::array& a, const mx::array& b, Where s) {
  if (alike(a, b, s)) {
    return pairwise("multiply", true, a, b, s);
  }
  if (ends_alike(a, b, s)) {
    return blockwise(a, b, s);
  }
  if (one_per_row(a, b, s)) {
    return rowwise(a, b, s);
  }
  const bool one = b.size() == 1 && b.ndim() <= a.ndim() && cpu::uses_kernels(a, s) && b.dtype() == a.dtype();
  return one ? times(a, b, s) : mx::multiply(a, b, s);
}

mx::array scaled_by(const mx::array& x, double value, Where s) {
  auto factor = mx::array(value, x.dtype());
  return cpu::uses_kernels(x, s) ? times(x, factor, s) : mx::multiply(x, factor, s);
}

mx::array softmax_over(const mx::array& x, const std::vector<int>& axes, bool precise, Where s) {
  if (!cpu::uses_kernels(x, s) || !last_axis_only(x, axes)) {
    return mx::softmax(row_major_if_empty(x, s), all_if_empty(axes, x), precise, s);
  }
  int type = cpu::type_index(x.dtype());
  int64_t n = x.shape(-1), rows = int64_t(x.size()) / n, bytes = n * int64_t(x.itemsize());
  auto body = [type, n, rows, bytes](const cpu::Memory& m) {
    auto run = cpu::row_kernels().softmax[type];
    cpu::parallel(rows, cpu::rows_per_piece(n * kCost), [&](int64_t begin, int64_t end) {
      auto* work = cpu::scratch<float>(cpu::kRowsScratch, size_t(n));
      for (int64_t i = begin * bytes; i < end * bytes; i += bytes) {
        run(cpu::at(m.in[0], i), cpu::at(m.out[0], i), n, work);
      }
    });
  };
  return cpu::node("softmax", {x}, {x.shape()}, {x.dtype()}, s, std::move(body), {{0, 0, false}})[0];
}

mx::array log_sum_exp(const mx::array& x, const std::vector<int>& axes, bool keepdims, Where s) {
  if (!cpu::uses_kernels(x, s) || !last_axis_only(x, axes)) {
    return mx::logsumexp(row_major_if_empty(x, s), all_if_empty(axes, x), keepdims, s);
  }
  int type = cpu::type_index(x.dtype());
  int64_t n = x.shape(-1), rows = int64_t(x.size()) / n, bytes = n * int64_t(x.itemsize());
  auto shape = x.shape();
  if (keepdims) {
    shape.back() = 1;
  } else {
    shape.pop_back();
  }
  auto body = [type, n, rows, bytes](const cpu::Memory& m) {
    // A row may be as long as a vocabulary. The sums of its parts are combined in order, so the result does not depend
    // on threads.
    int64_t parts = (n + cpu::kPiece - 1) / cpu::kPiece, size = bytes / n;
    auto* peaks = cpu::scratch<float>(cpu::kRowsScratch, size_t(2 * rows * parts));
    float* sums = peaks + rows * parts;
    auto& kernels = cpu::row_kernels();
    cpu::parallel(rows * parts, cpu::rows_per_piece(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        int64_t from = i % parts * cpu::kPiece;
        kernels.exp_sum[type](cpu::at(m.in[0], i / parts * bytes + from * size), std::min(cpu::kPiece, n - from),
                              peaks + i, sums + i);
      }
    });
    for (int64_t r = 0; r < rows; r++) {
      const float *p = peaks + r * parts, *e = sums + r * parts;
      float peak = *std::max_element(p, p + parts), total = 0;
      for (int64_t i = 0; i < parts; i++) {
        total += e[i] * (p[i] == peak ? 1 : std::exp(p[i] - peak));
      }
      m.output<float>(0)[r] = peak == INFINITY ? peak : peak + std::log(total);
    }
  };
  return mx::astype(cpu::node("logsumexp", {x}, {shape}, {mx::float32}, s, std::move(body))[0], x.dtype(), s);
}

}  // namespace ingot
