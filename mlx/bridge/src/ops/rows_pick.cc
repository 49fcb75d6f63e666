// Rows of tables (embeddings), argmax, and the k largest elements of rows.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/rows.h"
#include "core/call.h"
#include "core/checks.h"
#include "cpu/rows/rows.h"
#include "cpu/rows/node.h"
#include "mlx/types/half_types.h"

namespace ingot {

namespace {

float as_type(double v, mx::Dtype d) {
  if (d == mx::float16) {
    return float(mx::float16_t(float(v)));
  }
  return d == mx::bfloat16 ? float(mx::bfloat16_t(float(v))) : float(v);
}

mx::array scaled(const mx::array& x, double scale, Where s) {
  return scale == 1 ? x : mx::multiply(x, mx::array(scale, x.dtype()), s);
}

mx::Shape rows_shape(const mx::array& ids, int dim) {
  auto shape = ids.shape();
  shape.push_back(dim);
  return shape;
}

void check_ids(const mx::array& table, const mx::array& ids) {
  if (table.ndim() != 2 || table.size() == 0 || !mx::issubdtype(ids.dtype(), mx::integer)) {
    throw std::invalid_argument("cannot take rows " + to_string(ids) + " of a table " + to_string(table));
  }
}

// Clamps ids to the table. Negative ids count from its end, as in MLX. For other ids out of range MLX would read past
// the table.
mx::array inside(const mx::array& ids, int64_t vocab, Where s) {
  auto wide = mx::astype(ids, mx::int64, s), n = mx::array(vocab, mx::int64);
  auto from_start = mx::where(mx::less(wide, mx::array(int64_t(0), mx::int64), s), mx::add(wide, n, s), wide, s);
  return mx::clip(from_start, mx::array(int64_t(0), mx::int64), mx::array(vocab - 1, mx::int64), s);
}

// Calls f(row of the table, address of the result row) for each id. With first the table is the part of a larger one
// that begins there, and the result rows of ids outside it are zeros.
template <class F>
void each_id(const cpu::Memory& m, int input, int64_t count, int64_t vocab, std::optional<int> first, int64_t dim,
             int64_t bytes, F&& f) {
  const int32_t* ids = m.input<int32_t>(input);
  cpu::parallel(count, cpu::rows_per_piece(dim), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      char* out = cpu::at(m.out[0], i * bytes);
      int64_t id = ids[i];
      if (first) {
        id -= *first;
        if (id < 0 || id >= vocab) {
          std::memset(out, 0, size_t(bytes));
          continue;
        }
      } else if (id < 0) {
        id += vocab;
      }
      f(std::clamp<int64_t>(id, 0, vocab - 1), out);
    }
  });
}

// What each_id does, as operations of MLX: pick returns rows of the table by indices that are inside it.
template <class F>
mx::array picked(const mx::array& ids, int64_t vocab, std::optional<int> first, Where s, F&& pick) {
  if (!first) {
    return pick(inside(ids, vocab, s));
  }
  auto at = mx::subtract(mx::astype(ids, mx::int64, s), mx::array(int64_t(*first), mx::int64), s);
  auto has = mx::logical_and(mx::greater_equal(at, mx::array(int64_t(0), mx::int64), s),
                             mx::less(at, mx::array(vocab, mx::int64), s), s);
  auto rows = pick(mx::where(has, at, mx::array(int64_t(0), mx::int64), s));
  return mx::where(mx::expand_dims(has, -1, s), rows, mx::array(0, rows.dtype()), s);
}

}  // namespace

mx::array table_rows(const mx::array& table, const mx::array& ids, std::optional<int> first, double scale, Where s) {
  check_ids(table, ids);
  if (!cpu::uses_kernels(table, s) || ids.size() == 0 || ids.ndim() > 7) {
    auto rows = picked(ids, table.shape(0), first, s, [&](const mx::array& at) { return mx::take(table, at, 0, s); });
    return scaled(rows, scale, s);
  }
  int type = cpu::type_index(table.dtype());
  int64_t vocab = table.shape(0), n = table.shape(1), bytes = n * int64_t(table.itemsize());
  float by = as_type(scale, table.dtype());
  auto body = [=, count = int64_t(ids.size())](const cpu::Memory& m) {
    auto run = cpu::row_kernels().scale[type];
    each_id(m, 1, count, vocab, first, n, bytes, [&](int64_t id, char* out) {
      const char* row = cpu::at(m.in[0], id * bytes);
      if (by == 1) {
        std::copy_n(row, bytes, out);
      } else {
        run(row, by, out, n);
      }
    });
  };
  return cpu::node("table_rows", {table, mx::astype(ids, mx::int32, s)}, {rows_shape(ids, int(n))}, {table.dtype()}, s,
                   std::move(body))[0];
}

