// Unpacking weights and multiplying them in portable C++: all weights are dequantized to float32; see
// cpu/matmul/matmul.h.
#pragma once

#include "cpu/matmul/kernels.h"

namespace ingot::cpu::INGOT_ISA {

// Returns code i of a weight row.
IG_INLINE uint32_t code_at(const uint8_t* row, int64_t i, int bits) {
  int64_t bit = i * bits;
  uint32_t low = row[bit / 8], shift = uint32_t(bit % 8);
  // The next byte is read only if the code extends into it, so that no row is read past its end.
  uint32_t v = shift + uint32_t(bits) > 8 ? low | uint32_t(row[bit / 8 + 1]) << 8 : low;
  return v >> shift & ((1u << bits) - 1);
}

// Fills the tile's scales and biases for the blocks of columns from k0 on. Rows past the matrix repeat the last one;
// columns past it get zeros.
static void tile_scales(const Weights& w, int64_t n0, int64_t k0, int columns, int block, Tile& t) {
  constexpr int kMaxBlocks = kDepth / 16;
  int blocks = columns / block;
  int64_t first = k0 / w.group, last = (k0 + columns < w.columns ? k0 + columns : w.columns) - 1;
  int groups = int(last / w.group - first + 1);
  for (int r = 0; r < kTile; r++) {
    int64_t row = n0 + r < w.rows ? n0 + r : w.rows - 1;
    float scales[kMaxBlocks + kLanes], biases[kMaxBlocks + kLanes];
    row_scales(w, row, first, groups, scales, biases);
    int shift = __builtin_ctz(unsigned(w.group));  // a group has 2^shift codes
    for (int b = 0; b < blocks; b++) {
      int64_t g = ((k0 + b * block) >> shift) - first;
      t.scales[b * kTile + r] = g < groups ? scales[g] : 0;
      t.biases[b * kTile + r] = g < groups ? biases[g] : 0;
    }
  }
}

static void unpack(const Weights& w, int64_t n0, int64_t k0, int columns, int block, Mode, Tile& t) {
  if (w.format != Format::plain) {
    tile_scales(w, n0, k0, columns, block, t);
  }
  auto to = t.as<float>();
  for (int r = 0; r < kTile; r++) {
    int64_t row = n0 + r < w.rows ? n0 + r : w.rows - 1;
    const uint8_t* codes = w.codes + row * w.row_bytes();
    for (int k = 0; k < columns; k++) {
      float v = 0;
      int64_t i = k0 + k;
      int b = k / block;
      if (i < w.columns) {
        switch (w.format) {
          case Format::plain:
            v = w.type == Type::f32   ? get(reinterpret_cast<const float*>(codes) + i)
                : w.type == Type::f16 ? get(reinterpret_cast<const f16*>(codes) + i)
                                      : get(reinterpret_cast<const bf16*>(codes) + i);
            break;
          case Format::affine:
            v = float(code_at(codes, i, w.bits)) * t.scales[b * kTile + r] + t.biases[b * kTile + r];
            break;
          case Format::fp4:
            v = float(kFP4[code_at(codes, i, 4)]) * t.scales[b * kTile + r] + t.biases[b * kTile + r];
            break;
          case Format::fp8:
            v = e4m3(codes[i]) * t.scales[b * kTile + r];
        }
      }
      to[k * kTile + r] = v;
    }
  }
}

static void tile_product(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y,
                         const RowsCallback& done) {
  Tile t;
  __builtin_memset(y, 0, std::size_t(m1 - m0) * kTile * sizeof(float));
  const int max_columns = depth(Mode::f32, m1 - m0);
  for (int64_t k0 = 0; k0 < x.columns; k0 += max_columns) {
    int columns = int(x.columns - k0 < max_columns ? x.columns - k0 : max_columns);
    unpack(w, n0, k0, columns, x.layout.block, Mode::f32, t);
    for (int64_t m = m0; m < m1; m += kFloatRows) {
      int rows = int(x.rows - m < kFloatRows ? x.rows - m : kFloatRows);
      multiply_float_rows(t.as<float>(), static_cast<const float*>(x.data) + packed_offset(x, m, k0, rows), columns,
                          rows, y + (m - m0) * kTile);
      if (k0 + max_columns >= x.columns) {
        done(m, m + rows);
      }
    }
  }
}

static void pack(const Activations& a, const void* const* rows, Type type, int64_t columns, int64_t m, int n) {
  pack_floats(a, rows, type, columns, m, n);
}

static void row_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  plain_row_product(w, static_cast<const float*>(x.data), n0, n1, y);
}

}  // namespace ingot::cpu::INGOT_ISA
