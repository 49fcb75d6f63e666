// Recurrent layers: selective scans, and the decayed sum of rows.
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

bool is_float32(const mx::array& x, const mx::Shape& shape) { return x.dtype() == mx::float32 && x.shape() == shape; }

// Rows are float32, or float64, for which there is no kernel: with it tests run the composed operations on a CPU.
bool are_rows(const mx::array& x) { return x.ndim() == 2 && (x.dtype() == mx::float32 || x.dtype() == mx::float64); }

// Reports whether there is a state of this shape for each segment.
bool are_states(const std::vector<mx::array>& states, const mx::Shape& shape, const std::vector<int>& lengths) {
  return states.size() == lengths.size() &&
         std::all_of(states.begin(), states.end(), [&](const mx::array& a) { return is_float32(a, shape); });
}

[[noreturn]] void misfit(const std::vector<mx::array>& rows, const std::vector<mx::array>& states) {
  throw std::invalid_argument("rows and weights " + shapes_of(rows) + " and states " + shapes_of(states) +
                              " do not fit together");
}

// Creates the node of a scan whose outputs are the rows and then each segment's state, in the memory of its inputs from
// first_state on if in_place is set.
std::vector<mx::array> scan_node(const char* name, std::vector<mx::array> inputs, const std::vector<mx::array>& states,
                                 const mx::array& y, bool in_place, Where s, cpu::Body body) {
  std::vector<mx::Shape> shapes{y.shape()};
  std::vector<mx::Dtype> types{y.dtype()};
  std::vector<cpu::Reuse> reuse;
  for (size_t i = 0; i < states.size(); i++) {
    reuse.push_back({int(i) + 1, int(inputs.size()), in_place});
    inputs.push_back(states[i]);
    shapes.push_back(states[i].shape());
    types.push_back(mx::float32);
  }
  return cpu::node(name, std::move(inputs), std::move(shapes), std::move(types), s, std::move(body), std::move(reuse));
}

// A chunk of a segment of a state scan in MLX's operations: products of matrices instead of a loop over rows.
struct StateChunk {
  mx::array q, k;     // float32 [heads, rows, key dim]
  mx::array v;        // float32 [heads, rows, dim], times the steps
  mx::array log;      // float32 [heads, rows]: the logarithms of the gates, summed up to each row
  mx::array state;    // [heads, dim, key dim]
};

std::pair<mx::array, mx::array> state_chunk(const StateChunk& c, Where s) {
  int rows = c.log.shape(1);
  auto between = mx::subtract(mx::expand_dims(c.log, 2, s), mx::expand_dims(c.log, 1, s), s);
  auto none = mx::array(-INFINITY);
  auto causal = mx::tri(rows, rows, 0, mx::bool_, s);
  auto weights = mx::multiply(mx::exp(mx::where(causal, between, none, s), s),
                              mx::matmul(c.q, mx::swapaxes(c.k, 1, 2, s), s), s);
  auto since = mx::expand_dims(mx::exp(c.log, s), 2, s);
  auto y = mx::add(mx::matmul(weights, c.v, s),
                   mx::multiply(since, mx::matmul(c.q, mx::swapaxes(c.state, 1, 2, s), s), s), s);
  auto last = mx::slice(c.log, {0, rows - 1}, {c.log.shape(0), rows}, s);
  auto left = mx::multiply(c.v, mx::expand_dims(mx::exp(mx::subtract(last, c.log, s), s), 2, s), s);
  auto state = mx::add(mx::multiply(c.state, mx::expand_dims(mx::exp(last, s), 2, s), s),
                       mx::matmul(mx::swapaxes(left, 1, 2, s), c.k, s), s);
  return {y, state};
}

}  // namespace

mx::array step_sizes(const mx::array& x, const mx::array& bias, double least, double most, Where s) {
  if (x.ndim() != 2 || !mx::issubdtype(x.dtype(), mx::floating) || !is_float32(bias, {x.shape(1)})) {
    misfit({x, bias}, {});
  }
  auto wide = as_type(x, mx::float32, s);
  const float lo = float(least), hi = most > 0 ? float(most) : INFINITY;
  if (!cpu::uses_kernels(wide, s)) {
    auto soft = mx::logaddexp(mx::add(wide, bias, s), mx::array(0.0f), s);
    return mx::minimum(mx::maximum(soft, mx::array(lo), s), mx::array(hi), s);
  }
  auto body = [rows = int64_t(x.shape(0)), n = int64_t(x.shape(1)), lo, hi](const cpu::Memory& m) {
    cpu::parallel(rows, cpu::rows_per_piece(8 * n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * n; i < end * n; i += n) {
        cpu::delta_kernels().softplus({m.input<float>(0) + i, m.input<float>(1), nullptr, lo, hi,
                                       m.output<float>(0) + i, n});
      }
    });
  };
  return cpu::node("step_sizes", {wide, bias}, {x.shape()}, {mx::float32}, s, std::move(body), {{0, 0, false}})[0];
}

