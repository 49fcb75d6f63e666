// Compression of a sequence's rows, on the CPU.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "core/call.h"
#include "core/checks.h"
#include "cpu/matmul/matmul.h"
#include "cpu/node.h"
#include "cpu/rows/node.h"
#include "ops/matrix.h"
#include "ops/sparse/sparse.h"

namespace ingot {

namespace {

constexpr int kEntryScratch = 13;  // scratch slot

// A compressor: its values are the channels [at, at + width) of a row, and its gates the next ones.
struct Compressor {
  int at, width, dim;
};

struct CompressedRows {
  int row, rows;
  int64_t position, ring;         // ring: capacity
  std::vector<int64_t> capacity;  // of the entries of each compressor

  // The first position that an entry needs which the segment completes.
  int64_t needs(const CompressOptions& o) const {
    return std::max<int64_t>(0, position / o.rate * o.rate - (o.overlap ? o.rate : 0));
  }

  bool fits(const CompressOptions& o) const {
    const int64_t end = position + rows;
    const bool completes = end / o.rate > position / o.rate;
    return rows > 0 && rows <= ring && position >= 0 && (!completes || end - needs(o) <= ring) &&
           std::all_of(capacity.begin(), capacity.end(), [&](int64_t n) { return end / o.rate <= n; });
  }
};

struct Compression {
  CompressOptions o;
  int width = 0;  // of a row
  cpu::Type row_type = cpu::Type::f32, entry_type = cpu::Type::f32;
  std::vector<Compressor> compressors = {};
  std::vector<CompressedRows> segments = {};
  int pairs = 0;  // of the rope

