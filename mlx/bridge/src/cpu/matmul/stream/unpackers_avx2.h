// Unpacking of codes of 2 to 6 and 8 bits with AVX2 for products that stream them; see pair_row_avx2.h and
// small_batch_avx2.h.
#pragma once

#include "cpu/matmul/stream/vector_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Steps of four vectors of int16, of which the first two have the columns of the first half of the step.
struct Halves {
  static constexpr int kVectors = 4;  // of a step's activations

  // Adds the products of a step's unpacked codes and an activation row, times the scales of its blocks.
  template <int Blocks>
  static inline __attribute__((always_inline)) void add(const __m256i* q, const __m256i* x, const float* scales,
                                                        __m256& sum) {
    __m256i t[2] = {_mm256_madd_epi16(q[0], load_bytes(x)), _mm256_madd_epi16(q[2], load_bytes(x + 2))};
    t[0] = add16(t[0], q[1], load_bytes(x + 1));
    t[1] = add16(t[1], q[3], load_bytes(x + 3));
    t[0] = Blocks == 1 ? _mm256_add_epi32(t[0], t[1]) : t[0];
#pragma GCC unroll 2
    for (int b = 0; b < Blocks; b++) {
      sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(t[b]), _mm256_broadcast_ss(scales + b), sum);
    }
  }
};

// Unpacks a step of 2-, 3-, 5- or 6-bit codes to four vectors of int16, each of 16 columns in either half: vectors 0
// and 1 have the columns of the first 32, vectors 2 and 3 of the others. A shuffle moves the bytes that contain two
// codes to each word, from where masks take them without aligning them. The two words of a lane, which are added, are
// eight columns apart, so that their codes lie at the same bit: sums are multiples of a power of two, which finish
// divides by. Both are exact.
template <int Bits>
struct Pairs : Halves {
  static constexpr int kBits = Bits;
  static constexpr bool kDivides = true;  // whether finish divides the sum; biases are then added after it
  static constexpr int kQuarter = 2 * Bits, kHalf = 4 * Bits;  // bytes of 16 and of 32 columns
  // Whether 16 bytes contain the codes of two vectors, and of all four. They are then loaded to both halves of a
  // vector. Otherwise a load of 32 bytes begins so early that each half has its codes: nothing must cross the halves.
  static constexpr bool kOne = Bits <= 3, kAll = Bits == 2;
  // The bytes that load may read before and from its address on.
  static constexpr int kBefore = kOne ? 0 : 16 - kQuarter;
  static constexpr int kReach = kAll ? 16 : kOne ? kHalf + 16 : kHalf + 32 - kBefore;

  __m256i first, second, mask;
  __m256 factor;

  Pairs() {
    alignas(32) uint8_t bytes[2][32];
    alignas(32) uint16_t masks[16];
    alignas(32) float factors[8];
    for (int i = 0; i < 16; i++) {
      const int word = i % 8, pair = word / 2 + word % 2 * 4, at = pair * 2 * Bits;
      const int half = i < 8 ? kBefore : kOne ? kQuarter : 0;  // where the columns of this half begin
      for (int j = 0; j < 2; j++) {
        bytes[0][2 * i + j] = uint8_t(half + at / 8 + j);
        bytes[1][2 * i + j] = uint8_t(half + at / 8 + j + kHalf);  // used if 16 bytes have all codes
      }
      masks[i] = uint16_t(((1 << Bits) - 1) << at % 8);
      factors[i / 2] = 1.0f / float(1 << at % 8);
    }
    first = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes[0]));
    second = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes[1]));
    mask = _mm256_load_si256(reinterpret_cast<const __m256i*>(masks));
    factor = _mm256_load_ps(factors);
  }

  static __attribute__((always_inline)) __m256i bytes_of(const uint8_t* p) {
    return kOne ? _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))
                : load_bytes(p - kBefore);
  }

  // Loads the codes of a step, which unpack takes.
  static inline __attribute__((always_inline)) void load(const uint8_t* p, __m256i* raw) {
    raw[0] = bytes_of(p);
    raw[1] = kAll ? raw[0] : bytes_of(p + kHalf);
  }
  inline __attribute__((always_inline)) void unpack(const __m256i* raw, __m256i* q) const {
    const __m256i v0 = _mm256_shuffle_epi8(raw[0], first), v1 = _mm256_shuffle_epi8(raw[1], kAll ? second : first);
    q[0] = _mm256_and_si256(v0, mask);
    q[1] = _mm256_and_si256(_mm256_srli_epi16(v0, Bits), mask);
    q[2] = _mm256_and_si256(v1, mask);
    q[3] = _mm256_and_si256(_mm256_srli_epi16(v1, Bits), mask);
  }
  inline __attribute__((always_inline)) __m256 finish(__m256 sum, __m256 added) const {
    return _mm256_fmadd_ps(sum, factor, added);
  }
};

// Unpacks a step of 8-bit codes as Pairs does: of each 32 columns the even ones, then the odd ones.
struct Bytes : Halves {
  static constexpr bool kDivides = false;
  static constexpr int kBits = 8, kBefore = 0, kReach = kStep;

  static inline __attribute__((always_inline)) void load(const uint8_t* p, __m256i* raw) {
    raw[0] = load_bytes(p);
    raw[1] = load_bytes(p + 32);
  }
  static inline __attribute__((always_inline)) void unpack(const __m256i* raw, __m256i* q) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
      q[2 * i] = _mm256_and_si256(raw[i], _mm256_set1_epi16(255));
      q[2 * i + 1] = _mm256_srli_epi16(raw[i], 8);
    }
  }
  static inline __attribute__((always_inline)) __m256 finish(__m256 sum, __m256) { return sum; }
};

// Unpacks a step of 4-bit codes to four vectors of int16 if Wide, otherwise two of bytes. A dword has the codes of
// eight columns.
template <bool Wide>
struct Nibbles {
  static constexpr bool kDivides = false;
  static constexpr int kBits = 4, kVectors = Wide ? 4 : 2, kBefore = 0, kReach = kStep / 2;

  static inline __attribute__((always_inline)) void load(const uint8_t* p, __m256i* raw) { raw[0] = load_bytes(p); }
  static inline __attribute__((always_inline)) void unpack(const __m256i* raw, __m256i* q) {
    Wide ? nibble_words(raw[0], q) : nibble_bytes<false>(raw[0], q);
  }
  template <int Blocks>
  static inline __attribute__((always_inline)) void add(const __m256i* q, const __m256i* x, const float* by,
                                                        __m256& sum) {
    const __m256i t = Wide ? word_sums(q, x) : byte_sums<Integers::bytes>(q, x);
    sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(t), lane_scales<Blocks>(by), sum);
  }
  static inline __attribute__((always_inline)) __m256 finish(__m256 sum, __m256) { return sum; }
};

// Copies codes to a buffer of the given size, with room around them for loads that reach further. Returns where they
// are.
static __attribute__((noinline)) const uint8_t* copy_codes(uint8_t* to, size_t size, const uint8_t* codes,
                                                           int64_t bytes) {
  __builtin_memset(to, 0, size);
  __builtin_memcpy(to + 32, codes, size_t(bytes));
  return to + 32;
}

}  // namespace ingot::cpu::INGOT_ISA
