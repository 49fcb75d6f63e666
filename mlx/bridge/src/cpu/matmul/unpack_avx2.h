// Unpacking weights with AVX2: eight weight rows at a time, transposed so that lanes are weight rows; see
// cpu/matmul/matmul.h.
#pragma once

#include "cpu/matmul/scales_avx2.h"
#include "cpu/matmul/unpack_pairs_avx2.h"
#include "cpu/simd/dot_x86.h"

namespace ingot::cpu::INGOT_ISA {

// Locates a step (kStep columns) of eight weight rows, in the matrix or in a zero-padded copy. A partial step is
// copied. So are the last two steps of the last rows, because some loads read up to 16 bytes past the codes that they
// need: if the last step is half a step of 2- or 3-bit codes, it has fewer bytes than that.
struct RowStep {
  const uint8_t* at;
  int64_t stride;
  alignas(32) uint8_t copy[8][kStep * 4 + 32];

  const uint8_t* row(int r) const { return at + r * stride; }
};

// Locates the step at column k of weight rows n to n+7. Rows past the matrix repeat the last one.
IG_INLINE void find_step(const Weights& w, int64_t n, int64_t k, RowStep& s) {
  int64_t stride = w.row_bytes();
  const uint8_t* at = w.codes + n * stride + k / 8 * w.bits;
  s.at = at;
  s.stride = stride;
  if (__builtin_expect(k + 2 * kStep <= w.columns && n + 8 <= w.rows, 1)) {
    return;
  }
  bool partial = k + kStep > w.columns;
  if (!partial && n + 8 < w.rows) {
    return;
  }
  int64_t bytes = (partial ? w.columns - k : kStep) * w.bits / 8;
  __builtin_memset(s.copy, 0, sizeof(s.copy));
  for (int r = 0; r < 8; r++) {
    __builtin_memcpy(s.copy[r], n + r < w.rows ? at + r * stride : at + (w.rows - 1 - n) * stride, size_t(bytes));
  }
  s.at = s.copy[0];
  s.stride = sizeof(s.copy[0]);
}

// The constants that unpack 16 codes of a bit stream, of any width but 4, to int16. A shuffle moves the two bytes that
// contain a code to its lane. A multiplication shifts the bits above the code out; a right shift drops those below it.
struct BitUnpacker {
  __m256i bytes, up;
  __m128i down;
  int lane;  // bytes of eight codes
};

IG_INLINE BitUnpacker make_bit_unpacker(int bits) {
  alignas(32) uint8_t bytes[32];
  alignas(32) uint16_t up[16];
  for (int i = 0; i < 16; i++) {
    int at = (i % 8) * bits;
    bytes[2 * i] = uint8_t(at / 8);
    bytes[2 * i + 1] = uint8_t(at / 8 + 1);
    up[i] = uint16_t(1u << (16 - bits - at % 8));
  }
  return {_mm256_load_si256(reinterpret_cast<__m256i*>(bytes)), _mm256_load_si256(reinterpret_cast<__m256i*>(up)),
          _mm_cvtsi32_si128(16 - bits), bits};
}

// Unpacks 16 codes to int16, in order.
IG_INLINE __m256i unpack_16_codes(const uint8_t* p, const BitUnpacker& s) {
  __m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
                                      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + s.lane)), 1);
  return _mm256_srl_epi16(_mm256_mullo_epi16(_mm256_shuffle_epi8(v, s.bytes), s.up), s.down);
}

// Unpacks 32 codes to bytes, in order.
IG_INLINE __m256i unpack_32_codes(const uint8_t* p, const BitUnpacker& s) {
  __m256i v = _mm256_packus_epi16(unpack_16_codes(p, s), unpack_16_codes(p + 2 * s.lane, s));
  return _mm256_permute4x64_epi64(v, 0xd8);
}

IG_INLINE __m256i fp4_table() {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(kFP4)));
}

