// How products are put to work: what activations become, and the parts of the work that threads take. Of cpu_matmul.cc and cpu_matmul_gathered.cc.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu_matmul.h"
#include "cpu_scratch.h"
#include "cpu_team.h"

namespace ingot::cpu {

// The slots of scratch memory that products use.
constexpr int kData = 0, kScales = 1, kResult = 2;

// More rows than this gain from unpacking weights only once.
constexpr int64_t kSmallBatch = 16;

// Bytes of weights that a thread takes at once: what fetches memory ahead starts anew with each piece, and nobody ends before
// the last one does. Pieces of 64 KB cost 8 % of the bandwidth, of 16 KB a third: the least is that small only where many threads share few
// bytes, or where products take longer than reading.
constexpr int64_t kMaxPieceBytes = 1 << 20, kMinPieceBytes = 64 << 10, kSmallestPieceBytes = 16 << 10;

// Elements of activations that a thread arranges at once, at least.
constexpr int64_t kMinPackElements = 16384;

// How x meets these weights.
Layout layout_for(const Weights& w, Type type, int64_t rows, bool fast);

inline size_t size_of(Type t) { return t == Type::f32 ? 4 : 2; }

// Rows of activations that lie together, at most kBlockRows of them.
constexpr int kMaxPanelRows = 8;
inline int rows_per_panel(const Layout& l) {
  const auto& k = matmul_kernels();
  return l.vector ? 1 : l.mode == Mode::f32 ? k.float_rows : k.integer_rows;
}

// Activation rows of a piece: whole blocks of them.
inline int64_t row_block(const Layout& l) { return kRowBlock / rows_per_panel(l) * rows_per_panel(l); }

// Arranges n rows as the block that begins at row m.
template <class Row>
void pack_panel(const Activations& a, int n, int64_t m, int64_t columns, Type type, Row row) {
  const void* rows[kMaxPanelRows];
  for (int r = 0; r < n; r++) {
    rows[r] = row(r);
  }
  matmul_kernels().pack(a, rows, type, columns, m, n);
}

// Where results go: row(m) is the beginning of row m's, of that type; added is what each row gets before it is rounded, or nullptr.
template <class Row>
struct Results {
  Type type;
  const float* added;
  Row row;

  char* at(int64_t m, int64_t n) const { return static_cast<char*>(row(m)) + size_t(n) * size_of(type); }

  void put(int64_t m, int64_t n, float* from, int64_t count) const {
    for (int64_t i = 0; added && i < count; i++) {
      from[i] += added[n + i];
    }
    matmul_kernels().narrow(type, from, at(m, n), count);
  }
};

// Multiplies rows [m0, m1) with weight rows [n0, n1).
template <class Row>
void multiply_range(const Weights& w, const Activations& a, int64_t n0, int64_t n1, int64_t m0, int64_t m1, const Results<Row>& to) {
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
        __builtin_prefetch(to.at(m, n), 1);  // each row's in another page; other stores would wait behind these
      }
    };
    if (a.layout.small_batch) {
      k.small_batch_product(w, a, n, m0, m1, result);
      store_rows(m0, m1);
      continue;
    }
    auto callback = [](void* context, int64_t first, int64_t last) { (*static_cast<decltype(store_rows)*>(context))(first, last); };
    k.tile_product(w, a, n, m0, m1, result, {callback, &store_rows});
  }
}

// A part of the work: a range of weight rows (and, for tiles, one block of activation rows) of one product.
struct Range {
  int product;
  int64_t n0, n1, m0, m1;
};

// Parts that grow smaller towards the end, so that all threads end together.
class Partition {
 public:
  // bytes of weights, all in all; ranges is emptied, and keeps its memory from one product to the next.
  Partition(int64_t bytes, std::vector<Range>& ranges)
      : ranges_(ranges), left_(bytes), divisor_(2 * Team::instance().size()), min_bytes_(std::clamp(bytes / (4 * divisor_), kSmallestPieceBytes, kMinPieceBytes)) {
    ranges_.clear();
  }

  // Adds the parts of all rows of a matrix, for activation rows [0, rows) by blocks.
  void add(int product, const Weights& w, int64_t rows, int64_t block) {
    const int64_t tile = matmul_kernels().tile, row = std::max<int64_t>(1, w.row_bytes());
    const int64_t min_bytes = rows > 1 ? kSmallestPieceBytes : min_bytes_;  // memory no longer decides
    for (int64_t n = 0; n < w.rows;) {
      const int64_t share = left_ / divisor_;
      // An unpacked tile serves many rows.
      const int64_t grain = rows > kSmallBatch ? std::clamp(share / row, tile, 4 * tile) : std::clamp(share, min_bytes, kMaxPieceBytes) / row;
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
  int64_t left_, divisor_, min_bytes_;
};

// The parts of the product that this thread is about.
inline std::vector<Range>& all_ranges() {
  static thread_local std::vector<Range> ranges;
  return ranges;
}

}  // namespace ingot::cpu
