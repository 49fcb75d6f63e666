// Row products with AVX-512; see vector_x86.h. A vector of 4-bit codes holds a pair of interleaved steps. The ends of
// rows are loaded with masks, which read nothing past them.
#pragma once

#include "cpu/matmul/stream/vector_x86.h"

namespace ingot::cpu::INGOT_ISA {

// Scales are loaded 16 at a time, one for each block of columns (Layout::block).
constexpr int kUnit = 16;

IG_INLINE __mmask16 first_lanes(int64_t n) { return n >= kUnit ? __mmask16(0xffff) : __mmask16((1u << n) - 1); }

// Loads n scales or biases, at most 16, from index `at` on, as float32. The other lanes are finite.
template <ScaleType T>
IG_INLINE __m512 load_16(const void* p, int64_t at, int64_t n) {
  const __mmask16 m = first_lanes(n);
  if constexpr (T == ScaleType::f32) {
    return _mm512_maskz_loadu_ps(m, static_cast<const float*>(p) + at);
  } else if constexpr (T == ScaleType::f16 || T == ScaleType::bf16) {
    __m256i v = _mm256_maskz_loadu_epi16(m, static_cast<const uint16_t*>(p) + at);
    return T == ScaleType::f16 ? _mm512_cvtph_ps(v)
                               : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
  } else {
    __m128i v = _mm_maskz_loadu_epi8(m, static_cast<const uint8_t*>(p) + at);
    if constexpr (T == ScaleType::e8m0) {
      __m512i e = _mm512_cvtepu8_epi32(v);
      __m512i bits = _mm512_slli_epi32(e, 23);  // 2^-127 is subnormal
      bits = _mm512_mask_mov_epi32(bits, _mm512_testn_epi32_mask(e, e), _mm512_set1_epi32(0x00400000));
      return _mm512_castsi512_ps(bits);
    } else {
      // The sign moves from bit 7 to bit 15. The result is a float16 that is too small by a factor of 2^8.
      __m256i h = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(v), 7), _mm256_set1_epi16(int16_t(0xbfff)));
      return _mm512_cvtph_ps(h) * 256.0f;
    }
  }
}

// Loads the scales and biases of n blocks of a weight row, from block b on, such that weight = scale * code + bias.
// group is the index of the first group of the row.
template <ScaleType T, int Group>
IG_INLINE void weight_scales(const Weights& w, int64_t group, int64_t b, int64_t n, F& scales, F& biases) {
  auto load = [&](const void* p) __attribute__((always_inline)) {
    const int64_t at = group + (Group <= kStep ? b : b / 2);
    prefetch(static_cast<const uint8_t*>(p) + at * size_of(T) + kScalesAhead);
    if constexpr (Group <= kStep) {
      return load_16<T>(p, at, n);
    } else {  // a group has two blocks
      static_assert(Group == 2 * kStep);
      const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
      return _mm512_permutexvar_ps(twice, load_16<T>(p, at, n >= kUnit ? kUnit / 2 : n / 2));
    }
  };
  scales = load(w.scales);
  if constexpr (T == ScaleType::e8m0 || T == ScaleType::e4m3) {  // fp4, see kFP4
    biases = scales * -6.0f;
    scales = scales * 0.5f;
  } else {
    biases = w.biases ? load(w.biases) : scales * set(float(-w.zero));
  }
}

// Returns the scales of n blocks times those of the activations. Adds bias * activation sum of these blocks to added.
template <ScaleType T, int Group>
IG_INLINE __m512 unit_scales(const Weights& w, int64_t group, const Activations& x, int64_t b, int64_t n,
                             __m512& added) {
  F scales, biases;
  weight_scales<T, Group>(w, group, b, n, scales, biases);
  const __mmask16 m = first_lanes(n);
  added = fma(biases, _mm512_maskz_loadu_ps(m, x.sums + b), added);
  return scales * _mm512_maskz_loadu_ps(m, x.scales + b);
}

