// Rows of several residual streams, and what else their models need.
#include <algorithm>
#include <cmath>

#include "ops/rows.h"
#include "core/call.h"
#include "core/checks.h"
#include "cpu/rows/node.h"
#include "cpu/rows/rows.h"

namespace ingot {

namespace {

[[noreturn]] void misfit(const mx::array& a, const mx::array& b) {
  throw std::invalid_argument("rows " + to_string(a) + " and " + to_string(b) + " do not fit together");
}

// Checks that weights are float32 of a shape, or without its first dimension.
void check_weights(const mx::array& x, const mx::array& weights, mx::Shape shape) {
  if (weights.dtype() == mx::float32 && weights.ndim() + 1 == shape.size()) {
    shape.erase(shape.begin());
  }
  if (weights.dtype() != mx::float32 || weights.shape() != shape) {
    misfit(x, weights);
  }
}

}  // namespace

mx::array mix_rows(const mx::array& x, const Optional& weights, const Optional& added, const Optional& scales,
                   Where s) {
  if (x.ndim() != 3 || !mx::issubdtype(x.dtype(), mx::floating) || x.size() == 0) {
    throw std::invalid_argument("rows " + to_string(x) + " are not [T, n, size]");
  }
  const int rows = x.shape(0), n = x.shape(1), size = x.shape(2);
  const int m = !weights ? n : weights->ndim() < 2 ? 0 : weights->shape(-2);
  if (weights) {
    check_weights(x, *weights, {rows, m, n});
  }
  if (added.has_value() != scales.has_value() || (weights && m < 1)) {
    throw std::invalid_argument("rows to add without scales, or no rows");
  }
  if (added) {
    if (added->shape() != mx::Shape{rows, size} || added->dtype() != x.dtype()) {
      misfit(x, *added);
    }
    check_weights(x, *scales, {rows, m});
  }
  if (!cpu::uses_kernels(x, s)) {
    auto y = mx::astype(x, mx::float32, s);
    if (weights) {
      y = mx::matmul(weights->ndim() == 3 ? *weights : mx::expand_dims(*weights, 0, s), y, s);
    }
    if (added) {
      auto by = mx::expand_dims(scales->ndim() == 2 ? *scales : mx::expand_dims(*scales, 0, s), 2, s);
      y = mx::add(y, mx::multiply(by, mx::expand_dims(mx::astype(*added, mx::float32, s), 1, s), s), s);
    }
    return mx::astype(y, x.dtype(), s);
  }
  std::vector<mx::array> inputs{x};
  for (const auto* more : {&weights, &added, &scales}) {
    if (*more) {
      inputs.push_back(**more);
    }
  }
  auto body = [=, type = cpu::type_index(x.dtype()), bytes = int64_t(size) * int64_t(x.itemsize()),
               weighs = weights.has_value(), adds = added.has_value(), own_weights = weights && weights->ndim() == 3,
               own_scales = scales && scales->ndim() == 2](const cpu::Memory& memory) {
    auto run = cpu::row_kernels().mix[type];
    const int more = weighs ? 2 : 1;
    cpu::parallel(int64_t(rows) * m, cpu::rows_per_piece(int64_t(size) * (weighs ? n : 1)),
                  [&](int64_t begin, int64_t end) {
      const float one = 1;
      for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / m;
        cpu::Mix a{};
        a.x = cpu::at(memory.in[0], (weighs ? row * n : i) * bytes);
        a.count = weighs ? n : 1;
        a.weights = weighs ? memory.input<float>(1) + (own_weights ? i : i % m) * n : &one;
        if (adds) {
          a.added = cpu::at(memory.in[more], row * bytes);
          a.scale = memory.input<float>(more + 1)[own_scales ? i : i % m];
        }
        a.out = cpu::at(memory.out[0], i * bytes);
        a.size = size;
        run(a);
      }
    });
  };
  return cpu::node("mix_rows", std::move(inputs), {{rows, m, size}}, {x.dtype()}, s, std::move(body))[0];
}

mx::array rescale_rows(const mx::array& x, const mx::array& like, double least, Where s) {
  if (x.ndim() < 1 || like.shape() != x.shape() || like.dtype() != x.dtype() ||
      !mx::issubdtype(x.dtype(), mx::floating) || x.size() == 0 || !(least > 0)) {
    misfit(x, like);
  }
  if (!cpu::uses_kernels(x, s)) {
    auto squares = [&](const mx::array& a) {
      return mx::mean(mx::square(mx::astype(a, mx::float32, s), s), -1, true, s);
    };
    auto factor = mx::sqrt(mx::divide(squares(like), mx::maximum(squares(x), mx::array(float(least)), s), s), s);
    return mx::astype(mx::multiply(x, factor, s), x.dtype(), s);
  }
  auto body = [type = cpu::type_index(x.dtype()), n = int64_t(x.shape(-1)), rows = int64_t(x.size()) / x.shape(-1),
               bytes = int64_t(x.shape(-1)) * int64_t(x.itemsize()), least = float(least)](const cpu::Memory& m) {
    auto run = cpu::row_kernels().rescale[type];
    cpu::parallel(rows, cpu::rows_per_piece(3 * n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * bytes; i < end * bytes; i += bytes) {
        run(cpu::at(m.in[0], i), cpu::at(m.in[1], i), cpu::at(m.out[0], i), n, least);
      }
    });
  };
  return cpu::node("rescale_rows", {x, like}, {x.shape()}, {x.dtype()}, s, std::move(body), {{0, 0, false}})[0];
}

