// Recurrent layers: the gated delta rule, and the causal convolution before it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "ops/rows.h"
#include "ops/recurrent/segments.h"
#include "core/call.h"
#include "core/checks.h"
#include "cpu/delta/delta.h"
#include "cpu/rows/node.h"
#include "mlx/fast.h"

namespace ingot {

namespace {

struct DeltaShape {
  int64_t key_heads, heads, key_dim, value_dim;
  bool columns = false;  // each column of a state has a gate
};

struct DeltaStates {
  bool given = false;     // there is a state before the first row
  bool every = false;     // the state after every row is wanted, not only after the last
  bool in_place = false;  // new states overwrite the given ones
};

// Creates the node over rows [T, ...] of all segments, each with a state [heads, value_dim, key_dim] or none.
std::vector<mx::array> delta_node(std::vector<mx::array> inputs, DeltaStates states, Segments segments, DeltaShape d,
                                  mx::Shape y_shape, const std::vector<mx::Shape>& state_shapes, Where s) {
  int type = cpu::type_index(inputs[0].dtype());
  int64_t size = int64_t(inputs[0].itemsize());
  std::vector<mx::Shape> shapes{std::move(y_shape)};
  std::vector<mx::Dtype> types{inputs[2].dtype()};
  std::vector<cpu::Reuse> reuse;
  for (size_t i = 0; i < state_shapes.size(); i++) {
    shapes.push_back(state_shapes[i]);
    types.push_back(mx::float32);
    if (states.given && !states.every) {
      reuse.push_back({int(i) + 1, int(i) + 5, states.in_place});
    }
  }
  // If all segments share one array of states, as in MLX's batches, each has an equal part of it.
  bool shared = state_shapes.size() == 1 && segments.size() > 1;
  auto body = [=](const cpu::Memory& m) {
    auto run = d.columns ? cpu::delta_kernels().column_delta[type] : cpu::delta_kernels().delta[type];
    constexpr int64_t kChannels = 32;  // per piece
    int64_t parts = (d.value_dim + kChannels - 1) / kChannels, state = d.value_dim * d.key_dim;
    cpu::parallel(int64_t(segments.size()) * d.heads * parts, 1, [&](int64_t begin, int64_t end) {
      auto* work = cpu::scratch<float>(cpu::kRowsScratch, size_t(3 * cpu::kDeltaRows * d.key_dim));
      for (int64_t i = begin; i < end; i++) {
        int64_t g = i / parts / d.heads, head = i / parts % d.heads, key_head = head / (d.heads / d.key_heads);
        int64_t row = segments.first[size_t(g)], own = shared ? 0 : g, offset = (shared ? g * d.heads : 0) + head;
        cpu::Delta a{};
        a.rows = segments.count[size_t(g)];
        a.key_dim = d.key_dim;
        a.begin = i % parts * kChannels;
        a.end = std::min(a.begin + kChannels, d.value_dim);
        a.key_stride = d.key_heads * d.key_dim;
        a.value_stride = d.heads * d.value_dim;
        a.gate_stride = d.heads;
        int64_t key = (row * a.key_stride + key_head * d.key_dim) * size;
        int64_t value = (row * a.value_stride + head * d.value_dim) * size;
        a.q = cpu::at(m.in[0], key);
        a.k = cpu::at(m.in[1], key);
        a.v = cpu::at(m.in[2], value);
        a.gate = m.input<float>(3) + (row * d.heads + head) * (d.columns ? d.key_dim : 1);
        a.beta = m.input<float>(4) + row * d.heads + head;
        a.from = states.given ? m.input<float>(5 + int(own)) + offset * state : nullptr;
        a.to = m.output<float>(1 + int(own)) + offset * state;
        a.state_stride = states.every ? d.heads * state : 0;
        a.y = cpu::at(m.out[0], value);
        run(a, work);
      }
    });
  };
  return cpu::node("gated_delta", std::move(inputs), std::move(shapes), std::move(types), s, std::move(body),
                   std::move(reuse));
}

// A chunk of a segment of the rule with a gate for each column, in MLX's operations: products of matrices instead of a
// loop over rows. All arrays are float32.
struct ColumnChunk {
  mx::array q, k, gates;  // [heads, rows, key dim]
  mx::array v, beta;      // [heads, rows, dim], [heads, rows, 1]
  mx::array state;        // [heads, dim, key dim]
};

std::pair<mx::array, mx::array> column_chunk(const ColumnChunk& c, Where s) {
  const int heads = c.q.shape(0), rows = c.q.shape(1), key_dim = c.q.shape(2);
  auto turned = [&](const mx::array& x) { return mx::swapaxes(x, 1, 2, s); };
  auto smallest = mx::array(std::numeric_limits<float>::min());  // for gates that are 0
  auto log = mx::cumsum(mx::log(mx::maximum(c.gates, smallest, s), s), 1, false, true, s);
  auto since = mx::exp(log, s);
  auto causal = mx::reshape(mx::tri(rows, rows, 0, mx::bool_, s), {1, rows, rows, 1}, s);
  auto between = mx::subtract(mx::expand_dims(log, 2, s), mx::expand_dims(log, 1, s), s);
  between = mx::exp(mx::where(causal, between, mx::array(-INFINITY), s), s);
  auto keys = mx::multiply(between, mx::expand_dims(c.k, 1, s), s);  // [heads, rows, rows before, key dim]
  auto scores = [&](const mx::array& x) {
    return mx::squeeze(mx::matmul(keys, mx::expand_dims(x, 3, s), s), 3, s);
  };
  // A row's change of the state follows from the changes by the rows before it: (I + n) u = beta (v - S k). n is
  // strictly triangular, so its inverse is (I - n) (I + n^2) (I + n^4) ... up to the number of rows.
  auto n = mx::multiply(mx::tril(scores(c.k), -1, s), c.beta, s);
  auto seen = mx::matmul(mx::multiply(c.k, since, s), turned(c.state), s);
  auto u = mx::multiply(c.beta, mx::subtract(c.v, seen, s), s);
  u = mx::subtract(u, mx::matmul(n, u, s), s);
  for (int power = 2; power < rows; power *= 2) {
    n = mx::matmul(n, n, s);
    u = mx::add(u, mx::matmul(n, u, s), s);
  }
  auto y = mx::add(mx::matmul(mx::multiply(c.q, since, s), turned(c.state), s), mx::matmul(scores(c.q), u, s), s);
  auto last = mx::slice(log, {0, rows - 1, 0}, {heads, rows, key_dim}, s);
  auto left = mx::multiply(c.k, mx::exp(mx::subtract(last, log, s), s), s);
  return {y, mx::add(mx::multiply(c.state, mx::exp(last, s), s), mx::matmul(turned(u), left, s), s)};
}

// gated_delta_rows with a gate for each column, composed of MLX's operations.
std::vector<mx::array> composed_columns(const mx::array& q, const mx::array& k, const mx::array& v,
                                        const mx::array& gates, const mx::array& beta,
                                        const std::vector<mx::array>& states, bool every, const Segments& segments,
                                        Where s) {
  const int heads = v.shape(1);
  auto by_head = [&](const mx::array& x) {
    auto wide = mx::transpose(mx::astype(x, mx::float32, s), {1, 0, 2}, s);
    return x.shape(1) == heads ? wide : mx::repeat(wide, heads / x.shape(1), 0, s);
  };
  ColumnChunk all{by_head(q), by_head(k), by_head(gates), by_head(v), by_head(mx::expand_dims(beta, 2, s)), states[0]};
  std::vector<mx::array> ys, out;
  const int64_t chunk = every ? 1 : 16;
  for (size_t i = 0; i < states.size(); i++) {
    auto state = states[i];
    std::vector<mx::array> kept;
    const int64_t end = segments.first[i] + segments.count[i];
    for (int64_t at = segments.first[i]; at < end; at += chunk) {
      auto cut = [&](const mx::array& x) {
        return mx::slice(x, {0, int(at), 0}, {heads, int(std::min(at + chunk, end)), x.shape(2)}, s);
      };
      auto [y, now] = column_chunk({cut(all.q), cut(all.k), cut(all.gates), cut(all.v), cut(all.beta), state}, s);
      ys.push_back(y);
      state = now;
      kept.push_back(now);
    }
    out.push_back(every ? mx::stack(kept, 0, s) : state);
  }
  auto y = mx::contiguous(mx::transpose(mx::concatenate(ys, 1, s), {1, 0, 2}, s), false, s);
  out.insert(out.begin(), mx::astype(y, v.dtype(), s));
  return out;
}

bool same_float(const mx::array& q, const mx::array& k, const mx::array& v, Where s) {
  return cpu::uses_kernels(q, s) && cpu::uses_kernels(v, s) && k.shape() == q.shape() && k.dtype() == q.dtype() &&
         v.dtype() == q.dtype();
}

}  // namespace

std::vector<mx::array> gated_delta(const mx::array& q, const mx::array& k, const mx::array& v, const mx::array& gates,
                                   const mx::array& beta, const Optional& state, const Optional& mask, Where s) {
  bool fits = !mask && q.ndim() == 4 && v.ndim() == 4 && same_float(q, k, v, s) && q.shape(0) == v.shape(0) &&
              q.shape(1) == v.shape(1) && v.shape(2) % q.shape(2) == 0 &&
              gates.shape() == mx::Shape{v.shape(0), v.shape(1), v.shape(2)} && beta.shape() == gates.shape() &&
              mx::issubdtype(gates.dtype(), mx::floating) && mx::issubdtype(beta.dtype(), mx::floating);
  mx::Shape shape;
  if (fits) {
    shape = {v.shape(0), v.shape(2), v.shape(3), q.shape(3)};
    fits = !state || (state->dtype() == mx::float32 && state->shape() == shape);
  }
  if (!fits) {
    return mx::fast::gated_delta_update(not_empty(q), not_empty(k), not_empty(v), gates, beta, state, mask, s);
  }
  std::vector<mx::array> inputs{q, k, v, mx::astype(gates, mx::float32, s), mx::astype(beta, mx::float32, s)};
  if (state) {
    inputs.push_back(*state);
  }
  std::vector<int> lengths(size_t(q.shape(0)), q.shape(1));
  return delta_node(std::move(inputs), {.given = state.has_value()}, Segments(lengths, q.shape(0) * q.shape(1)),
                    {q.shape(2), v.shape(2), q.shape(3), v.shape(3)}, v.shape(), {shape}, s);
}

std::vector<mx::array> gated_delta_rows(const mx::array& q, const mx::array& k, const mx::array& v,
                                        const mx::array& gates, const mx::array& beta,
                                        const std::vector<mx::array>& states, bool every, bool in_place,
                                        const std::vector<int>& lengths, Where s) {
  std::vector<mx::array> all{q, k, v, gates, beta};
  bool fits = q.ndim() == 3 && v.ndim() == 3 && q.size() > 0 && v.size() > 0 && k.shape() == q.shape() &&
              q.shape(0) == v.shape(0) && v.shape(1) % q.shape(1) == 0 &&
              beta.shape() == mx::Shape{v.shape(0), v.shape(1)} && states.size() == lengths.size();
  bool columns = fits && gates.shape() == mx::Shape{v.shape(0), v.shape(1), q.shape(2)};
  fits = fits && (columns || gates.shape() == beta.shape());
  for (const auto& a : all) {
    fits = fits && mx::issubdtype(a.dtype(), mx::floating);
  }
  for (const auto& a : states) {
    fits = fits && a.dtype() == mx::float32 && a.shape() == mx::Shape{v.shape(1), v.shape(2), q.shape(2)};
  }
  if (!fits) {
    throw std::invalid_argument("q, k, v, gates, beta " + shapes_of(all) + " and states " + shapes_of(states) +
                                " do not fit together");
  }
  result_count(int(lengths.size()) + 1);
  Segments segments(lengths, q.shape(0));
  DeltaShape d{q.shape(1), v.shape(1), q.shape(2), v.shape(2), columns};
  std::vector<mx::Shape> shapes;
  for (size_t i = 0; i < states.size(); i++) {
    auto shape = states[i].shape();
    if (every) {
      shape.insert(shape.begin(), int(segments.count[i]));
    }
    shapes.push_back(shape);
  }
  if (same_float(q, k, v, s)) {
    std::vector<mx::array> inputs{q, k, v, mx::astype(gates, mx::float32, s), mx::astype(beta, mx::float32, s)};
    inputs.insert(inputs.end(), states.begin(), states.end());
    return delta_node(std::move(inputs), {.given = true, .every = every, .in_place = in_place}, std::move(segments), d,
                      v.shape(), shapes, s);
  }
  if (columns) {
    return composed_columns(q, k, v, gates, beta, states, every, segments, s);
  }
  // Composed of MLX's operations: segment by segment, or row by row if every row's state is wanted.
  std::vector<mx::array> ys, out;
  for (size_t i = 0; i < states.size(); i++) {
    auto state = mx::expand_dims(states[i], 0, s);
    std::vector<mx::array> kept;
    int64_t step = every ? 1 : segments.count[i];
    for (int64_t row = 0; row < segments.count[i]; row += step) {
      auto cut = [&](const mx::array& x) {
        return mx::expand_dims(segment(x, segments.first[i] + row, step, s), 0, s);
      };
      auto got = mx::fast::gated_delta_update(cut(q), cut(k), cut(v), cut(gates), cut(beta), state, std::nullopt, s);
      ys.push_back(mx::astype(mx::squeeze(got[0], 0, s), v.dtype(), s));
      state = got[1];
      kept.push_back(state);
    }
    out.push_back(every ? mx::concatenate(kept, 0, s) : mx::squeeze(state, 0, s));
  }
  out.insert(out.begin(), mx::concatenate(ys, 0, s));
  return out;
}

namespace {

// causal_conv composed of MLX's operations: each segment's rows follow the rows of its state, [taps-1 + rows,
// channels].
std::vector<mx::array> composed_conv(const mx::array& x, const mx::array& weight, const Optional& bias,
                                     const std::vector<mx::array>& states, bool silu, bool every,
                                     const Segments& segments,
                                     Where s) {
  int taps = weight.shape(0), channels = weight.shape(1);
  std::vector<mx::array> ys, out;
  for (size_t i = 0; i < states.size(); i++) {
    int count = int(segments.count[i]);
    auto rows = mx::concatenate({states[i], segment(x, segments.first[i], count, s)}, 0, s);
    auto y = mx::zeros({count, channels}, x.dtype(), s);
    for (int j = 0; j < taps; j++) {
      y = mx::add(y, mx::multiply(segment(rows, j, count, s), segment(weight, j, 1, s), s), s);
    }
    y = bias ? mx::add(y, *bias, s) : y;
    ys.push_back(mx::astype(silu ? mx::multiply(y, mx::sigmoid(y, s), s) : y, x.dtype(), s));
    if (!every) {
      out.push_back(segment(rows, count, taps - 1, s));
      continue;
    }
    std::vector<mx::array> kept;
    for (int t = 1; t <= count; t++) {
      kept.push_back(segment(rows, t, taps - 1, s));
    }
    out.push_back(mx::stack(kept, 0, s));
  }
  out.insert(out.begin(), mx::concatenate(ys, 0, s));
  return out;
}

}  // namespace

std::vector<mx::array> causal_conv(const mx::array& x, const mx::array& weight, const Optional& bias,
                                   const std::vector<mx::array>& states, bool silu, bool every, bool in_place,
                                   const std::vector<int>& lengths, Where s) {
  bool fits = x.ndim() == 2 && x.size() > 0 && weight.ndim() == 2 && weight.shape(0) >= 2 &&
              weight.shape(1) == x.shape(1) &&
              weight.shape(0) <= cpu::kConvTaps && (!bias || bias->shape() == mx::Shape{x.shape(1)}) &&
              states.size() == lengths.size() && mx::issubdtype(x.dtype(), mx::floating);
  for (const auto& a : states) {
    fits = fits && a.dtype() == x.dtype() && a.shape() == mx::Shape{weight.shape(0) - 1, x.shape(1)};
  }
  if (!fits) {
    throw std::invalid_argument("rows " + to_string(x) + ", weights " + to_string(weight) + " and states " +
                                shapes_of(states) +
                                " do not fit together; at most " + std::to_string(cpu::kConvTaps) + " rows of weights");
  }
  result_count(int(lengths.size()) + 1);
  Segments segments(lengths, x.shape(0));
  if (!cpu::uses_kernels(x, s) || weight.dtype() != x.dtype() || (bias && bias->dtype() != x.dtype())) {
    return composed_conv(x, weight, bias, states, silu, every, segments, s);
  }
  int64_t channels = x.shape(1), size = int64_t(x.itemsize()), bytes = channels * size, taps = weight.shape(0);
  int type = cpu::type_index(x.dtype());
  std::vector<mx::array> inputs{x, weight};
  if (bias) {
    inputs.push_back(*bias);
  }
  int first_state = int(inputs.size());
  inputs.insert(inputs.end(), states.begin(), states.end());
  std::vector<mx::Shape> shapes{x.shape()};
  std::vector<cpu::Reuse> reuse;
  for (size_t i = 0; i < states.size(); i++) {
    auto shape = states[i].shape();
    if (every) {
      shape.insert(shape.begin(), int(segments.count[i]));
    } else if (in_place) {
      reuse.push_back({int(i) + 1, first_state + int(i), true});
    }
    shapes.push_back(shape);
  }
  std::vector<int32_t> segment_of;
  for (size_t i = 0; i < segments.size(); i++) {
    segment_of.insert(segment_of.end(), size_t(segments.count[i]), int32_t(i));
  }
  auto body = [=, rows = int64_t(x.shape(0)), biased = bias.has_value()](const cpu::Memory& m) {
    auto run = cpu::delta_kernels().conv[type];
    // Returns row r of segment g. Rows -(taps-1) to -1 are those of the state.
    auto row_at = [&](int64_t g, int64_t r) {
      return r >= 0 ? cpu::at(m.in[0], (segments.first[size_t(g)] + r) * bytes)
                    : cpu::at(m.in[first_state + g], (r + taps - 1) * bytes);
    };
    constexpr int64_t kChannels = 2048;  // per piece
    int64_t parts = (channels + kChannels - 1) / kChannels;
    cpu::parallel(rows * parts, std::max<int64_t>(1, cpu::kPiece / std::min(channels, kChannels)),
                  [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        int64_t row = i / parts, g = segment_of[size_t(row)], r = row - segments.first[size_t(g)],
            from = i % parts * kChannels;
        cpu::Conv c{};
        c.count = int(taps);
        for (int64_t j = 0; j < taps; j++) {
          c.taps[j] = cpu::at(row_at(g, r + j - taps + 1), from * size);
        }
        c.weight = cpu::at(m.in[1], from * size);
        c.weight_stride = channels;
        c.bias = biased ? cpu::at(m.in[2], from * size) : nullptr;
        c.silu = silu;
        c.out = cpu::at(m.out[0], row * bytes + from * size);
        c.n = std::min(kChannels, channels - from);
        run(c);
      }
    });
    // In place this is safe: a row only overwrites a row that was copied before.
    for (int64_t g = 0; g < int64_t(segments.size()); g++) {
      char* to = static_cast<char*>(m.out[1 + g]);
      for (int64_t r = every ? 0 : segments.count[size_t(g)] - 1; r < segments.count[size_t(g)]; r++) {
        for (int64_t j = 2 - taps; j <= 0; j++, to += bytes) {
          std::memcpy(to, row_at(g, r + j), size_t(bytes));
        }
      }
    }
  };
  return cpu::node("causal_conv", std::move(inputs), std::move(shapes),
                   std::vector<mx::Dtype>(states.size() + 1, x.dtype()), s, std::move(body), std::move(reuse));
}