// Computes y[i] = x . W[n0+i] for i < stride and, if S is 2, y[stride+i] for weight row n0+stride+i, of 4-bit codes.
template <bool Wide, bool FP4, ScaleType T, int Group, int S>
static void nibble_rows(const Weights& w, const Activations& x, int64_t n0, int64_t stride, float* y) {
  constexpr int kVectors = Wide ? 4 : 2;  // of activations, for a pair
  constexpr int kPair = 2 * kStep, kBlock = Group < kStep ? Group : kStep;
  constexpr int kBlocks = kPair / kBlock, kPairs = kUnit / kBlocks;  // blocks of a pair, pairs of a unit
  const __m512i low_bits = _mm512_set1_epi8(15);
  const __m512i table = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(kFP4)));
  // A lane has eight columns; this is its block.
  const __m512i block_of_lane = _mm512_srli_epi32(
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), __builtin_ctz(kBlock / 8));
  const int64_t groups = w.groups(), bytes = w.row_bytes(), blocks = w.columns / kBlock;
  for (int64_t r = 0; r < stride; r++) {
    const uint8_t* codes[S];
    int64_t group[S];
    __m512 sum[S], added[S], scales[S];
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      codes[s] = w.codes + (n0 + s * stride + r) * bytes;
      group[s] = (n0 + s * stride + r) * groups;
      sum[s] = added[s] = set(0);
    }
    auto v = static_cast<const __m512i*>(x.data);
    auto products = [&](__m512i q, auto load_x) __attribute__((always_inline)) {
      __m512i low = _mm512_and_si512(q, low_bits), high = _mm512_and_si512(_mm512_srli_epi16(q, 4), low_bits);
      if constexpr (FP4) {
        low = _mm512_shuffle_epi8(table, low);
        high = _mm512_shuffle_epi8(table, high);
      }
      __m512i t = dot8(dot8(zeros(), low, load_x(0)), high, load_x(1));
      if constexpr (Wide) {
        t = dot8(dot8(_mm512_slli_epi32(t, 8), low, load_x(2)), high, load_x(3));
      }
      return _mm512_cvtepi32_ps(t);
    };
    auto pair_of_x = [&](int j) __attribute__((always_inline)) { return load_lanes(v + j); };
    auto pair = [&](__m512i which) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        // weights are read once and must not evict activations
        _mm_prefetch(reinterpret_cast<const char*>(codes[s] + kPrefetchDistance), _MM_HINT_NTA);
        __m512i q = _mm512_loadu_si512(codes[s]);
        IG_KEEP(q);  // otherwise GCC loads it twice
        sum[s] = _mm512_fmadd_ps(products(q, pair_of_x), _mm512_permutexvar_ps(which, scales[s]), sum[s]);
        codes[s] += kPair / 2;
      }
      v += kVectors;
    };
    auto read_scales = [&](int64_t b, int64_t n) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        scales[s] = unit_scales<T, Group>(w, group[s], x, b, n, added[s]);
      }
    };
    const __m512i next = _mm512_set1_epi32(kBlocks);
    int64_t b = 0;
    for (; b + kUnit <= blocks; b += kUnit) {
      read_scales(b, kUnit);
      __m512i which = block_of_lane;
#pragma GCC unroll 4
      for (int i = 0; i < kPairs; i++) {
        pair(which);
        which = _mm512_add_epi32(which, next);
      }
    }
    if (b < blocks) {
      read_scales(b, blocks - b);
      __m512i which = block_of_lane;
      int64_t left = w.columns - b * kBlock;
      for (; left >= kPair; left -= kPair) {
        pair(which);
        which = _mm512_add_epi32(which, next);
      }
      if (left > 0) {
        // More than a step is a pair, too. The activations of a single step are half as wide.
        const bool whole = left > kStep;
        const __mmask64 mask = (uint64_t(1) << left / 2) - 1;
        auto last_of_x = [&](int j) __attribute__((always_inline)) {
          return whole ? load_lanes(v + j)
                       : _mm512_zextsi256_si512(load_bytes(reinterpret_cast<const __m256i*>(v) + j));
        };
#pragma GCC unroll 2
        for (int s = 0; s < S; s++) {
          sum[s] = _mm512_fmadd_ps(products(_mm512_maskz_loadu_epi8(mask, codes[s]), last_of_x),
                                   _mm512_permutexvar_ps(which, scales[s]), sum[s]);
        }
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      y[s * stride + r] = INGOT_ISA::sum(sum[s] + added[s]);
    }
  }
}

