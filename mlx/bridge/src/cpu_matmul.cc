#include "cpu_matmul.h"

#include <algorithm>
#include <vector>

#include "cpu.h"
#include "cpu_scratch.h"
#include "cpu_team.h"

namespace ingot::cpu {

extern const MatmulKernels matmul_portable;
#if defined(__x86_64__)
extern const MatmulKernels matmul_avx2;
extern const MatmulKernels matmul_avx512;
#elif defined(__aarch64__)
extern const MatmulKernels matmul_neon;
#endif

const MatmulKernels& matmul_kernels() {
  static const Choice<MatmulKernels> choice = {
      .portable = &matmul_portable,
#if defined(__x86_64__)
      .avx2 = &matmul_avx2,
      .avx512 = &matmul_avx512,
#elif defined(__aarch64__)
      .neon = &matmul_neon,
#endif
  };
  return choice.get();
}

namespace {

// The slots of scratch memory that products use.
constexpr int kData = 0, kScales = 1, kWide = 2, kResult = 3;

// More rows than this gain from unpacking weights only once.
constexpr int64_t kFew = 16;

// Bytes of weights that a thread takes at once: what fetches memory ahead starts anew with each piece, and nobody ends before
// the last one does.
constexpr int64_t kMost = 1 << 20, kLeast = 16 << 10;

// Elements of activations that a thread arranges at once, at least.
constexpr int64_t kArranged = 16384;

// How x meets these weights.
Layout layout_for(const Weights& w, Type type, int64_t rows, bool fast) {
  const auto& k = matmul_kernels();
  Layout l;
  if (w.format != Format::plain) {
    l.block = std::min(w.group, kStep);
  }
  bool codes = w.format == Format::affine || w.format == Format::fp4;
  // Integers of 16 bits are as good as float32 where the result is rounded to 16 bits.
  if (k.integers && codes && (fast || type != Type::f32)) {
    bool fits = !k.saturates || w.bits < 8;
    bool row_of_bytes = rows == 1 && w.bits != 4;  // memory decides there
    l.mode = fast && fits && !row_of_bytes ? Mode::i8 : Mode::i16;
    l.nibbles = w.bits == 4;
  }
  bool one = w.format == Format::plain || l.mode != Mode::f32 || (k.integers && w.format == Format::fp8);
  l.vector = rows == 1 && one;
  if (k.streams && rows > 1 && rows <= k.stream_rows && l.mode != Mode::f32 && k.streams(w)) {
    l.vector = true;
  }
  l.few = !l.vector && rows > 1 && rows <= kFew && l.mode != Mode::f32 && k.few_tile > 0;
  return l;
}

size_t size_of(Type t) { return t == Type::f32 ? 4 : 2; }

// Buffers for one or more layouts of the same rows.
struct Arranged {
  std::vector<Activations> list;