std::vector<mx::array> state_scan(const mx::array& q, const mx::array& k, const mx::array& v, const mx::array& steps,
                                  const mx::array& rate, const Optional& skip, const std::vector<mx::array>& states,
                                  bool in_place, const std::vector<int>& lengths, Where s) {
  bool fits = q.ndim() == 3 && v.ndim() == 3 && q.size() > 0 && v.size() > 0 && k.shape() == q.shape() &&
              q.shape(0) == v.shape(0) && v.shape(1) % q.shape(1) == 0 &&
              mx::issubdtype(v.dtype(), mx::floating) && q.dtype() == v.dtype() && k.dtype() == v.dtype() &&
              is_float32(steps, {v.shape(0), v.shape(1)}) && is_float32(rate, {v.shape(1)}) &&
              (!skip || is_float32(*skip, rate.shape())) &&
              are_states(states, {v.shape(1), v.shape(2), q.shape(2)}, lengths);
  if (!fits) {
    misfit({q, k, v, steps, rate}, states);
  }
  result_count(int(lengths.size()) + 1);
  Segments segments(lengths, q.shape(0));
  int64_t groups = q.shape(1), heads = v.shape(1), key_dim = q.shape(2), dim = v.shape(2);
  if (cpu::uses_kernels(v, s)) {
    std::vector<mx::array> inputs{q, k, v, steps, rate};
    if (skip) {
      inputs.push_back(*skip);
    }
    auto body = [=, type = cpu::type_index(v.dtype()), size = int64_t(v.itemsize()), first = int(inputs.size()),
                 skips = skip.has_value()](const cpu::Memory& m) {
      auto run = cpu::delta_kernels().scan[type];
      constexpr int64_t kChannels = 32;  // per piece
      int64_t parts = (dim + kChannels - 1) / kChannels, state = dim * key_dim;
      cpu::parallel(int64_t(segments.size()) * heads * parts, 1, [&](int64_t begin, int64_t end) {
        auto* work = cpu::scratch<float>(cpu::kRowsScratch, size_t(2 * cpu::kDeltaRows * key_dim));
        for (int64_t i = begin; i < end; i++) {
          int64_t g = i / parts / heads, head = i / parts % heads, row = segments.first[size_t(g)];
          int64_t key = ((row * groups + head / (heads / groups)) * key_dim) * size;
          int64_t value = (row * heads + head) * dim * size;
          cpu::Delta a{};
          a.rows = segments.count[size_t(g)];
          a.key_dim = key_dim;
          a.begin = i % parts * kChannels;
          a.end = std::min(a.begin + kChannels, dim);
          a.key_stride = groups * key_dim;
          a.value_stride = heads * dim;
          a.gate_stride = heads;
          a.q = cpu::at(m.in[0], key);
          a.k = cpu::at(m.in[1], key);
          a.v = cpu::at(m.in[2], value);
          a.beta = m.input<float>(3) + row * heads + head;
          a.rate = m.input<float>(4)[head];
          a.skip = skips ? m.input<float>(5)[head] : 0;
          a.from = m.input<float>(first + int(g)) + head * state;
          a.to = m.output<float>(1 + int(g)) + head * state;
          a.y = cpu::at(m.out[0], value);
          run(a, work);
        }
      });
    };
    return scan_node("state_scan", std::move(inputs), states, v, in_place, s, std::move(body));
  }
  auto heads_of = [&](const mx::array& x) {
    auto wide = mx::transpose(mx::astype(x, mx::float32, s), {1, 0, 2}, s);
    return x.shape(1) == int(heads) ? wide : mx::repeat(wide, int(heads / groups), 0, s);
  };
  auto wide_q = heads_of(q), wide_k = heads_of(k), wide_v = heads_of(v);
  auto by_head = mx::transpose(steps, s);  // [heads, rows]
  auto log = mx::multiply(by_head, mx::expand_dims(rate, 1, s), s);
  auto scaled = mx::multiply(wide_v, mx::expand_dims(by_head, 2, s), s);
  std::vector<mx::array> ys, out;
  constexpr int kChunk = 64;
  for (size_t i = 0; i < states.size(); i++) {
    auto state = states[i];
    int end = int(segments.first[i] + segments.count[i]);
    for (int at = int(segments.first[i]); at < end; at += kChunk) {
      int to = std::min(at + kChunk, end);
      auto cut = [&](const mx::array& x) { return mx::slice(x, {0, at, 0}, {int(heads), to, x.shape(2)}, s); };
      auto sums = mx::cumsum(mx::slice(log, {0, at}, {int(heads), to}, s), 1, false, true, s);
      auto done = state_chunk({cut(wide_q), cut(wide_k), cut(scaled), sums, state}, s);
      ys.push_back(done.first);
      state = done.second;
    }
    out.push_back(state);
  }
  auto y = mx::concatenate(ys, 1, s);
  if (skip) {
    y = mx::add(y, mx::multiply(wide_v, mx::reshape(*skip, {-1, 1, 1}, s), s), s);
  }
  out.insert(out.begin(), mx::astype(mx::contiguous(mx::transpose(y, {1, 0, 2}, s), false, s), v.dtype(), s));
  return out;
}