mx::array sparse_rows(const mx::array& x, double deviations, Where s) {
  if (x.ndim() < 1 || !mx::issubdtype(x.dtype(), mx::floating) || x.size() == 0) {
    throw std::invalid_argument("rows " + to_string(x) + " are not [..., n]");
  }
  if (!cpu::uses_kernels(x, s)) {
    auto wide = mx::astype(x, mx::float32, s);
    auto spread = mx::multiply(mx::sqrt(mx::var(wide, -1, true, 0, s), s), mx::array(float(deviations)), s);
    auto over = mx::subtract(wide, mx::add(mx::mean(wide, -1, true, s), spread, s), s);
    return mx::astype(mx::maximum(over, mx::array(0.0f), s), x.dtype(), s);
  }
  auto body = [type = cpu::type_index(x.dtype()), n = int64_t(x.shape(-1)), rows = int64_t(x.size()) / x.shape(-1),
               bytes = int64_t(x.shape(-1)) * int64_t(x.itemsize()), by = float(deviations)](const cpu::Memory& m) {
    auto run = cpu::row_kernels().sparse[type];
    cpu::parallel(rows, cpu::rows_per_piece(3 * n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * bytes; i < end * bytes; i += bytes) {
        run(cpu::at(m.in[0], i), cpu::at(m.out[0], i), n, by);
      }
    });
  };
  return cpu::node("sparse_rows", {x}, {x.shape()}, {x.dtype()}, s, std::move(body), {{0, 0, false}})[0];
}

std::vector<mx::array> blend_rows(const mx::array& x, const mx::array& delta, const mx::array& by, Where s) {
  if (x.ndim() != 2 || !mx::issubdtype(x.dtype(), mx::floating) || x.size() == 0 || delta.shape() != x.shape() ||
      delta.dtype() != x.dtype()) {
    misfit(x, delta);
  }
  if (by.ndim() != 2 || by.shape(0) < 1 || by.shape(1) != x.shape(1) || by.dtype() != x.dtype()) {
    misfit(x, by);
  }
  const int n = result_count(by.shape(0));
  if (!cpu::uses_kernels(x, s)) {
    std::vector<mx::array> out;
    for (const auto& w : mx::split(by, n, 0, s)) {
      out.push_back(mx::add(x, mx::multiply(delta, w, s), s));
    }
    return out;
  }
  auto body = [n, type = cpu::type_index(x.dtype()), rows = int64_t(x.shape(0)), size = int64_t(x.shape(1)),
               bytes = int64_t(x.shape(1)) * int64_t(x.itemsize())](const cpu::Memory& m) {
    auto run = cpu::row_kernels().blend[type];
    cpu::parallel(rows, cpu::rows_per_piece(n * size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * bytes; i < end * bytes; i += bytes) {
        for (int j = 0; j < n; j++) {
          run(cpu::at(m.in[0], i), cpu::at(m.in[1], i), cpu::at(m.in[2], j * bytes), cpu::at(m.out[j], i), size);
        }
      }
    });
  };
  return cpu::node("blend_rows", {x, delta, by}, std::vector<mx::Shape>(size_t(n), x.shape()),
                   std::vector<mx::Dtype>(size_t(n), x.dtype()), s, std::move(body));
}

mx::array known_ids(const mx::array& ids, int n, Where s) {
  if (!mx::issubdtype(ids.dtype(), mx::integer) || n < 1) {
    throw std::invalid_argument("ids " + to_string(ids) + " below " + std::to_string(n));
  }
  auto in = mx::astype(ids, mx::int32, s);
  if (!cpu::on_cpu(s) || in.size() == 0) {
    return mx::where(mx::less(in, mx::array(n, mx::int32), s), in, mx::array(0, mx::int32), s);
  }
  auto body = [n, count = int64_t(ids.size())](const cpu::Memory& m) {
    for (int64_t i = 0; i < count; i++) {
      m.output<int32_t>(0)[i] = m.input<int32_t>(0)[i] < n ? m.input<int32_t>(0)[i] : 0;
    }
  };
  return cpu::node("known_ids", {in}, {in.shape()}, {mx::int32}, s, std::move(body))[0];
}