// Unpacks a step of 4-bit codes of eight weight rows to rows 8h to 8h+7 of a tile. A dword has eight codes, which
// shifts and masks extract; as integers they come in the order of Layout::nibbles. A block has 2^shift columns.
static void unpack_nibbles(const RowStep& s, bool fp4, Mode mode, int shift, int h, int step, Tile& t) {
  __m256i v[8];
#pragma GCC unroll 8
  for (int r = 0; r < 8; r++) {
    v[r] = load_bytes(s.row(r));
  }
  transpose(v);
  __m256i table = fp4_table();
  if (mode == Mode::i16) {
    __m256i mask = _mm256_set1_epi32(0x000f000f), upper = _mm256_set1_epi32(int(0x80008000));
    auto to = t.as<int32_t>() + (step * 32) * kTile + h * 8;
    for (int d = 0; d < 8; d++) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        __m256i q = _mm256_and_si256(_mm256_srli_epi32(v[d], 4 * j), mask);
        q = fp4 ? _mm256_shuffle_epi8(table, _mm256_or_si256(q, upper)) : q;
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + (d * 4 + j) * kTile), q);
      }
    }
  } else if (mode == Mode::i8) {
    __m256i mask = _mm256_set1_epi32(0x0f0f0f0f);
    auto to = t.as<int32_t>() + (step * 16) * kTile + h * 8;
    for (int d = 0; d < 8; d++) {
#pragma GCC unroll 2
      for (int j = 0; j < 2; j++) {
        __m256i q = _mm256_and_si256(_mm256_srli_epi32(v[d], 4 * j), mask);
        q = fp4 ? _mm256_shuffle_epi8(table, q) : q;
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + (d * 2 + j) * kTile), q);
      }
    }
  } else {
    __m256i mask = _mm256_set1_epi32(15), upper = _mm256_set1_epi32(int(0x80808000));
    auto to = t.as<float>() + step * kStep * kTile + h * 8;
    for (int d = 0; d < 8; d++) {
      int b = t.first + ((step * kStep + d * 8) >> shift);
      __m256 scale = _mm256_load_ps(t.scales + b * kTile + h * 8), bias = _mm256_load_ps(t.biases + b * kTile + h * 8);
#pragma GCC unroll 8
      for (int j = 0; j < 8; j++) {
        __m256i q = _mm256_and_si256(_mm256_srli_epi32(v[d], 4 * j), mask);
        q = fp4 ? _mm256_shuffle_epi8(table, _mm256_or_si256(q, upper)) : q;
        _mm256_store_ps(to + (d * 8 + j) * kTile, _mm256_fmadd_ps(_mm256_cvtepi32_ps(q), scale, bias));
      }
    }
  }
}

// Splits each four bytes into the first two and the others, as int16.
IG_INLINE void split_bytes(__m256i v, __m256i* to) {
  const __m128i even = _mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1);
  const __m128i odd = _mm_setr_epi8(2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1);
  to[0] = _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(even));
  to[1] = _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(odd));
}

// Stores codes that are bytes, or were unpacked to bytes, in a tile. v[q] holds dword first + q of the step, which is
// four columns, of eight weight rows.
IG_INLINE void put_bytes(const __m256i* v, int first, bool fp8, Mode mode, int shift, int h, int step, Tile& t) {
  if (mode == Mode::i8) {
    auto to = t.as<int32_t>() + (step * 16 + first) * kTile + h * 8;
#pragma GCC unroll 8
    for (int q = 0; q < 8; q++) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + q * kTile), v[q]);
    }
  } else if (mode == Mode::i16) {
    auto to = t.as<int32_t>() + (step * 32 + 2 * first) * kTile + h * 8;
#pragma GCC unroll 8
    for (int q = 0; q < 8; q++) {
      __m256i words[2];
      split_bytes(v[q], words);
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + 2 * q * kTile), words[0]);
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + (2 * q + 1) * kTile), words[1]);
    }
  } else {
    auto to = t.as<float>() + (step * kStep + 4 * first) * kTile + h * 8;
    __m256i mask = _mm256_set1_epi32(255);
    for (int q = 0; q < 8; q++) {
      int b = t.first + ((step * kStep + 4 * (first + q)) >> shift);
      __m256 scale = _mm256_load_ps(t.scales + b * kTile + h * 8), bias = _mm256_load_ps(t.biases + b * kTile + h * 8);
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        float* p = to + (4 * q + j) * kTile;
        if (fp8) {
          const __m256i upper = _mm256_srai_epi32(_mm256_slli_epi32(v[q], 24 - 8 * j), 4);
          _mm256_store_ps(p, _mm256_mul_ps(upper_e4m3(upper), scale));
        } else {
          const __m256i code = _mm256_and_si256(_mm256_srli_epi32(v[q], 8 * j), mask);
          _mm256_store_ps(p, _mm256_fmadd_ps(_mm256_cvtepi32_ps(code), scale, bias));
        }
      }
    }
  }
}

static void unpack_bytes(const RowStep& s, const Weights& w, const BitUnpacker& unpacker, Mode mode, int shift, int h,
                         int step, Tile& t) {
  for (int half = 0; half < 2; half++) {
    __m256i v[8];
    for (int r = 0; r < 8; r++) {
      v[r] = w.bits == 8 ? load_bytes(s.row(r) + half * 32) : unpack_32_codes(s.row(r) + half * 4 * w.bits, unpacker);
    }
    transpose(v);
    put_bytes(v, half * 8, w.format == Format::fp8, mode, shift, h, step, t);
  }
}