namespace {

struct Format {
  cpu::Packing packing;
  int group, bits;  // the format's defaults
};

std::optional<Format> format_named(const std::string& name) {
  if (name == "affine") {
    return Format{cpu::Packing::affine, 64, 4};
  }
  if (name == "mxfp4") {
    return Format{cpu::Packing::mxfp4, 32, 4};
  }
  if (name == "mxfp8") {
    return Format{cpu::Packing::mxfp8, 32, 8};
  }
  if (name == "nvfp4") {
    return Format{cpu::Packing::nvfp4, 16, 4};
  }
  return std::nullopt;
}

}  // namespace

mx::array packed_table_rows(const mx::array& w, const mx::array& scales, const Optional& biases, const mx::array& ids,
                            std::optional<int> first, double scale, std::optional<int> group, std::optional<int> bits,
                            const std::string& format, mx::Dtype type, Where s) {
  packed(w, scales, group, bits, format);
  check_ids(w, ids);
  auto f = format_named(format);
  bool affine = f && f->packing == cpu::Packing::affine;
  if (f) {
    f->group = group.value_or(f->group);
    f->bits = bits.value_or(f->bits);
  }
  int64_t words = w.shape(1), n = f ? words * 32 / f->bits : 0;
  bool fits = f && n > 0 && n <= INT32_MAX && w.dtype() == mx::uint32 && n % f->group == 0 &&
              scales.shape(1) == n / f->group &&
              words * 32 == n * f->bits && affine == biases.has_value() &&
              (affine ? scales.dtype() == type && biases->dtype() == type && biases->shape() == scales.shape()
                      : scales.dtype() == mx::uint8);
  if (!fits || !cpu::has_kernels(type) || !cpu::on_cpu(s) || ids.size() == 0 || ids.ndim() > 7) {
    if (biases && biases->shape() != scales.shape()) {
      throw std::invalid_argument("scales " + to_string(scales) + " and biases " + to_string(*biases) +
                                  " have different shapes");
    }
    auto rows = picked(ids, w.shape(0), first, s, [&](const mx::array& at) {
      auto rows_of_biases = biases ? Optional(mx::take(*biases, at, 0, s)) : std::nullopt;
      return mx::dequantize(mx::take(w, at, 0, s), mx::take(scales, at, 0, s), rows_of_biases, group, bits, format,
                            std::nullopt, type, s);
    });
    return scaled(rows, scale, s);
  }
  std::vector<mx::array> inputs{w, scales, mx::astype(ids, mx::int32, s)};
  if (affine) {
    inputs.push_back(*biases);
  }
  int kind = cpu::type_index(type);
  int64_t vocab = w.shape(0), bytes = n * int64_t(type.size());
  cpu::PackedRow row{};
  row.packing = f->packing;
  row.bits = f->bits;
  row.group = f->group;
  row.n = n;
  row.multiplier = as_type(scale, type);
  int64_t row_scales = n / f->group * int64_t(scales.itemsize());
  auto body = [=, count = int64_t(ids.size())](const cpu::Memory& m) {
    auto run = cpu::row_kernels().unpack[kind];
    each_id(m, 2, count, vocab, first, n, bytes, [&](int64_t id, char* out) {
      auto r = row;
      r.codes = m.input<uint8_t>(0) + id * words * 4;
      r.scales = cpu::at(m.in[1], id * row_scales);
      r.biases = affine ? cpu::at(m.in[3], id * row_scales) : nullptr;
      r.out = out;
      run(r);
    });
  };
  return cpu::node("packed_table_rows", std::move(inputs), {rows_shape(ids, int(n))}, {type}, s, std::move(body))[0];
}

mx::array arg_max(const mx::array& x, int axis, bool keepdims, Where s) {
  bool last = x.ndim() >= 1 && (axis == -1 || axis == int(x.ndim()) - 1);
  if (!cpu::uses_kernels(x, s) || !last) {
    return mx::argmax(x, axis, keepdims, s);
  }
  int type = cpu::type_index(x.dtype());
  int64_t n = x.shape(-1), rows = int64_t(x.size()) / n, size = int64_t(x.itemsize());
  auto shape = x.shape();
  if (keepdims) {
    shape.back() = 1;
  } else {
    shape.pop_back();
  }
  auto body = [=](const cpu::Memory& m) {
    struct Found {
      float value;
      uint32_t at;
    };
    int64_t parts = (n + cpu::kPiece - 1) / cpu::kPiece;
    auto* found = cpu::scratch<Found>(cpu::kRowsScratch, size_t(rows * parts));
    auto run = cpu::row_kernels().largest[type];
    cpu::parallel(rows * parts, cpu::rows_per_piece(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        int64_t from = i % parts * cpu::kPiece;
        int64_t at = run(cpu::at(m.in[0], (i / parts * n + from) * size), std::min(cpu::kPiece, n - from),
                         &found[i].value);
        found[i].at = uint32_t(from + at);
      }
    });
    for (int64_t r = 0; r < rows; r++) {
      Found best = found[r * parts];
      for (int64_t i = 1; i < parts && !std::isnan(best.value); i++) {
        const Found& f = found[r * parts + i];
        best = f.value > best.value || std::isnan(f.value) ? f : best;
      }
      m.output<uint32_t>(0)[r] = best.at;
    }
  };
  return cpu::node("arg_max", {x}, {shape}, {mx::uint32}, s, std::move(body))[0];
}

