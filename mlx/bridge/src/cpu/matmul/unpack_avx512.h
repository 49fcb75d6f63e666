// Unpacking of 4-bit codes to a tile with AVX-512: all weight rows of the tile at a time, with the tile's Winograd
// corrections, which cost nothing beside the stores.
#pragma once

#include "cpu/matmul/small_batch_avx512.h"

namespace ingot::cpu::INGOT_ISA {

// Unpacks columns [k0, k0+columns), whole steps, of kTile weight rows that exist, as unpack_nibbles does.
template <bool Wide, bool FP4, bool Winograd>
static void unpack_nibble_tile(const Weights& w, int64_t n0, int64_t k0, int columns, int block, Tile& t) {
  constexpr int kOperands = Wide ? 4 : 2;
  const __m512i mask = _mm512_set1_epi32(Wide ? 0x000f000f : 0x0f0f0f0f);
  const __m512i table = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(kFP4)));
  const __m512i upper = _mm512_set1_epi32(Wide ? int(0x80008000) : 0);  // makes a shuffle clear the upper bytes
  const int64_t row = w.row_bytes();
  const uint8_t* at = w.codes + n0 * row + k0 / 2;
  int32_t* to = t.as<int32_t>();
  const int dwords = block / 8;
  for (int k = 0; k < columns; k += kStep, at += kStep / 2) {
    I v[2][8];
    load_transposed_16x8(at, row, v[0]);
    load_transposed_16x8(at + 16 * row, row, v[1]);
    I sum[2] = {zeros(), zeros()};
#pragma GCC unroll 8
    for (int d = 0; d < 8; d++) {
      I q[kOperands][2];
#pragma GCC unroll 4
      for (int j = 0; j < kOperands; j++) {
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
          I c = _mm512_and_si512(j ? _mm512_srli_epi32(v[h][d], unsigned(4 * j)) : v[h][d], mask);
          q[j][h] = FP4 ? _mm512_shuffle_epi8(table, _mm512_or_si512(c, upper)) : c;
          store_lanes(to + j * kTile + h * kLanes, q[j][h]);
        }
      }
      to += kOperands * kTile;
      if constexpr (Winograd) {
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
          sum[h] = dot16(dot16(sum[h], q[0][h], q[1][h]), q[2][h], q[3][h]);
        }
        if ((d + 1) % dwords == 0) {
          int32_t* c = t.corrections + (k + 8 * d) / block * kTile;
#pragma GCC unroll 2
          for (int h = 0; h < 2; h++) {
            store_lanes(c + h * kLanes, subtract(zeros(), sum[h]));
            sum[h] = zeros();
          }
        }
      }
    }
  }
}

// Reports whether it has unpacked the tile.
static bool unpack_whole_tile(const Weights& w, int64_t n0, int64_t k0, int columns, const Layout& l, Tile& t) {
  if (w.bits != 4 || !has_codes(w) || l.mode == Mode::f32 || n0 + kTile > w.rows || k0 + columns > w.columns) {
    return false;
  }
  tile_scales(w, n0, k0, columns, l.block, t);
  const bool fp4 = w.format == Format::fp4;
  if (l.mode == Mode::i8) {
    (fp4 ? unpack_nibble_tile<false, true, false> : unpack_nibble_tile<false, false, false>)(w, n0, k0, columns,
                                                                                              l.block, t);
  } else if (l.winograd) {
    (fp4 ? unpack_nibble_tile<true, true, true> : unpack_nibble_tile<true, false, true>)(w, n0, k0, columns, l.block,
                                                                                          t);
  } else {
    (fp4 ? unpack_nibble_tile<true, true, false> : unpack_nibble_tile<true, false, false>)(w, n0, k0, columns, l.block,
                                                                                            t);
  }
  return true;
}

}  // namespace ingot::cpu::INGOT_ISA
