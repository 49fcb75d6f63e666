// Unpacking of codes to a tile of integers with AVX-512: 16 weight rows at a time, with the tile's Winograd
// corrections, which cost nothing beside the stores.
#pragma once

#include "cpu/matmul/stream/vector_avx512.h"
#include "cpu/matmul/unpack_avx2.h"
#include "cpu/simd/transpose_avx512.h"

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

// Loads exactly the bytes of a step of codes: a masked load of 64 bytes would touch the next line, too.
template <int Bits>
IG_INLINE __m512i load_codes(const uint8_t* p) {
  if constexpr (Bits == 8) {
    return _mm512_loadu_si512(p);
  }
  auto sixteen = [](const uint8_t* p) __attribute__((always_inline)) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  };
  auto eight = [](const uint8_t* p) __attribute__((always_inline)) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  };
  if constexpr (Bits == 2) {
    return _mm512_castsi128_si512(sixteen(p));
  } else if constexpr (Bits == 3) {
    return _mm512_inserti32x4(_mm512_castsi128_si512(sixteen(p)), eight(p + 16), 1);
  } else {
    return _mm512_inserti32x4(_mm512_castsi256_si512(load_bytes(p)), Bits == 5 ? eight(p + 32) : sixteen(p + 32), 2);
  }
}

// unpack_nibble_tile for affine codes of another width, as unpack_bytes does.
template <int Bits, bool Wide, bool Winograd>
static void unpack_byte_tile(const Weights& w, int64_t n0, int64_t k0, int columns, int block, Tile& t) {
  const StepUnpacker unpacker = make_step_unpacker(Bits == 8 ? 2 : Bits);
  const __m512i words = _mm512_broadcast_i32x4(_mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1));
  const int64_t row = w.row_bytes();
  const uint8_t* at = w.codes + n0 * row + k0 * Bits / 8;
  int32_t* to = t.as<int32_t>();
  constexpr int kDwords = Wide ? 32 : 16;  // of a step
  for (int k = 0; k < columns; k += kStep, at += kStep / 8 * Bits, to += kDwords * kTile) {
#pragma GCC unroll 1
    for (int h = 0; h < 2; h++) {
      I v[16];
#pragma GCC unroll 16
      for (int r = 0; r < 16; r++) {
        const I codes = load_codes<Bits>(at + (16 * h + r) * row);
        v[r] = Bits == 8 ? codes : unpack_step(codes, unpacker);
      }
      transpose_16x16(v);
      int32_t* half = to + h * kLanes;
      I sum = zeros();
#pragma GCC unroll 16
      for (int i = 0; i < 16; i++) {
        if constexpr (!Wide) {
          store_lanes(half + i * kTile, v[i]);
          continue;
        }
        const I first = _mm512_shuffle_epi8(v[i], words);
        const I second = _mm512_shuffle_epi8(_mm512_srli_epi32(v[i], 16), words);
        store_lanes(half + 2 * i * kTile, first);
        store_lanes(half + (2 * i + 1) * kTile, second);
        if constexpr (Winograd) {
          sum = dot16(sum, first, second);
          if (4 * (i + 1) % block == 0) {
            store_lanes(t.corrections + (k + 4 * i) / block * kTile + h * kLanes, subtract(zeros(), sum));
            sum = zeros();
          }
        }
      }
    }
  }
}

// Reads groups g to g+7 of 16 weight rows from row n on, of 16-bit scales or biases, as float32: v[i] is group i.
IG_INLINE void sixteen_groups(const Weights& w, const void* p, int64_t n, int64_t g, F* v) {
  const int64_t groups = w.groups();
  I pairs[4];  // pairs[d]: groups 2d and 2d+1
  load_transposed_16x4(static_cast<const uint8_t*>(p) + 2 * (n * groups + g), 2 * groups, pairs);
#pragma GCC unroll 4
  for (int d = 0; d < 4; d++) {
    const I odd = _mm512_srli_epi32(pairs[d], 16);
    if (w.scale_type == ScaleType::bf16) {
      v[2 * d] = _mm512_castsi512_ps(_mm512_slli_epi32(pairs[d], 16));
      v[2 * d + 1] = _mm512_castsi512_ps(_mm512_slli_epi32(odd, 16));
    } else {
      v[2 * d] = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(pairs[d]));
      v[2 * d + 1] = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(odd));
    }
  }
}

// tile_scales for a whole tile. Scales that are not 16 bits wide, and the last ones of a matrix, where loads of eight
// groups would read past it, are those of tile_scales.
static void whole_tile_scales(const Weights& w, int64_t n0, int64_t k0, int columns, int block, Tile& t) {
  const int shift = __builtin_ctz(unsigned(w.group)), per = w.group / block;
  const int64_t first = k0 >> shift, end = k0 + kDepth < w.columns ? k0 + kDepth : w.columns;
  const int groups = int(((end - 1) >> shift) - first + 1);
  const int64_t last = (n0 + kTile - 1) * w.groups() + first + (groups + 7) / 8 * 8;
  if (w.scale_bytes() != 2 || k0 % kDepth != 0 || last > w.rows * w.groups()) {
    return tile_scales(w, n0, k0, columns, block, t);
  }
  t.first = 0;
  for (int g = 0; g < groups; g += 8) {
#pragma GCC unroll 1
    for (int h = 0; h < 2; h++) {
      F scales[8], biases[8];
      sixteen_groups(w, w.scales, n0 + h * kLanes, first + g, scales);
      if (w.biases) {
        sixteen_groups(w, w.biases, n0 + h * kLanes, first + g, biases);
      } else {
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
          biases[i] = scales[i] * set(float(-w.zero));
        }
      }
#pragma GCC unroll 8
      for (int i = 0; i < 8; i++) {
        for (int b = (g + i) * per; b < (g + i + 1) * per && b < kDepth / block; b++) {
          store(t.scales + b * kTile + h * kLanes, scales[i]);
          store(t.biases + b * kTile + h * kLanes, biases[i]);
        }
      }
    }
  }
}

// Unpacks a tile that is whole and reports whether it is.
static bool unpack_whole_tile(const Weights& w, int64_t n0, int64_t k0, int columns, const Layout& l, Tile& t) {
  if (!has_codes(w) || l.mode == Mode::f32 || n0 + kTile > w.rows || k0 + columns > w.columns) {
    return false;
  }
  whole_tile_scales(w, n0, k0, columns, l.block, t);
  auto unpack_as = [&]<bool Wide, bool Winograd>() {
    auto* unpack = w.bits == 2               ? unpack_byte_tile<2, Wide, Winograd>
                   : w.bits == 3             ? unpack_byte_tile<3, Wide, Winograd>
                   : w.bits == 5             ? unpack_byte_tile<5, Wide, Winograd>
                   : w.bits == 6             ? unpack_byte_tile<6, Wide, Winograd>
                   : w.bits == 8             ? unpack_byte_tile<8, Wide, Winograd>
                   : w.format == Format::fp4 ? unpack_nibble_tile<Wide, true, Winograd>
                                             : unpack_nibble_tile<Wide, false, Winograd>;
    unpack(w, n0, k0, columns, l.block, t);
  };
  if (l.mode == Mode::i8) {
    unpack_as.template operator()<false, false>();
  } else if (l.winograd) {
    unpack_as.template operator()<true, true>();
  } else {
    unpack_as.template operator()<true, false>();
  }
  return true;
}

}  // namespace ingot::cpu::INGOT_ISA