namespace {

// Divides the columns of a matrix [n, n] by their sums, then alternately its rows and columns: Sinkhorn-Knopp.
void balance(float* x, int n, int iterations, float eps) {
  auto divide = [&](int step, int stride) {
    for (int i = 0; i < n; i++) {
      float sum = eps;
      for (int j = 0; j < n; j++) {
        sum += x[i * step + j * stride];
      }
      for (int j = 0; j < n; j++) {
        x[i * step + j * stride] /= sum;
      }
    }
  };
  divide(1, n);
  for (int i = 1; i < iterations; i++) {
    divide(n, 1);
    divide(1, n);
  }
}

// Sets mix to the transposed matrix [n, n] that scores become.
void mixing_weights(const float* scores, int n, int iterations, float eps, float* work, float* mix) {
  for (int i = 0; i < n; i++) {
    const float *from = scores + i * n, peak = *std::max_element(from, from + n);
    float total = 0;
    for (int j = 0; j < n; j++) {
      total += work[i * n + j] = std::exp(from[j] - peak);
    }
    for (int j = 0; j < n; j++) {
      work[i * n + j] = work[i * n + j] / total + eps;
    }
  }
  balance(work, n, iterations, eps);
  for (int i = 0; i < n * n; i++) {
    mix[i % n * n + i / n] = work[i];
  }
}

std::vector<mx::array> composed_weights(const mx::array& numbers, const mx::array& scale, const mx::array& base, int n,
                                        int iterations, double eps, Where s) {
  const int rows = numbers.shape(0);
  const auto least = mx::array(float(eps));
  auto x = mx::add(mx::multiply(numbers, scale, s), base, s);
  auto part = [&](int from, int count) { return mx::slice(x, {0, from}, {rows, from + count}, s); };
  std::vector<mx::array> out = {mx::expand_dims(mx::add(mx::sigmoid(part(0, n), s), least, s), 1, s)};
  if (iterations == 0) {
    return out;
  }
  out.push_back(mx::multiply(mx::sigmoid(part(n, n), s), mx::array(2.0f), s));
  auto mix = mx::add(mx::softmax(mx::reshape(part(2 * n, n * n), {rows, n, n}, s), -1, true, s), least, s);
  auto divide = [&](int axis) { mix = mx::divide(mix, mx::add(mx::sum(mix, axis, true, s), least, s), s); };
  divide(1);
  for (int i = 1; i < iterations; i++) {
    divide(2);
    divide(1);
  }
  out.push_back(mx::swapaxes(mix, 1, 2, s));
  return out;
}

}  // namespace

std::vector<mx::array> stream_weights(const mx::array& numbers, const mx::array& scale, const mx::array& base, int n,
                                      int iterations, double eps, Where s) {
  constexpr int kMostStreams = 64, kMostIterations = 1000;
  const int each = n < 1 || n > kMostStreams ? 0 : iterations > 0 ? (2 + n) * n : n;
  if (each == 0 || iterations < 0 || iterations > kMostIterations || numbers.ndim() != 2 || numbers.size() == 0 ||
      numbers.shape(1) != each || scale.shape() != mx::Shape{each} || base.shape() != scale.shape() ||
      numbers.dtype() != mx::float32 || scale.dtype() != mx::float32 || base.dtype() != mx::float32) {
    throw std::invalid_argument("numbers " + to_string(numbers) + " of " + std::to_string(n) + " streams, scale " +
                                to_string(scale) + " and base " + to_string(base) + " do not fit together");
  }
  if (!cpu::uses_kernels(numbers, s)) {
    return composed_weights(numbers, scale, base, n, iterations, eps, s);
  }
  const int rows = numbers.shape(0);
  auto body = [=, eps = float(eps)](const cpu::Memory& m) {
    const int64_t cost = int64_t(each) * (8 + 2 * iterations);
    cpu::parallel(rows, cpu::rows_per_piece(cost), [&](int64_t begin, int64_t end) {
      std::vector<float> x(size_t(each) + size_t(n) * size_t(n));
      for (int64_t i = begin; i < end; i++) {
        for (int j = 0; j < each; j++) {
          x[size_t(j)] = m.input<float>(0)[i * each + j] * m.input<float>(1)[j] + m.input<float>(2)[j];
        }
        for (int j = 0; j < n; j++) {
          m.output<float>(0)[i * n + j] = 1 / (1 + std::exp(-x[size_t(j)])) + eps;
        }
        if (iterations > 0) {
          for (int j = 0; j < n; j++) {
            m.output<float>(1)[i * n + j] = 2 / (1 + std::exp(-x[size_t(n + j)]));
          }
          mixing_weights(x.data() + 2 * n, n, iterations, eps, x.data() + each, m.output<float>(2) + i * n * n);
        }
      }
    });
  };
  std::vector<mx::Shape> shapes = {{rows, 1, n}};
  if (iterations > 0) {
    shapes.push_back({rows, n});
    shapes.push_back({rows, n, n});
  }
  std::vector<mx::Dtype> types(shapes.size(), mx::float32);
  return cpu::node("stream_weights", {numbers, scale, base}, std::move(shapes), std::move(types), s, std::move(body));
}

}  // namespace ingot
