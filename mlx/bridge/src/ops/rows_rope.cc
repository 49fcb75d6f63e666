// Rotary position embedding (rope).
#include <algorithm>

#include "ops/rows.h"
#include "core/call.h"
#include "cpu/rows/rows.h"
#include "cpu/rows/node.h"
#include "mlx/fast.h"

namespace ingot {

namespace {

// Returns the frequencies base^(-2j/dims), computed as in MLX 0.32.4 (fast.cpp, rope): the same bits give the same
// angles.
mx::array frequencies(int dims, double base, Where s) {
  int half = dims / 2;
  auto powers = mx::arange(0, -half, -1, mx::float32, s);
  return mx::exp(mx::multiply(powers, mx::array(float(std::log(base) / half)), s), s);
}

// MLX's rope of [B, ..., T, D] as a node. offsets has one element, or B.
mx::array roped(const mx::array& x, const mx::array& offsets, const mx::array& freqs, int dims, bool traditional,
                double scale, Where s) {
  int type = cpu::type_index(x.dtype());
  int64_t n = x.shape(-1), steps = x.shape(-2), rows = int64_t(x.size()) / n, bytes = n * int64_t(x.itemsize());
  int64_t batch = x.shape(0), heads = rows / batch / steps, half = dims / 2;
  bool many = offsets.size() > 1;
  auto body = [=](const cpu::Memory& m) {
    auto& kernels = cpu::row_kernels();
    // A piece is a number of (batch row, step) pairs, whose heads share the angles.
    cpu::parallel(batch * steps, cpu::rows_per_piece(n * heads), [&](int64_t begin, int64_t end) {
      auto* positions = cpu::scratch<float>(cpu::kRowsScratch, size_t(3 * half));
      float *cos = positions + half, *sin = cos + half;
      for (int64_t i = begin; i < end; i++) {
        int64_t b = i / steps, t = i % steps;
        std::fill_n(positions, half, (float(t) + float(m.input<int32_t>(1)[many ? b : 0])) * float(scale));
        kernels.angles(m.input<float>(2), positions, half, 1, cos, sin);
        for (int64_t h = 0; h < heads; h++) {
          int64_t o = ((b * heads + h) * steps + t) * bytes;
          kernels.rotate[type](cpu::at(m.in[0], o), cpu::at(m.out[0], o), n, half, traditional, cos, sin);
        }
      }
    });
  };
  return cpu::node("rope", {x, offsets, freqs}, {x.shape()}, {x.dtype()}, s, std::move(body), {{0, 0, false}})[0];
}

bool ropes(const mx::array& x, int dims, Where s) {
  return cpu::uses_kernels(x, s) && x.ndim() >= 3 && dims > 0 && dims % 2 == 0 && dims <= x.shape(-1);
}

bool periods_fit(const mx::array& periods, int dims) { return periods.ndim() == 1 && periods.shape(0) == dims / 2; }

mx::array offset_array(int offset) { return mx::array({offset}, {1}, mx::int32); }

}  // namespace

mx::array rope(const mx::array& x, int dims, bool traditional, double base, double scale, int offset, Where s) {
  if (!ropes(x, dims, s)) {
    return mx::fast::rope(x, dims, traditional, float(base), float(scale), offset, std::nullopt, s);
  }
  return roped(x, offset_array(offset), frequencies(dims, base, s), dims, traditional, scale, s);
}

mx::array rope_periods(const mx::array& x, const mx::array& periods, int dims, bool traditional, double scale,
                       int offset, Where s) {
  if (!ropes(x, dims, s) || !periods_fit(periods, dims)) {
    return mx::fast::rope(x, dims, traditional, std::nullopt, float(scale), offset, periods, s);
  }
  auto freqs = mx::reciprocal(mx::astype(periods, mx::float32, s), s);
  return roped(x, offset_array(offset), freqs, dims, traditional, scale, s);
}

mx::array rope_offsets(const mx::array& x, const mx::array& offsets, const mx::array& periods, int dims,
                       bool traditional, double scale, Where s) {
  bool fit = offsets.ndim() <= 1 && mx::issubdtype(offsets.dtype(), mx::integer) &&
             (offsets.size() == 1 || (x.ndim() > 0 && offsets.size() == size_t(x.shape(0))));
  if (!ropes(x, dims, s) || !periods_fit(periods, dims) || !fit) {
    return mx::fast::rope(x, dims, traditional, std::nullopt, float(scale), offsets, periods, s);
  }
  auto freqs = mx::reciprocal(mx::astype(periods, mx::float32, s), s);
  return roped(x, mx::astype(offsets, mx::int32, s), freqs, dims, traditional, scale, s);
}

namespace {

// Returns for each of the half pairs which row of positions it uses (Qwen 3.5: time, height, width).
std::vector<int> components(int half, int rows, const std::vector<int>& sections, bool interleaved) {
  std::vector<int> of(size_t(half), 0);
  if (rows == 1) {
    return of;
  }
  int64_t covered = 0;
  for (int size : sections) {
    if (size < 0) {
      throw std::invalid_argument("a section of " + std::to_string(size) + " pairs is negative");
    }
    covered += size;
  }
  if (int(sections.size()) != rows || covered != half) {
    throw std::invalid_argument(std::to_string(sections.size()) + " sections of " + std::to_string(covered) +
                                " pairs for " +
                                std::to_string(rows) + " rows of positions and " + std::to_string(half) + " pairs");
  }
  if (!interleaved) {
    int j = 0;
    for (int c = 0; c < rows; c++) {
      for (int i = 0; i < sections[size_t(c)]; i++) {
        of[size_t(j++)] = c;
      }
    }
    return of;
  }
  for (int64_t j = 0; j < half; j++) {
    int c = int(j % rows);
    of[size_t(j)] = c > 0 && j < int64_t(rows) * sections[size_t(c)] ? c : 0;
  }
  return of;
}

// rotate_rows composed of MLX's operations.
std::vector<mx::array> rotated(const std::vector<mx::array>& xs, const mx::array& positions, const mx::array& freqs,
                               bool traditional, double scale, const std::vector<int>& component, int half, Where s) {
  auto p = mx::astype(positions, mx::float32, s);
  auto spread = p.ndim() == 1 ? mx::expand_dims(p, 1, s)
                              : mx::transpose(mx::take(p, mx::array(component.data(), {half}, mx::int32), 0, s), s);
  auto angle = mx::expand_dims(mx::multiply(spread, freqs, s), 1, s);  // [T, 1, half]
  auto factor = mx::array(float(scale));
  auto cos = mx::multiply(mx::cos(angle, s), factor, s), sin = mx::multiply(mx::sin(angle, s), factor, s);
  std::vector<mx::array> out;
  for (const auto& x : xs) {
    auto parts = mx::split(mx::astype(x, mx::float32, s), mx::Shape{2 * half}, -1, s);
    auto pairs = traditional ? mx::reshape(parts[0], {x.shape(0), x.shape(1), half, 2}, s) : parts[0];
    auto ab = mx::split(pairs, 2, -1, s);
    for (auto& a : ab) {
      a = mx::reshape(a, {x.shape(0), x.shape(1), half}, s);
    }
    auto first = mx::subtract(mx::multiply(ab[0], cos, s), mx::multiply(ab[1], sin, s), s);
    auto second = mx::add(mx::multiply(ab[1], cos, s), mx::multiply(ab[0], sin, s), s);
    auto both = traditional ? mx::reshape(mx::stack({first, second}, -1, s), parts[0].shape(), s)
                            : mx::concatenate({first, second}, -1, s);
    out.push_back(mx::astype(mx::concatenate({both, parts[1]}, -1, s), x.dtype(), s));
  }
  return out;
}

// Returns the periods, 1/freqs, that MLX's rope takes. The layers and steps of a model share frequencies, so those of
// the last few calls are kept. They hold on to the frequencies, whose identity is therefore not used again.
mx::array periods_of(const mx::array& freqs, Where s) {
  struct Kept {
    mx::array freqs, periods;
  };
  constexpr size_t most = 4;
  static thread_local auto& kept = *new std::vector<Kept>;  // not freed: the device may be gone when the thread ends
  for (const Kept& k : kept) {
    if (k.freqs.id() == freqs.id()) {
      return k.periods;
    }
  }
  if (kept.size() == most) {
    kept.erase(kept.begin());
  }
  kept.push_back({freqs, mx::reciprocal(freqs, s)});
  return kept.back().periods;
}

// Reports whether MLX's kernel rotates x [rows, heads, channels] by half pairs. Its blocks have up to 1024 threads:
// pairs in one direction, and rows' quarters of heads in another, where CUDA takes at most 64. Few pairs lead to more.
bool launches(const mx::array& x, int half) {
  return half >= 16 || x.shape(0) * ((x.shape(1) + int64_t(3)) / 4) < 128;
}

// rotate_rows by MLX's rope: one kernel for an array instead of about fifteen. A row is a batch of its own, with its
// position as the offset.
std::vector<mx::array> rotated_at_once(const std::vector<mx::array>& xs, const mx::array& positions,
                                       const mx::array& freqs, bool traditional, int half, Where s) {
  auto periods = periods_of(freqs, s);
  std::vector<mx::array> out;
  for (const auto& x : xs) {
    auto y = mx::fast::rope(mx::expand_dims(x, 2, s), 2 * half, traditional, std::nullopt, 1, positions, periods, s);
    out.push_back(mx::squeeze(y, 2, s));
  }
  return out;
}

}  // namespace

std::vector<mx::array> rotate_rows(std::vector<mx::array> xs, const HeadNorms& norms, const mx::array& positions,
                                   const mx::array& freqs, bool traditional, bool interleaved, double scale,
                                   const std::vector<int>& sections, Where s) {
  if (xs.empty() || positions.ndim() < 1 || positions.ndim() > 2 || positions.size() == 0 ||
      !mx::issubdtype(positions.dtype(), mx::integer) || freqs.ndim() != 1 || freqs.dtype() != mx::float32) {
    throw std::invalid_argument("cannot rotate " + std::to_string(xs.size()) + " arrays by positions " +
                                to_string(positions) +
                                " and frequencies " + to_string(freqs));
  }
  int half = freqs.shape(0), rows = positions.ndim() == 2 ? positions.shape(0) : 1, count = positions.shape(-1);
  auto component = components(half, rows, sections, interleaved);
  if (!norms.weights.empty() && norms.weights.size() != xs.size()) {
    throw std::invalid_argument("weights for " + std::to_string(norms.weights.size()) + " norms, but " +
                                std::to_string(xs.size()) + " arrays");
  }
  bool all_ours = half > 0;
  for (size_t i = 0; i < norms.weights.size(); i++) {
    const auto& w = norms.weights[i];
    all_ours = all_ours && w.dtype() == xs[i].dtype() && w.ndim() == 1 && w.shape(0) == xs[i].shape(-1);
  }
  for (const auto& x : xs) {
    if (x.ndim() != 3 || x.shape(0) != count || 2 * int64_t(half) > x.shape(2) ||
        !mx::issubdtype(x.dtype(), mx::floating)) {
      throw std::invalid_argument(to_string(x) + " is not [" + std::to_string(count) + ", heads, " +
                                  std::to_string(2 * half) +
                                  " or more]");
    }
    all_ours = all_ours && cpu::uses_kernels(x, s);
  }
  if (!all_ours) {
    for (size_t i = 0; i < norms.weights.size(); i++) {
      xs[i] = norms.plus_one ? rms_norm_plus_one(xs[i], norms.weights[i], norms.eps, s)
                             : rms_norm(xs[i], norms.weights[i], norms.eps, s);
    }
    if (half == 0) {
      return xs;
    }
    bool fit = std::all_of(xs.begin(), xs.end(),
                           [=](const auto& x) { return cpu::has_kernels(x.dtype()) && launches(x, half); });
    if (!cpu::on_cpu(s) && fit && positions.ndim() == 1 && scale == 1) {
      return rotated_at_once(xs, positions, freqs, traditional, half, s);
    }
    return rotated(xs, positions, freqs, traditional, scale, component, half, s);
  }

  struct Part {
    int64_t heads, n, bytes;
    int type;
  };
  std::vector<Part> parts;
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> types;
  std::vector<cpu::Reuse> reuse;
  int64_t row = 0;
  for (const auto& x : xs) {
    reuse.push_back({int(parts.size()), int(parts.size()), false});
    parts.push_back({x.shape(1), x.shape(2), x.shape(2) * int64_t(x.itemsize()), cpu::type_index(x.dtype())});
    shapes.push_back(x.shape());
    types.push_back(x.dtype());
    row += int64_t(x.shape(1)) * x.shape(2);
  }
  xs.push_back(mx::astype(positions, mx::int32, s));
  xs.push_back(freqs);
  xs.insert(xs.end(), norms.weights.begin(), norms.weights.end());
  auto body = [=, normed = !norms.weights.empty(), eps = float(norms.eps), offset = float(norms.plus_one),
               component = std::move(component)](const cpu::Memory& m) {
    auto& kernels = cpu::row_kernels();
    const int32_t* at_row = m.input<int32_t>(int(parts.size()));
    const float* f = m.input<float>(int(parts.size()) + 1);
    cpu::parallel(count, cpu::rows_per_piece(row), [&](int64_t begin, int64_t end) {
      auto* position = cpu::scratch<float>(cpu::kRowsScratch, size_t(3 * half));
      float *cos = position + half, *sin = cos + half;
      for (int64_t t = begin; t < end; t++) {
        for (int j = 0; j < half; j++) {
          position[j] = float(at_row[component[size_t(j)] * int64_t(count) + t]);
        }
        kernels.angles(f, position, half, float(scale), cos, sin);
        for (size_t i = 0; i < parts.size(); i++) {
          const auto& p = parts[i];
          for (int64_t o = t * p.heads * p.bytes; o < (t + 1) * p.heads * p.bytes; o += p.bytes) {
            const char* x = cpu::at(m.in[i], o);
            char* y = cpu::at(m.out[i], o);
            if (normed) {
              cpu::Norm r{};
              r.x = x;
              r.weight = m.in[parts.size() + 2 + i];
              r.offset = offset;
              r.eps = eps;
              r.out = y;
              r.n = p.n;
              kernels.rms_norm[p.type](r);
              x = y;
            }
            kernels.rotate[p.type](x, y, p.n, half, traditional, cos, sin);
          }
        }
      }
    });
  };
  return cpu::node("rotate_rows", std::move(xs), std::move(shapes), std::move(types), s, std::move(body),
                   std::move(reuse));
}

}  // namespace ingot