// Up to this many columns, reading one row after another is faster than two distant rows at a time.
constexpr int64_t kNarrow = 1024;

// Unpacks a step of codes of 2, 3, 5 or 6 bits to bytes, in order. Each qword of the result has eight codes, which are
// as many bytes as a code has bits.
#if defined(__AVX512VBMI__)
struct StepUnpacker {
  __m512i bytes, bits, code;
  __mmask64 mask;
};

IG_INLINE StepUnpacker make_step_unpacker(int bits) {
  alignas(64) uint8_t bytes[64], at[64];
  for (int i = 0; i < 64; i++) {
    bytes[i] = uint8_t(i / 8 * bits + i % 8);
    at[i] = uint8_t(i % 8 * bits);
  }
  return {_mm512_load_si512(bytes), _mm512_load_si512(at), _mm512_set1_epi8(char((1 << bits) - 1)),
          (uint64_t(1) << bits * 8) - 1};
}

IG_INLINE __m512i unpack_step(__m512i codes, const StepUnpacker& u) {
  const __m512i v = _mm512_permutexvar_epi8(u.bytes, codes);
  return _mm512_and_si512(_mm512_multishift_epi64_epi8(u.bits, v), u.code);
}
#else
// Each word gets the two bytes that contain its two codes; a shift by word aligns them, and another one moves the
// second code to the upper byte.
struct StepUnpacker {
  __m512i words, bytes, down, low, high;
  __m128i up;
  __mmask64 mask;
};

IG_INLINE StepUnpacker make_step_unpacker(int bits) {
  alignas(64) uint16_t words[32], down[32];
  alignas(64) uint8_t bytes[64];
  for (int i = 0; i < 32; i++) {
    const int lane = i / 8, at = i % 8 * 2 * bits;  // a lane has 16 codes, which are `bits` words
    words[i] = uint16_t(lane * bits + i % 8);
    bytes[2 * i] = uint8_t(at / 8);
    bytes[2 * i + 1] = uint8_t(at / 8 + 1);
    down[i] = uint16_t(at % 8);
  }
  const int code = (1 << bits) - 1;
  return {_mm512_load_si512(words),           _mm512_load_si512(bytes),
          _mm512_load_si512(down),            _mm512_set1_epi16(int16_t(code)),
          _mm512_set1_epi16(int16_t(code << 8)), _mm_cvtsi32_si128(8 - bits),
          (uint64_t(1) << bits * 8) - 1};
}

IG_INLINE __m512i unpack_step(__m512i codes, const StepUnpacker& u) {
  __m512i v = _mm512_permutexvar_epi16(u.words, codes);
  v = _mm512_srlv_epi16(_mm512_shuffle_epi8(v, u.bytes), u.down);
  return _mm512_or_si512(_mm512_and_si512(v, u.low), _mm512_and_si512(_mm512_sll_epi16(v, u.up), u.high));
}
#endif

// unpack_step for codes in memory. mask has a bit for each of their bytes.
IG_INLINE __m512i unpack_step(const uint8_t* p, __mmask64 mask, const StepUnpacker& u) {
  return unpack_step(_mm512_maskz_loadu_epi8(mask, p), u);
}

// Calls unit_scales for the matrix's type of scales.
template <int Group>
IG_INLINE __m512 any_unit_scales(const Weights& w, int64_t group, const Activations& x, int64_t b, int64_t n,
                                 __m512& added) {
  switch (w.scale_type) {
    case ScaleType::f16:
      return unit_scales<ScaleType::f16, Group>(w, group, x, b, n, added);
    case ScaleType::bf16:
      return unit_scales<ScaleType::bf16, Group>(w, group, x, b, n, added);
    default:
      return unit_scales<ScaleType::f32, Group>(w, group, x, b, n, added);
  }
}