std::vector<mx::array> channel_scan(const mx::array& x, const mx::array& steps, const mx::array& b, const mx::array& c,
                                    const mx::array& rate, const Optional& skip, const std::vector<mx::array>& states,
                                    bool in_place, const std::vector<int>& lengths, Where s) {
  bool fits = are_rows(x) && b.ndim() == 2 && x.size() > 0 && b.size() > 0 && b.shape(0) == x.shape(0) &&
              is_float32(steps, x.shape()) && is_float32(b, b.shape()) &&
              is_float32(c, b.shape()) && is_float32(rate, {x.shape(1), b.shape(1)}) &&
              (!skip || is_float32(*skip, {x.shape(1)})) && are_states(states, rate.shape(), lengths);
  if (!fits) {
    misfit({x, steps, b, c, rate}, states);
  }
  result_count(int(lengths.size()) + 1);
  Segments segments(lengths, x.shape(0));
  if (cpu::uses_kernels(x, s)) {
    std::vector<mx::array> inputs{x, steps, b, c, rate};
    if (skip) {
      inputs.push_back(*skip);
    }
    auto body = [=, channels = int64_t(x.shape(1)), n = int64_t(b.shape(1)), first = int(inputs.size()),
                 skips = skip.has_value()](const cpu::Memory& m) {
      constexpr int64_t kChannels = 64;  // per piece
      int64_t parts = (channels + kChannels - 1) / kChannels;
      cpu::parallel(int64_t(segments.size()) * parts, 1, [&](int64_t begin, int64_t end) {
        auto* work = cpu::scratch<float>(cpu::kRowsScratch, size_t(cpu::kChannelWork * n));
        for (int64_t i = begin; i < end; i++) {
          int64_t g = i / parts, from = i % parts * kChannels, row = segments.first[size_t(g)];
          cpu::ChannelScan a{};
          a.rows = segments.count[size_t(g)];
          a.n = std::min(kChannels, channels - from);
          a.states = n;
          a.stride = channels;
          a.x = m.input<float>(0) + row * channels + from;
          a.step = m.input<float>(1) + row * channels + from;
          a.b = m.input<float>(2) + row * n;
          a.c = m.input<float>(3) + row * n;
          a.rate = m.input<float>(4) + from * n;
          a.skip = skips ? m.input<float>(5) + from : nullptr;
          a.from = m.input<float>(first + int(g)) + from * n;
          a.to = m.output<float>(1 + int(g)) + from * n;
          a.y = m.output<float>(0) + row * channels + from;
          cpu::delta_kernels().channels(a, work);
        }
      });
    };
    return scan_node("channel_scan", std::move(inputs), states, x, in_place, s, std::move(body));
  }
  std::vector<mx::array> ys, out;
  for (size_t i = 0; i < states.size(); i++) {
    auto state = states[i];
    for (int64_t r = 0; r < segments.count[i]; r++) {
      auto row = [&](const mx::array& a) { return segment(a, segments.first[i] + r, 1, s); };
      auto step = mx::transpose(row(steps), s);  // [channels, 1]
      auto input = mx::multiply(mx::multiply(step, mx::transpose(row(x), s), s), row(b), s);
      state = mx::add(mx::multiply(mx::exp(mx::multiply(step, rate, s), s), state, s), input, s);
      ys.push_back(mx::transpose(mx::matmul(state, mx::transpose(row(c), s), s), s));
    }
    out.push_back(mx::astype(state, mx::float32, s));
  }
  auto y = mx::concatenate(ys, 0, s);
  out.insert(out.begin(), skip ? mx::add(y, mx::multiply(x, *skip, s), s) : y);
  return out;
}