// Loads eight elements of a plain weight row as float32. The tile's rows are transposed eight at a time, so these are
// 256 bits wide where load is wider.
IG_INLINE __m256i load_eight(const float* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
IG_INLINE __m256i load_eight(const f16* p) {
  return _mm256_castps_si256(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
IG_INLINE __m256i load_eight(const bf16* p) {
  return _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16);
}

template <class T>
static void unpack_plain(const RowStep& s, int h, int step, Tile& t) {
  auto to = t.as<float>() + step * kStep * kTile + h * 8;
  for (int k = 0; k < kStep; k += 8) {
    __m256i v[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++) {
      v[r] = load_eight(reinterpret_cast<const T*>(s.row(r)) + k);
    }
    transpose(v);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + (k + i) * kTile), v[i]);
    }
  }
}

// Fills the scales and biases of a tile for columns [k0, k0+columns).
IG_INLINE void tile_scales(const Weights& w, int64_t n0, int64_t k0, int columns, int block, Tile& t) {
  t.first = int(k0 % kDepth) / block;
  if (w.format != Format::plain && k0 % kDepth == 0) {
    transpose_scales(w, n0, k0, int(w.columns - k0 < kDepth ? (w.columns - k0 + kStep - 1) / kStep * kStep : kDepth),
                     block, t);
  }
}

// Prefetches the i-th part of the tile that begins at weight row n. Tiles and their parts are contiguous: memory serves
// requests in address order faster than those that alternate between rows.
IG_INLINE void prefetch_part(const Weights& w, int64_t n, int64_t i) {
  const int64_t bytes = kStep * w.bits;  // as many as a step of eight rows has
  auto p = reinterpret_cast<const char*>(w.codes + n * w.row_bytes() + i * bytes);
  for (int64_t line = 0; line < bytes; line += 64) {
    _mm_prefetch(p + line, _MM_HINT_T1);
  }
}

// Calls put(s, h, step) for each step of weight rows n0 + 8h to n0 + 8h + 7 of a tile, and fills the tile's scales.
// With Prefetch, it prefetches the tile that probably comes next; micro-kernels of integers do that themselves.
template <bool Prefetch, class Put>
IG_INLINE void each_step(const Weights& w, int64_t n0, int64_t k0, int columns, int block, Tile& t, Put put) {
  tile_scales(w, n0, k0, columns, block, t);
  RowStep s;
  for (int h = 0; h < kTile / 8; h++) {
    if (n0 + h * 8 >= w.rows) {
      break;  // these rows of the tile are not used
    }
    for (int step = 0; step < columns / kStep; step++) {
      find_step(w, n0 + h * 8, k0 + step * kStep, s);
      if (Prefetch) {
        prefetch_part(w, n0 + kTile, (k0 / kStep + step) * (kTile / 8) + h);
      }
      put(s, h, step);
    }
  }
}

static void unpack(const Weights& w, int64_t n0, int64_t k0, int columns, int block, Mode mode, Tile& t) {
  const int shift = __builtin_ctz(unsigned(block));  // a block has 2^shift columns
  bool nibbles = w.bits == 4, bytes = has_codes(w) || w.format == Format::fp8;
  BitUnpacker unpacker = make_bit_unpacker(bytes && !nibbles && w.bits < 8 ? w.bits : 2);
  auto put = [&](const RowStep& s, int h, int step) __attribute__((always_inline)) {
    if (kSaturates && has_codes(w) && !nibbles && w.bits < 8 && mode != Mode::f32) {
      if constexpr (kSaturates) {
        auto to = t.as<int32_t>() + step * (mode == Mode::i16 ? 32 : 16) * kTile + h * 8;
        mode == Mode::i16 ? unpack_any_pairs<true>(w.bits, s.at, s.stride, to, kTile)
                          : unpack_any_pairs<false>(w.bits, s.at, s.stride, to, kTile);
      }
    } else if (bytes && nibbles) {
      unpack_nibbles(s, w.format == Format::fp4, mode, shift, h, step, t);
    } else if (bytes) {
      unpack_bytes(s, w, unpacker, mode, shift, h, step, t);
    } else if (w.type == Type::f32) {
      unpack_plain<float>(s, h, step, t);
    } else if (w.type == Type::f16) {
      unpack_plain<f16>(s, h, step, t);
    } else {
      unpack_plain<bf16>(s, h, step, t);
    }
  };
  mode == Mode::f32 ? each_step<true>(w, n0, k0, columns, block, t, put)
                    : each_step<false>(w, n0, k0, columns, block, t, put);
}

}  // namespace ingot::cpu::INGOT_ISA