  const Activations* find(const Layout& l) const {
    for (const auto& a : list) {
      if (a.layout == l) {
        return &a;
      }
    }
    return nullptr;
  }
};

size_t aligned(size_t n) { return (n + 63) / 64 * 64; }

int rows_per_block(const Layout& l) {
  const auto& k = matmul_kernels();
  return l.vector ? 1 : l.mode == Mode::f32 ? k.float_rows : k.integer_rows;
}

// Activation rows of a piece: whole blocks of them.
int64_t row_block(const Layout& l) { return kRowBlock / rows_per_block(l) * rows_per_block(l); }

size_t data_bytes(const Layout& l, int64_t rows, int64_t padded) {
  return aligned(size_t(rows * padded) * (l.mode == Mode::f32 ? 4 : l.mode == Mode::i16 ? 2 : 1));
}

// Arranges n rows as the block that begins at row m.
template <class Row>
void arrange_block(const Activations& a, int n, int64_t m, int64_t columns, Type type, Row row) {
  const auto& k = matmul_kernels();
  auto wide = scratch<float>(kWide, size_t(columns));
  for (int r = 0; r < n; r++) {
    const float* x = wide;
    if (type == Type::f32) {
      x = static_cast<const float*>(row(r));
    } else {
      k.widen(type, row(r), wide, columns);
    }
    k.arrange(a, x, columns, m, r, n);
  }
}

// Multiplies rows [m0, m1) with weight rows [n0, n1) and gives each row's results to put(m, n, floats, count).
template <class Put>
void multiply_range(const Weights& w, const Activations& a, int64_t n0, int64_t n1, int64_t m0, int64_t m1, Put put) {
  const auto& k = matmul_kernels();
  if (a.layout.vector) {
    auto result = scratch<float>(kResult, size_t((m1 - m0) * (n1 - n0)));
    k.row_product(w, a, n0, n1, result);
    for (int64_t m = m0; m < m1; m++) {
      put(m, n0, result + (m - m0) * (n1 - n0), n1 - n0);
    }
    return;
  }
  const int tile = a.layout.few ? k.few_tile : k.tile;
  auto product = a.layout.few ? k.few_product : k.tile_product;
  auto result = scratch<float>(kResult, size_t(m1 - m0) * size_t(tile));
  for (int64_t n = n0; n < n1; n += tile) {
    product(w, a, n, m0, m1, result);
    for (int64_t m = m0; m < m1; m++) {
      put(m, n, result + (m - m0) * tile, std::min<int64_t>(tile, n1 - n));
    }
  }
}

// Arranges rows, given by pointers or by a stride, in all of the layouts.
template <class Row>
Arranged arrange(Row row, Type type, int64_t rows, int64_t columns, const std::vector<Layout>& layouts) {
  int64_t padded = (columns + kStep - 1) / kStep * kStep;
  size_t data = 0, numbers = 0;
  for (const auto& l : layouts) {
    data += data_bytes(l, rows, padded);
    numbers += 2 * size_t(rows * (padded / l.block));
  }
  auto bytes = scratch<uint8_t>(kData, data);
  auto floats = scratch<float>(kScales, numbers);
  Arranged out;
  for (const auto& l : layouts) {
    Activations a{.layout = l, .rows = rows, .columns = padded, .data = bytes, .scales = floats, .sums = nullptr};
    a.sums = floats + rows * (padded / l.block);
    floats = a.sums + rows * (padded / l.block);
    bytes += data_bytes(l, rows, padded);
    out.list.push_back(a);
  }
  for (const auto& a : out.list) {
    int most = rows_per_block(a.layout);
    // A piece is whole blocks.
    int64_t blocks = (rows + most - 1) / most, grain = std::max<int64_t>(1, kArranged / (padded * most));
    parallel(blocks, grain, [&](int64_t b0, int64_t b1) {
      for (int64_t b = b0; b < b1; b++) {
        int64_t m = b * most;
        arrange_block(a, int(std::min<int64_t>(most, rows - m)), m, columns, type, [&](int r) { return row(m + r); });
      }
    });
  }
  return out;
}

void add_layout(std::vector<Layout>& list, const Layout& l) {
  if (std::find(list.begin(), list.end(), l) == list.end()) {
    list.push_back(l);
  }
}

// A part of the work: a range of weight rows (and, for tiles, one block of activation rows) of one product.
struct Range {
  int product;
  int64_t n0, n1, m0, m1;
};

// Parts that grow smaller towards the end, so that all threads end together.
class Cut {
 public:
  // bytes of weights, all in all; ranges is emptied, and keeps its memory from one product to the next.
  Cut(int64_t bytes, std::vector<Range>& ranges) : ranges_(ranges), left_(bytes), share_(2 * Team::instance().size()) { ranges_.clear(); }

  // Adds the parts of all rows of a matrix, for activation rows [0, rows) by blocks.
  void add(int product, const Weights& w, int64_t rows, int64_t block) {
    const int64_t tile = matmul_kernels().tile, row = std::max<int64_t>(1, w.row_bytes());
    for (int64_t n = 0; n < w.rows;) {
      int64_t grain = std::clamp(left_ / share_, kLeast, kMost) / row;
      if (rows > kFew) {
        grain = 4 * tile;  // an unpacked tile serves many rows
      }
      // Whole tiles: results of a part fill whole cache lines, which two threads must not share.
      int64_t n1 = std::min(n + std::max<int64_t>(1, (grain + tile / 2) / tile) * tile, w.rows);
      for (int64_t m = 0; m < rows; m += block) {
        ranges_.push_back({product, n, n1, m, std::min(m + block, rows)});
      }
      left_ -= (n1 - n) * row;
      n = n1;
    }
  }

 private:
  std::vector<Range>& ranges_;
  int64_t left_, share_;
};

std::vector<Range>& all_ranges() {
  static thread_local std::vector<Range> ranges;
  return ranges;
}

}  // namespace

void multiply(const void* x, Type type, int64_t rows, int64_t columns, const Product* products, int count, bool fast) {
  const auto& k = matmul_kernels();
  std::vector<Layout> layouts, of(count);
  for (int i = 0; i < count; i++) {
    of[i] = layout_for(products[i].weights, type, rows, fast);
    add_layout(layouts, of[i]);
  }
  auto row = [&](int64_t m) -> const void* { return static_cast<const uint8_t*>(x) + size_t(m * columns) * size_of(type); };
  Arranged a = arrange(row, type, rows, columns, layouts);

  int64_t bytes = 0;
  for (int i = 0; i < count; i++) {
    bytes += products[i].weights.rows * products[i].weights.row_bytes();
  }
  auto& ranges = all_ranges();
  Cut cut(bytes, ranges);
  for (int i = 0; i < count; i++) {
    cut.add(i, products[i].weights, rows, row_block(of[i]));
  }
  parallel(int64_t(ranges.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      const Range& r = ranges[size_t(i)];
      const Product& p = products[r.product];
      size_t size = size_of(p.type);
      multiply_range(p.weights, *a.find(of[size_t(r.product)]), r.n0, r.n1, r.m0, r.m1,
                     [&](int64_t m, int64_t n, float* from, int64_t count) {
                       for (int64_t i = 0; p.added && i < count; i++) {
                         from[i] += p.added[n + i];
                       }
                       k.narrow(p.type, from, static_cast<uint8_t*>(p.y) + size_t(m * p.weights.rows + n) * size, count);
                     });
    }
  });
}

