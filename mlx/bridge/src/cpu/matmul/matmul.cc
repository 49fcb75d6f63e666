#include "cpu/matmul/matmul.h"

#include <algorithm>
#include <vector>

#include "cpu/isa.h"
#include "cpu/matmul/work.h"

namespace ingot::cpu {

extern const MatmulKernels matmul_portable;
#if defined(__x86_64__)
extern const MatmulKernels matmul_avx2;
#elif defined(__aarch64__)
extern const MatmulKernels matmul_neon;
#endif

#if defined(IG_HAS_AVX512)
extern const MatmulKernels matmul_avx512;
void unpacking_row_product_avx512(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y);
void bf16_tile_product_avx512(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y,
                              const RowsCallback& done);

namespace {

// These are made here, in a unit that any processor can run.
const MatmulKernels products_avx512vbmi = [] {
  MatmulKernels k = matmul_avx512;
  k.row_product = [](const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
    const bool unpacks = has_integers(x.layout.mode) && (w.bits == 3 || w.bits == 5 || w.bits == 6);
    (unpacks ? unpacking_row_product_avx512 : matmul_avx512.row_product)(w, x, n0, n1, y);
  };
  return k;
}();
const MatmulKernels products_avx512bf16 = [] {
  MatmulKernels k = __builtin_cpu_supports("avx512vbmi") ? products_avx512vbmi : matmul_avx512;
  k.bf16_tile_product = bf16_tile_product_avx512;
  return k;
}();
const MatmulKernels products_zen4 = [] {
  MatmulKernels k = products_avx512bf16;
  k.winograd = true;
  return k;
}();

}  // namespace
#endif

const MatmulKernels& matmul_kernels() {
  static const Choice<MatmulKernels> choice = {
      .portable = &matmul_portable,
#if defined(__x86_64__)
      .avx2 = &matmul_avx2,
#endif
#if defined(IG_HAS_AVX512)
      .avx512 = &matmul_avx512,
      .avx512vbmi = &products_avx512vbmi,
      .avx512bf16 = &products_avx512bf16,
      .zen4 = &products_zen4,
#endif
#if defined(__aarch64__)
      .neon = &matmul_neon,
#endif
  };
  return choice.get();
}

Layout layout_for(const Weights& w, Type type, int64_t rows, bool fast) {
  const auto& k = matmul_kernels();
  Layout l;
  if (w.format != Format::plain) {
    l.block = std::min(w.group, kStep);
  }
  bool codes = w.format == Format::affine || w.format == Format::fp4;
  // int16 activations are as exact as float32 if the result is rounded to 16 bits.
  if (k.integers && codes && (fast || type != Type::f32)) {
    bool fits = !k.saturates || w.bits < 8;
    bool row_of_bytes = rows == 1 && w.bits != 4;  // bound by memory: int8 gains nothing
    l.mode = fast && fits && !row_of_bytes ? Mode::i8 : Mode::i16;
    l.nibbles = w.bits == 4;
  }
  const int streamed = k.stream_rows ? k.stream_rows(w, l.mode) : 1;
  const bool bf16_weights = w.format == Format::fp8 || (w.format == Format::plain && w.type == Type::bf16);
  if (k.bf16_tile_product && bf16_weights && type == Type::bf16 && rows > streamed) {
    l.mode = Mode::bf16;
  }
  bool one = w.format == Format::plain || l.mode != Mode::f32 || (k.integers && w.format == Format::fp8);
  l.vector = rows == 1 && one;
  // float32 activations do not stream, because verification compares chunks: the sums of tiles and small batches do not
  // depend on the number of rows.
  if (rows > 1 && rows <= streamed && (codes ? has_integers(l.mode) : type != Type::f32)) {
    l.vector = true;
  }
  l.quarters = l.vector && (codes ? w.bits == 2 && rows <= k.quarter_rows
                                  : w.format == Format::fp8 && rows == 1 && k.saturates);
  l.pairs = k.saturates && has_integers(l.mode) && !l.quarters && w.bits < 8 && w.bits != 4;
  l.small_batch = !l.vector && rows > 1 && k.small_batch_rows && rows <= k.small_batch_rows(w, l.mode);
  l.winograd = k.winograd && l.mode == Mode::i16 && l.tiled();
  l.zero = has_integers(l.mode) && (l.tiled() || (l.small_batch && !k.saturates)) ? w.zero_point() : 0;
  return l;
}

namespace {

// The same rows, packed in one or more layouts.
struct PackedActivations {
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

size_t data_bytes(const Layout& l, int64_t rows, int64_t padded) {
  return aligned(size_t(rows * padded) * (l.mode == Mode::f32 ? 4 : l.mode == Mode::i8 ? 1 : 2));
}

// Packs rows in each of the layouts. row(m) returns a pointer to row m. The buffers are scratch memory of the calling
// thread.
template <class Row>
PackedActivations pack(Row row, Type type, int64_t rows, int64_t columns, const std::vector<Layout>& layouts) {
  int64_t padded = (columns + kStep - 1) / kStep * kStep;
  size_t data = 0, numbers = 0;
  for (const auto& l : layouts) {
    data += data_bytes(l, rows, padded);
    numbers += 3 * size_t(rows * (padded / l.block));
  }
  auto bytes = scratch<uint8_t>(kData, data);
  auto floats = scratch<float>(kScales, numbers);
  PackedActivations out;
  for (const auto& l : layouts) {
    const int64_t blocks = rows * (padded / l.block);
    out.list.push_back({.layout = l, .rows = rows, .columns = padded, .data = bytes, .scales = floats,
                        .sums = floats + blocks,
                        .corrections = reinterpret_cast<int32_t*>(floats + 2 * blocks)});
    floats += 3 * blocks;
    bytes += data_bytes(l, rows, padded);
  }
  for (const auto& a : out.list) {
    int panel = rows_per_panel(a.layout);
    // A piece of work is a number of whole panels.
    int64_t blocks = (rows + panel - 1) / panel, grain = std::max<int64_t>(1, kMinPackElements / (padded * panel));
    parallel(blocks, grain, [&](int64_t b0, int64_t b1) {
      for (int64_t b = b0; b < b1; b++) {
        int64_t m = b * panel;
        pack_panel(a, int(std::min<int64_t>(panel, rows - m)), m, columns, type, [&](int r) { return row(m + r); });
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

}  // namespace

void multiply(const void* x, Type type, int64_t rows, int64_t columns, const Product* products, int count, bool fast) {
  std::vector<Layout> layouts, layout_of(count);
  for (int i = 0; i < count; i++) {
    layout_of[i] = layout_for(products[i].weights, type, rows, fast);
    add_layout(layouts, layout_of[i]);
  }
  auto row = [&](int64_t m) -> const void* {
    return static_cast<const uint8_t*>(x) + size_t(m * columns) * size_of(type);
  };
  PackedActivations a = pack(row, type, rows, columns, layouts);

  int64_t bytes = 0;
  for (int i = 0; i < count; i++) {
    bytes += products[i].weights.rows * products[i].weights.row_bytes();
  }
  auto& ranges = all_ranges();
  Partition partition(bytes, ranges);
  for (int i = 0; i < count; i++) {
    partition.add(i, products[i].weights, rows, layout_of[i]);
  }
  parallel(int64_t(ranges.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      const Range& r = ranges[size_t(i)];
      const Product& p = products[r.product];
      auto row = [&p](int64_t m) { return static_cast<char*>(p.y) + size_t(m * p.weights.rows) * size_of(p.type); };
      multiply_range(p.weights, *a.find(layout_of[size_t(r.product)]), r.n0, r.n1, r.m0, r.m1,
                     Results<decltype(row)>{p.type, p.added, row});
    }
  });
}

}  // namespace ingot::cpu