  int outputs() const { return int(segments.size() * (1 + compressors.size())); }
};

bool is_storage(const mx::array& x, int width) {
  return x.ndim() == 4 && x.shape(0) == 1 && x.shape(1) == 1 && x.size() > 0 && x.shape(3) == width &&
         ingot::floating(x.dtype());
}

Compression parse_compression(const mx::array& x, const std::vector<mx::array>& rings,
                              const std::vector<mx::array>& entries, const std::vector<mx::array>& parts,
                              const std::vector<int>& segments, const std::optional<mx::array>& positions,
                              const CompressOptions& o) {
  auto fail = [](const std::string& why) { refuse("compress_rows: " + why); };
  if (x.ndim() != 2 || x.size() == 0 || !ingot::floating(x.dtype()) || o.rate < 1 || !(o.eps >= 0) ||
      parts.size() < 3 || parts.size() % 2 == 0) {
    fail("rows " + to_string(x) + " with " + std::to_string(parts.size()) + " parts for each " +
         std::to_string(o.rate));
  }
  Compression c{o, x.shape(1)};
  for (const auto& p : parts) {
    if (p.dtype() != mx::float32 || p.size() == 0 || p.ndim() < 1) {
      fail("the part " + to_string(p) + " is not float32");
    }
  }
  const auto& freqs = parts.back();
  c.pairs = freqs.ndim() == 1 ? freqs.shape(0) : -1;
  int at = 0;
  for (size_t i = 0; i + 1 < parts.size(); i += 2) {
    const auto &bias = parts[i], &weight = parts[i + 1];
    const int dim = weight.shape(0), width = o.overlap ? 2 * dim : dim;
    if (weight.ndim() != 1 || dim > 1 << 20 || bias.shape() != mx::Shape{o.rate, width} || c.pairs < 1 ||
        c.pairs > dim / 2) {
      fail("the bias " + to_string(bias) + ", the weight " + to_string(weight) + " and the frequencies " +
           to_string(freqs) + " do not fit together");
    }
    c.compressors.push_back({at, width, dim});
    at += 2 * width;
  }
  if (at != c.width || rings.empty() || segments.size() != 2 * rings.size() ||
      entries.size() != rings.size() * c.compressors.size()) {
    fail("rows " + to_string(x) + " of " + std::to_string(rings.size()) + " segments do not fit " +
         std::to_string(entries.size()) + " stores");
  }
  int64_t row = 0;
  for (size_t i = 0; i < rings.size(); i++) {
    if (!is_storage(rings[i], c.width) || rings[i].dtype() != rings[0].dtype()) {
      fail("the ring " + to_string(rings[i]) + " does not fit rows " + to_string(x));
    }
    CompressedRows r{int(row), segments[2 * i], segments[2 * i + 1], rings[i].shape(2), {}};
    for (size_t j = 0; j < c.compressors.size(); j++) {
      const auto& e = entries[i * c.compressors.size() + j];
      if (!is_storage(e, c.compressors[j].dim) || e.dtype() != entries[0].dtype()) {
        fail("entries " + to_string(e) + " have the wrong shape");
      }
      r.capacity.push_back(e.shape(2));
    }
    if (!r.fits(o)) {
      fail(std::to_string(r.rows) + " rows from position " + std::to_string(r.position) + " do not fit the storage");
    }
    row += r.rows;
    c.segments.push_back(std::move(r));
  }
  if (row != x.shape(0)) {
    fail("the segments have " + std::to_string(row) + " rows of " + std::to_string(x.shape(0)));
  }
  if (positions && (positions->dtype() != mx::int32 || positions->shape() != mx::Shape{x.shape(0)})) {
    fail("positions " + to_string(*positions) + " are not one int32 per row");
  }
  c.row_type = type_of(rings[0].dtype());
  c.entry_type = type_of(entries[0].dtype());
  return c;
}

// The memory of one compressor's part in an entry.
struct EntryParts {
  const char* ring;
  int64_t ring_capacity;
  const float *bias, *weight, *freqs;
};

// Makes the entry of positions [e * rate, (e + 1) * rate) and writes it to `to`.
void make_entry(const Compression& c, const Compressor& k, const EntryParts& p, int64_t e, char* to) {
  const int dim = k.dim, rate = c.o.rate;
  const int64_t size = c.row_type == cpu::Type::f32 ? 4 : 2;
  float* peak = cpu::scratch<float>(kEntryScratch, size_t(dim) * 5);
  float *total = peak + dim, *mean = total + dim, *value = mean + dim, *gate = value + dim;
  std::fill_n(peak, dim, -std::numeric_limits<float>::infinity());
  std::fill_n(total, 2 * dim, 0.0f);
  const auto& kernels = cpu::matmul_kernels();
  auto read = [&](int64_t position, int from, float* out) {
    kernels.widen(c.row_type, p.ring + (position % p.ring_capacity * c.width + from) * size, out, dim);
  };
  // Calls f with each position that counts, its place in the bias, and the first of its channels.
  auto each = [&](auto&& f) {
    const int own = c.o.overlap ? dim : 0;
    for (int j = 0; j < rate; j++) {
      if (c.o.overlap && e > 0) {
        f((e - 1) * rate + j, j, 0);
      }
      f(e * rate + j, j, own);
    }
  };
  auto read_gate = [&](int64_t position, int place, int from) {
    read(position, k.at + k.width + from, gate);
    const float* bias = p.bias + int64_t(place) * k.width + from;
    for (int i = 0; i < dim; i++) {
      gate[i] += bias[i];
    }
  };
  each([&](int64_t position, int place, int from) {
    read_gate(position, place, from);
    for (int i = 0; i < dim; i++) {
      peak[i] = std::max(peak[i], gate[i]);
    }
  });
  each([&](int64_t position, int place, int from) {
    read_gate(position, place, from);
    read(position, k.at + from, value);
    for (int i = 0; i < dim; i++) {
      const float weight = std::exp(gate[i] - peak[i]);
      total[i] += weight;
      mean[i] += weight * value[i];
    }
  });
  float squares = 0;
  for (int i = 0; i < dim; i++) {
    mean[i] /= total[i];
    squares += mean[i] * mean[i];
  }
  const float factor = 1 / std::sqrt(squares / float(dim) + c.o.eps);
  for (int i = 0; i < dim; i++) {
    mean[i] *= factor * p.weight[i];
  }
  float* pair = mean + dim - 2 * c.pairs;
  for (int j = 0; j < c.pairs; j++, pair += 2) {
    const float angle = float(e * rate) * p.freqs[j], a = pair[0], b = pair[1];
    const float sin = std::sin(angle) * c.o.scale, cos = std::cos(angle) * c.o.scale;
    pair[0] = a * cos - b * sin;
    pair[1] = a * sin + b * cos;
  }
  kernels.narrow(c.entry_type, mean, to, dim);
}

// Runs compress_rows. The inputs are rings, entries, parts, rows and positions; the outputs are rings and entries.
void run_compression(const Compression& c, const cpu::Memory& m, int at_positions) {
  const int rings = int(c.segments.size()), kinds = int(c.compressors.size()), at_parts = c.outputs();
  const int at_rows = at_parts + 2 * kinds + 1;
  const int64_t size = c.row_type == cpu::Type::f32 ? 4 : 2, bytes = c.width * size;
  struct Task {
    int segment, kind;
    int64_t entry;
  };
  std::vector<Task> tasks;
  for (int i = 0; i < rings; i++) {
    CompressedRows r = c.segments[size_t(i)];
    if (at_positions >= 0) {
      r.position = m.input<int32_t>(at_positions)[r.row];
    }
    if (!r.fits(c.o)) {
      throw std::out_of_range("compress_rows: " + std::to_string(r.rows) + " rows from position " +
                              std::to_string(r.position) + " do not fit the storage");
    }
    for (int64_t j = 0; j < r.rows; j++) {
      std::memcpy(m.output<char>(i) + (r.position + j) % r.ring * bytes, m.input<char>(at_rows) + (r.row + j) * bytes,
                  size_t(bytes));
    }
    for (int64_t e = r.position / c.o.rate; e < (r.position + r.rows) / c.o.rate; e++) {
      for (int kind = 0; kind < kinds; kind++) {
        tasks.push_back({i, kind, e});
      }
    }
  }
  cpu::parallel(int64_t(tasks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const Task& t = tasks[size_t(i)];
      const Compressor& k = c.compressors[size_t(t.kind)];
      const int part = at_parts + 2 * t.kind;
      const EntryParts p{m.output<char>(t.segment), c.segments[size_t(t.segment)].ring, m.input<float>(part),
                         m.input<float>(part + 1), m.input<float>(at_parts + 2 * kinds)};
      const int64_t entry = k.dim * int64_t(c.entry_type == cpu::Type::f32 ? 4 : 2);
      make_entry(c, k, p, t.entry, m.output<char>(rings + t.segment * kinds + t.kind) + t.entry * entry);
    }
  });
}

}  // namespace