void multiply_gathered(const Gathered& g, bool fast) {
  if (g.rows == 0) {
    return;
  }
  const auto& k = matmul_kernels();
  // Rows of one expert side by side.
  std::vector<int64_t> order(size_t(g.rows));
  for (int64_t i = 0; i < g.rows; i++) {
    order[size_t(i)] = i;
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return g.expert[a] < g.expert[b]; });

  const Weights& one = g.weights;
  size_t codes = size_t(one.rows * one.row_bytes());
  size_t scale = one.format == Format::plain ? 0
                 : one.scale_type == ScaleType::f32 ? 4
                 : one.scale_type == ScaleType::f16 || one.scale_type == ScaleType::bf16 ? 2 : 1;
  size_t scales = one.format == Format::plain ? 0 : size_t(one.rows * one.groups()) * scale;
  auto matrix = [&](uint32_t e) {
    Weights w = one;
    w.codes += codes * e;
    w.scales = static_cast<const uint8_t*>(one.scales) + scales * e;
    if (one.biases) {
      w.biases = static_cast<const uint8_t*>(one.biases) + scales * e;
    }
    return w;
  };

  // Runs of an expert; each is a product of its own, whose activations begin a new block.
  std::vector<std::pair<int64_t, int64_t>> runs;
  for (int64_t i = 0; i < g.rows;) {
    int64_t j = i + 1;
    while (j < g.rows && g.expert[order[size_t(j)]] == g.expert[order[size_t(i)]]) {
      j++;
    }
    runs.push_back({i, j});
    i = j;
  }
  int64_t padded = (one.columns + kStep - 1) / kStep * kStep;
  auto bytes = scratch<uint8_t>(kData, size_t(g.rows * padded) * 4);
  int64_t per = padded / layout_for(one, g.type, 1, fast).block;
  auto floats = scratch<float>(kScales, 2 * size_t(g.rows * per));
  std::vector<Activations> acts(runs.size());
  for (size_t i = 0; i < runs.size(); i++) {
    auto [a, b] = runs[i];
    Layout l = layout_for(one, g.type, b - a, fast);
    acts[i] = {.layout = l, .rows = b - a, .columns = padded, .data = bytes + size_t(a * padded) * 4,
               .scales = floats + a * per, .sums = floats + (g.rows + a) * per};
  }
  // One row that goes to several experts is arranged once.
  const void* x = g.x[0];
  const bool same = int64_t(runs.size()) == g.rows && std::all_of(g.x, g.x + g.rows, [&](const void* p) { return p == x; });
  if (same) {
    std::fill(acts.begin() + 1, acts.end(), acts[0]);
  }
  const int64_t count = int64_t(runs.size()), grain = std::max<int64_t>(1, kArranged * count / (padded * g.rows));
  parallel(same ? 1 : count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      const Activations& a = acts[size_t(i)];
      int64_t at = runs[size_t(i)].first;
      int block = rows_per_block(a.layout);
      for (int64_t m = 0; m < a.rows; m += block) {
        arrange_block(a, int(std::min<int64_t>(block, a.rows - m)), m, one.columns, g.type,
                      [&](int r) { return g.x[order[size_t(at + m + r)]]; });
      }
    }
  });

  auto& ranges = all_ranges();
  Cut cut(int64_t(codes) * int64_t(runs.size()), ranges);
  for (size_t i = 0; i < runs.size(); i++) {
    cut.add(int(i), one, acts[i].rows, row_block(acts[i].layout));
  }
  size_t size = size_of(g.type);
  parallel(int64_t(ranges.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      const Range& r = ranges[size_t(i)];
      const Activations& a = acts[size_t(r.product)];
      int64_t at = runs[size_t(r.product)].first;
      Weights w = matrix(g.expert[order[size_t(at)]]);
      multiply_range(w, a, r.n0, r.n1, r.m0, r.m1, [&](int64_t m, int64_t n, const float* from, int64_t count) {
        k.narrow(g.type, from, static_cast<uint8_t*>(g.y[order[size_t(at + m)]]) + size_t(n) * size, count);
      });
    }
  });
}

}  // namespace ingot::cpu