std::vector<mx::array> decayed_sum(const mx::array& x, const mx::array& decay, const std::vector<mx::array>& states,
                                   bool in_place, const std::vector<int>& lengths, Where s) {
  bool fits = are_rows(x) && x.size() > 0 && is_float32(decay, x.shape()) &&
              are_states(states, {x.shape(1)}, lengths);
  if (!fits) {
    misfit({x, decay}, states);
  }
  result_count(int(lengths.size()) + 1);
  Segments segments(lengths, x.shape(0));
  if (cpu::uses_kernels(x, s)) {
    auto body = [=, channels = int64_t(x.shape(1))](const cpu::Memory& m) {
      constexpr int64_t kChannels = 256;  // per piece
      int64_t parts = (channels + kChannels - 1) / kChannels;
      cpu::parallel(int64_t(segments.size()) * parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          int64_t g = i / parts, from = i % parts * kChannels, to = std::min(from + kChannels, channels);
          const float* last = m.input<float>(2 + int(g));
          for (int64_t r = 0; r < segments.count[size_t(g)]; r++) {
            int64_t row = (segments.first[size_t(g)] + r) * channels;
            const float *input = m.input<float>(0) + row, *gate = m.input<float>(1) + row;
            float* y = m.output<float>(0) + row;
            for (int64_t j = from; j < to; j++) {
              y[j] = gate[j] * last[j] + input[j];
            }
            last = y;
          }
          std::copy(last + from, last + to, m.output<float>(1 + int(g)) + from);
        }
      });
    };
    return scan_node("decayed_sum", {x, decay}, states, x, in_place, s, std::move(body));
  }
  std::vector<mx::array> ys, out;
  for (size_t i = 0; i < states.size(); i++) {
    auto state = mx::expand_dims(states[i], 0, s);
    for (int64_t r = 0; r < segments.count[i]; r++) {
      auto row = [&](const mx::array& a) { return segment(a, segments.first[i] + r, 1, s); };
      state = mx::add(mx::multiply(row(decay), state, s), row(x), s);
      ys.push_back(state);
    }
    out.push_back(mx::astype(mx::squeeze(state, 0, s), mx::float32, s));
  }
  out.insert(out.begin(), mx::concatenate(ys, 0, s));
  return out;
}

std::vector<mx::array> unit_gates(const mx::array& x, const mx::array& input, const mx::array& decay,
                                  const std::vector<mx::array>& parts, const mx::array& positions, Where s) {
  auto alike = [&](const mx::array& a) { return a.shape() == x.shape() && a.dtype() == x.dtype(); };
  bool fits = x.ndim() == 2 && mx::issubdtype(x.dtype(), mx::floating) && x.size() > 0 && alike(input) &&
              alike(decay) && parts.size() == 3 &&
              std::all_of(parts.begin(), parts.end(), [&](const auto& a) { return is_float32(a, {x.shape(1)}); }) &&
              positions.dtype() == mx::int32 && positions.shape() == mx::Shape{x.shape(0)};
  if (!fits) {
    misfit({x, input, decay, positions}, parts);
  }
  result_count(2);
  if (!cpu::uses_kernels(x, s)) {
    auto wide = [&](const mx::array& a) { return mx::astype(a, mx::float32, s); };
    auto log = mx::multiply(mx::sigmoid(mx::add(wide(decay), parts[1], s), s), parts[2], s);
    auto gated = mx::multiply(wide(x), mx::sigmoid(mx::add(wide(input), parts[0], s), s), s);
    auto size = mx::sqrt(mx::negative(mx::expm1(mx::add(log, log, s), s), s), s);
    auto first = mx::expand_dims(mx::equal(positions, mx::array(0, mx::int32), s), 1, s);
    return {mx::where(first, gated, mx::multiply(gated, size, s), s), mx::exp(log, s)};
  }
  auto body = [type = cpu::type_index(x.dtype()), rows = int64_t(x.shape(0)), n = int64_t(x.shape(1)),
               size = int64_t(x.itemsize())](const cpu::Memory& m) {
    cpu::parallel(rows, cpu::rows_per_piece(16 * n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        const int64_t at = r * n;
        cpu::UnitGates a{};
        a.x = cpu::at(m.in[0], at * size);
        a.input = cpu::at(m.in[1], at * size);
        a.decay = cpu::at(m.in[2], at * size);
        a.input_bias = m.input<float>(3);
        a.decay_bias = m.input<float>(4);
        a.rate = m.input<float>(5);
        a.first = m.input<int32_t>(6)[r] == 0;
        a.out = m.output<float>(0) + at;
        a.gate = m.output<float>(1) + at;
        a.n = n;
        cpu::delta_kernels().unit_gates[type](a);
      }
    });
  };
  return cpu::node("unit_gates", {x, input, decay, parts[0], parts[1], parts[2], positions}, {x.shape(), x.shape()},
                   {mx::float32, mx::float32}, s, std::move(body));
}

}  // namespace ingot
