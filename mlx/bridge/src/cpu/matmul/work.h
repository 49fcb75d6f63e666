// The drivers shared by matmul.cc and gathered.cc: the choice of a layout, packing, and the partition of
// a product into pieces for the thread team.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/matmul/matmul.h"
#include "cpu/scratch.h"
#include "cpu/team/team.h"

namespace ingot::cpu {

// Scratch slots: packed activations; their scales, sums and corrections; a piece's results in float32; the operands of
// multiply_across.
constexpr int kData = 0, kScales = 1, kResult = 2, kAcross = 3;

// Bytes of weights per piece. Large pieces read memory in long runs: the hardware prefetcher restarts at each piece, so
// pieces of 64 KB lose 8 % of the bandwidth and pieces of 16 KB a third. Small pieces let all threads finish together.
// The smallest size is for small matrices shared by many threads.
constexpr int64_t kMaxPieceBytes = 8 << 20, kMinPieceBytes = 64 << 10, kSmallestPieceBytes = 16 << 10;

// The least number of activations that a thread packs at a time.
constexpr int64_t kMinPackElements = 16384;

// Chooses the layout of activations of the given type and number of rows for a product with w.
Layout layout_for(const Weights& w, Type type, int64_t rows, bool fast);

inline size_t size_of(Type t) { return t == Type::f32 ? 4 : 2; }

// Returns the rows of a panel (see Activations); at most kMaxPanelRows.
inline int rows_per_panel(const Layout& l) {
  const auto& k = matmul_kernels();
  if (l.vector) {
    return 1;
  }
  if (l.mode == Mode::f32) {
    return l.small_batch ? k.float_batch_panel : k.float_rows;
  }
  return l.small_batch ? k.small_batch_panel : k.integer_rows;
}

// Returns the rows of a piece: as many whole panels as fit in kRowBlock.
inline int64_t row_block(const Layout& l) { return kRowBlock / rows_per_panel(l) * rows_per_panel(l); }

// Packs n rows as the panel that starts at row m; row(i) returns a pointer to row m+i.
template <class Row>
void pack_panel(const Activations& a, int n, int64_t m, int64_t columns, Type type, Row row) {
  const void* rows[kMaxPanelRows];
  for (int r = 0; r < n; r++) {
    rows[r] = row(r);
  }
  matmul_kernels().pack(a, rows, type, columns, m, n);
}

// The destination of a product's results: row(m) returns the address of result row m, of the given type. added has one
// value per output, which is added before rounding; it may be null.
template <class Row>
struct Results {
  Type type;
  const float* added;
  Row row;

  char* at(int64_t m, int64_t n) const { return static_cast<char*>(row(m)) + size_t(n) * size_of(type); }

  // Adds `added` to count float32 results from column n on, in place, and stores them rounded in row m.
  void put(int64_t m, int64_t n, float* from, int64_t count) const {
    for (int64_t i = 0; added && i < count; i++) {
      from[i] += added[n + i];
    }
    matmul_kernels().narrow(type, from, at(m, n), count);
  }
};

// Computes and stores the results of rows [m0, m1) and weight rows [n0, n1).
template <class Row>
void multiply_range(const Weights& w, const Activations& a, int64_t n0, int64_t n1, int64_t m0, int64_t m1,
                    const Results<Row>& to) {
  const auto& k = matmul_kernels();
  if (a.layout.vector) {
    auto result = scratch<float>(kResult, size_t((m1 - m0) * (n1 - n0)));
    k.row_product(w, a, n0, n1, result);
    for (int64_t m = m0; m < m1; m++) {
      to.put(m, n0, result + (m - m0) * (n1 - n0), n1 - n0);
    }
    return;
  }
  const int tile = a.layout.small_batch ? k.small_batch_tile : k.tile;
  auto result = scratch<float>(kResult, size_t(m1 - m0) * size_t(tile));
  for (int64_t n = n0; n < n1; n += tile) {
    auto store_rows = [&](int64_t first, int64_t last) {
      for (int64_t m = first; m < last; m++) {
        to.put(m, n, result + (m - m0) * tile, std::min<int64_t>(tile, n1 - n));
      }
      for (int64_t m = last; m < std::min(2 * last - first, m1); m++) {
        // Prefetch the destination of the next panel's results. Each result row is in another page, and a store that
        // misses the cache delays the stores behind it.
        __builtin_prefetch(to.at(m, n), 1);
      }
    };
    if (a.layout.small_batch) {
      k.small_batch_product(w, a, n, m0, m1, result);
      store_rows(m0, m1);
      continue;
    }
    auto callback = [](void* context, int64_t first, int64_t last) {
      (*static_cast<decltype(store_rows)*>(context))(first, last);
    };
    const auto product = a.layout.mode == Mode::bf16 ? k.bf16_tile_product : k.tile_product;
    product(w, a, n, m0, m1, result, {callback, &store_rows});
  }
}

// A piece of the work: weight rows [n0, n1) and rows [m0, m1) of one product.
struct Range {
  int product;
  int64_t n0, n1, m0, m1;
};

// Partition splits products into ranges whose size decreases towards the end (guided self-scheduling), so that all
// threads finish at about the same time.
class Partition {
 public:
  // bytes is the total size of the weights of all products. ranges is cleared; its capacity is reused.
  Partition(int64_t bytes, std::vector<Range>& ranges)
      : ranges_(ranges),
        left_(bytes),
        divisor_(2 * Team::instance().size()),
        min_bytes_(std::clamp(bytes / (2 * divisor_), kSmallestPieceBytes, kMinPieceBytes)) {
    ranges_.clear();
  }

  // Appends the ranges of w's rows times activation rows [0, rows) in a layout.
  void add(int product, const Weights& w, int64_t rows, const Layout& layout) {
    const int64_t block = row_block(layout), tile = matmul_kernels().tile, row = std::max<int64_t>(1, w.row_bytes());
    for (int64_t n = 0; n < w.rows;) {
      const int64_t share = left_ / divisor_;
      // A range of a tile product is 1 to 16 tiles; the size of others is given in bytes.
      const int64_t grain = layout.tiled() ? std::clamp(share / row, tile, 16 * tile)
                                           : std::clamp(share, min_bytes_, kMaxPieceBytes) / row;
      // Ranges are whole tiles: their results fill whole cache lines, so that threads do not share any (false sharing).
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
  int64_t left_, divisor_, min_bytes_;
};

// Returns this thread's list of ranges, so that its memory is reused from one product to the next.
inline std::vector<Range>& all_ranges() {
  static thread_local std::vector<Range> ranges;
  return ranges;
}

}  // namespace ingot::cpu