std::vector<mx::array> compress_rows(const mx::array& x, const std::vector<mx::array>& rings,
                                     const std::vector<mx::array>& entries, const std::vector<mx::array>& parts,
                                     const std::vector<int>& segments, const std::vector<mx::array>& after,
                                     const std::optional<mx::array>& positions, const CompressOptions& o,
                                     mx::StreamOrDevice s) {
  if (!cpu::on_cpu(s)) {
    refuse("compress_rows: it runs on a CPU only");
  }
  auto c = parse_compression(x, rings, entries, parts, segments, positions, o);
  std::vector<mx::array> inputs = rings;
  inputs.insert(inputs.end(), entries.begin(), entries.end());
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> types;
  std::vector<cpu::Reuse> reuse;
  for (size_t i = 0; i < inputs.size(); i++) {
    shapes.push_back(inputs[i].shape());
    types.push_back(inputs[i].dtype());
    reuse.push_back({int(i), int(i), true});
  }
  inputs.insert(inputs.end(), parts.begin(), parts.end());
  inputs.push_back(mx::astype(x, rings[0].dtype(), s));
  const int at_positions = positions ? int(inputs.size()) : -1;
  if (positions) {
    inputs.push_back(*positions);
  }
  inputs.insert(inputs.end(), after.begin(), after.end());
  auto body = [c, at_positions](const cpu::Memory& memory) { run_compression(c, memory, at_positions); };
  return cpu::node("compress_rows", std::move(inputs), std::move(shapes), std::move(types), s, std::move(body),
                   std::move(reuse));
}

}  // namespace ingot