mx::array decay(const mx::array& x, const mx::array& bias, const mx::array& rate, Where s) {
  const bool fits = x.ndim() == 2 && mx::issubdtype(x.dtype(), mx::floating) && bias.dtype() == mx::float32 &&
                    rate.dtype() == mx::float32 &&
                    bias.shape() == mx::Shape{x.shape(1)} && rate.shape() == bias.shape();
  if (!fits) {
    throw std::invalid_argument("rows " + to_string(x) + ", bias " + to_string(bias) + " and rate " + to_string(rate) +
                                " do not fit together");
  }
  auto wide = as_type(x, mx::float32, s);
  if (!cpu::uses_kernels(wide, s)) {
    auto soft = mx::logaddexp(mx::add(wide, bias, s), mx::array(0.0f), s);
    return mx::exp(mx::multiply(soft, rate, s), s);
  }
  auto body = [rows = int64_t(x.shape(0)), n = int64_t(x.shape(1))](const cpu::Memory& m) {
    cpu::parallel(rows, cpu::rows_per_piece(16 * n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * n; i < end * n; i += n) {
        cpu::delta_kernels().softplus({m.input<float>(0) + i, m.input<float>(1), m.input<float>(2), 0, 0,
                                       m.output<float>(0) + i, n});
      }
    });
  };
  return cpu::node("decay", {wide, bias, rate}, {x.shape()}, {mx::float32}, s, std::move(body), {{0, 0, false}})[0];
}

}  // namespace ingot
