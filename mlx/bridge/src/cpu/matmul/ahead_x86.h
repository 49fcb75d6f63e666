// Prefetching of the weights that a tile product unpacks next, while it multiplies those it has unpacked.
//
// Unpacking alone would wait for memory, and multiplying would leave memory idle. The lines are requested a few at a
// time, between the blocks of the micro-kernels: a burst of requests would wait for the ones before.
#pragma once

#include <immintrin.h>

#include "cpu/matmul/kernels.h"

namespace ingot::cpu::INGOT_ISA {

// Ahead is the part of a matrix that is unpacked next: columns [k0, k0+columns) of the weight rows of a tile.
class Ahead {
 public:
  // Nothing to prefetch.
  Ahead() = default;

  // Prefetches a tile's share of the matrix in `calls` calls. Columns or rows past the matrix are left out.
  Ahead(const Weights& w, int64_t n0, int64_t k0, int columns, int calls) {
    const int64_t rows = w.rows - n0 < kTile ? w.rows - n0 : kTile;
    if (rows <= 0 || calls <= 0) {
      return;
    }
    const int64_t end = k0 + columns < w.columns ? k0 + columns : w.columns;
    codes_ = w.codes + n0 * w.row_bytes() + k0 * w.bits / 8;
    row_bytes_ = w.row_bytes();
    // A row that does not begin with a line may reach into one more.
    const auto begins = int(reinterpret_cast<uintptr_t>(codes_) % kLine);
    lines_ = int((end - k0) * w.bits / 8 + (row_bytes_ % kLine ? kLine - 1 : begins) + kLine - 1) / kLine;
    if (k0 % kDepth == 0) {  // when scales are read, see tile_scales
      const int64_t group = n0 * w.groups() + k0 / w.group;
      scales_ = static_cast<const uint8_t*>(w.scales) + group * w.scale_bytes();
      biases_ = w.biases ? static_cast<const uint8_t*>(w.biases) + group * w.scale_bytes() : scales_;
      scale_bytes_ = w.groups() * w.scale_bytes();
    }
    rows_ = int(rows);
    per_ = (rows_ + calls - 1) / calls;
  }

  // Makes the i-th call's prefetches.
  inline __attribute__((always_inline)) void fetch(int i) const {
    for (int r = i * per_; r < rows_ && r < (i + 1) * per_; r++) {
      const uint8_t* row = codes_ + r * row_bytes_;
      for (int n = 0; n < lines_; n++) {
        line(row + n * kLine);
      }
      if (scales_) {
        line(scales_ + r * scale_bytes_);
        line(biases_ + r * scale_bytes_);
      }
    }
  }

 private:
  static constexpr int kLine = 64;  // bytes of a cache line

  static void line(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

  const uint8_t *codes_ = nullptr, *scales_ = nullptr, *biases_ = nullptr;
  int64_t row_bytes_ = 0, scale_bytes_ = 0;
  int lines_ = 0, rows_ = 0, per_ = 0;
};

}  // namespace ingot::cpu::INGOT_ISA