namespace {

struct Candidate {
  float key;  // the value; infinity for NaN
  int32_t id;
};

bool before(const Candidate& a, const Candidate& b) { return a.key != b.key ? a.key > b.key : a.id < b.id; }

// Search finds the k largest elements of a row. The k-th largest of the blocks' maxima is at most the k-th largest
// element, so that only blocks whose maximum reaches this threshold need a second pass.
struct Search {
  int64_t n, k, size;
  int type;

  int64_t block() const { return std::clamp<int64_t>(n / (8 * k) / 16 * 16, 16, 256); }
  int64_t blocks() const { return (n + block() - 1) / block(); }

  void operator()(const void* row, void* values, uint32_t* ids) const {
    auto& kernels = cpu::row_kernels();
    int64_t b = block(), count = blocks();
    auto* peaks = cpu::scratch<float>(cpu::kRowsScratch, size_t(2 * count));
    cpu::parallel(count, std::max<int64_t>(1, cpu::kPiece / b), [&](int64_t begin, int64_t end) {
      kernels.block_peaks[type](cpu::at(row, begin * b * size), std::min(end * b, n) - begin * b, b, peaks + begin);
    });
    float threshold = -INFINITY;
    if (count > k) {
      float* order = peaks + count;
      std::copy_n(peaks, count, order);
      std::nth_element(order, order + k - 1, order + count, std::greater<float>());
      threshold = order[k - 1];
    }
    auto* found = cpu::scratch<Candidate>(cpu::kRowsScratch + 1, size_t(n));
    int64_t candidates = 0;
    float keys[256];
    int32_t at[256];
    for (int64_t i = 0; i < count; i++) {
      if (peaks[i] < threshold) {
        continue;
      }
      int64_t got = kernels.not_below[type](cpu::at(row, i * b * size), std::min(b, n - i * b), threshold,
                                            int32_t(i * b), keys, at);
      for (int64_t j = 0; j < got; j++) {
        found[candidates++] = {std::isnan(keys[j]) ? INFINITY : keys[j], at[j]};
      }
    }
    if (candidates > 4 * k) {
      std::nth_element(found, found + k, found + candidates, before);
      candidates = k;
    }
    std::partial_sort(found, found + k, found + candidates, before);
    for (int64_t i = 0; i < k; i++) {
      ids[i] = uint32_t(found[i].id);
      std::copy_n(cpu::at(row, found[i].id * size), size, cpu::at(values, i * size));
    }
  }
};

}  // namespace

std::vector<mx::array> largest(const mx::array& x, int k, Where s) {
  if (x.ndim() < 1 || k < 1 || k > x.shape(-1)) {
    throw std::invalid_argument("cannot take the " + std::to_string(k) + " largest of " + to_string(x));
  }
  if (!cpu::uses_kernels(x, s)) {
    not_empty(x);
    auto order = mx::slice(mx::argsort(mx::negative(x, s), -1, s), [&] { return mx::Shape(x.ndim(), 0); }(),
                           [&] {
                             auto stop = x.shape();
                             stop.back() = k;
                             return stop;
                           }(), s);
    return {mx::take_along_axis(x, order, -1, s), order};
  }
  auto shape = x.shape();
  shape.back() = k;
  int64_t n = x.shape(-1), rows = int64_t(x.size()) / n;
  Search search{n, k, int64_t(x.itemsize()), cpu::type_index(x.dtype())};
  auto body = [=](const cpu::Memory& m) {
    cpu::parallel(rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        search(cpu::at(m.in[0], r * n * search.size), cpu::at(m.out[0], r * k * search.size),
               m.output<uint32_t>(1) + r * k);
      }
    });
  };
  return cpu::node("largest", {x}, {shape, shape}, {x.dtype(), mx::uint32}, s, std::move(body));
}

}  // namespace ingot