// Row product of codes that are bytes or are unpacked to bytes: computes y[i] = x . W[n0+i] for i < stride and, if S is
// 2, y[stride+i] for weight row n0+stride+i. Two rows share the loads of activations.
template <bool Bytes, int Group, int S>
static void byte_rows(const Weights& w, const Activations& x, int64_t n0, int64_t stride, float* y) {
  constexpr int kBlock = Group < kStep ? Group : kStep, kBlocks = kStep / kBlock, kSteps = kUnit / kBlocks;
  const StepUnpacker unpacker = make_step_unpacker(Bytes ? 2 : w.bits);
  // A lane has four columns; this is its block.
  const __m512i block_of_lane = kBlocks == 1 ? zeros()
                                             : _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  const __m512i next = _mm512_set1_epi32(kBlocks);
  const int64_t groups = w.groups(), blocks = w.columns / kBlock, bytes = w.row_bytes();
  const int step_bytes = kStep / 8 * w.bits;
  for (int64_t r = 0; r < stride; r++) {
    const uint8_t* codes[S];
    F sum[S], other[S], added[S], scales[S];
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      codes[s] = w.codes + (n0 + s * stride + r) * bytes;
      sum[s] = other[s] = added[s] = set(0);
    }
    auto v = static_cast<const __m512i*>(x.data);
    auto read_scales = [&](int64_t b, int64_t n) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        scales[s] = any_unit_scales<Group>(w, (n0 + s * stride + r) * groups, x, b, n, added[s]);
      }
    };
    auto step = [&](__m512i which, __mmask64 mask, F (&sum)[S], bool ahead) __attribute__((always_inline)) {
      const __m512i high = load_lanes(v), low = load_lanes(v + 1);
#pragma GCC unroll 2
      for (int s = 0; s < S; s++) {
        if (ahead) {
          _mm_prefetch(reinterpret_cast<const char*>(codes[s] + kPrefetchDistance), _MM_HINT_NTA);
        }
        __m512i q = Bytes ? _mm512_maskz_loadu_epi8(mask, codes[s]) : unpack_step(codes[s], mask, unpacker);
        __m512i t = dot8(_mm512_slli_epi32(dot8(zeros(), q, high), 8), q, low);
        sum[s] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(t), _mm512_permutexvar_ps(which, scales[s]), sum[s]);
        codes[s] += step_bytes;
      }
      v += 2;
    };
    const __mmask64 whole = Bytes ? ~uint64_t(0) : unpacker.mask;
    int64_t b = 0;
    for (; b + kUnit <= blocks; b += kUnit) {
      read_scales(b, kUnit);
      __m512i which = block_of_lane;
#pragma GCC unroll 4
      for (int i = 0; i < kSteps; i += 2) {
        step(which, whole, sum, true);
        which = _mm512_add_epi32(which, next);
        step(which, whole, other, Bytes || step_bytes > 32);  // a second prefetch of the same line would cost time
        which = _mm512_add_epi32(which, next);
      }
    }
    if (b < blocks) {
      read_scales(b, blocks - b);
      __m512i which = block_of_lane;
      int64_t left = w.columns - b * kBlock;
      for (; left >= kStep; left -= kStep) {
        step(which, whole, sum, true);
        which = _mm512_add_epi32(which, next);
      }
      if (left > 0) {
        step(which, (uint64_t(1) << left / 8 * w.bits) - 1, sum, false);
      }
    }
#pragma GCC unroll 2
    for (int s = 0; s < S; s++) {
      y[s * stride + r] = INGOT_ISA::sum(sum[s] + other[s] + added[s]);
    }
  }
}

template <bool Bytes, int Group>
static void byte_rows(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  const int64_t half = (n1 - n0) / 2;
  byte_rows<Bytes, Group, 2>(w, x, n0, half, y);
  byte_rows<Bytes, Group, 1>(w, x, n0 + 2 * half, n1 - n0 - 2 * half, y + 2 * half);
}

template <bool Wide>
static void nibble_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  with_nibbles(w, [&]<bool FP4, ScaleType T, int Group>() {
    const int64_t half = w.columns <= kNarrow ? 0 : (n1 - n0) / 2;
    nibble_rows<Wide, FP4, T, Group, 2>(w, x, n0, half, y);
    nibble_rows<Wide, FP4, T, Group, 1>(w, x, n0 + 2 * half, n1 - n0 - 2 * half, y + 2 * half);
  });
}

static void byte_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  with_group(w, [&]<int Group>() {
    w.bits == 8 ? byte_rows<true, Group>(w, x, n0, n1, y) : byte_rows<false, Group>(w, x, n0, n1, y);
  });
}

}  // namespace ingot::cpu::INGOT_ISA
