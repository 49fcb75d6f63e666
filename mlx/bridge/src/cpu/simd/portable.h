// Portable C++ with the vector extension of GCC and Clang; see cpu/simd/simd.h.
#pragma once

namespace ingot::cpu::INGOT_ISA {

typedef float F __attribute__((vector_size(16)));
typedef int32_t I __attribute__((vector_size(16)));
constexpr int kLanes = 4;

IG_INLINE F set(float v) { return F{v, v, v, v}; }
IG_INLINE F load(const float* p) {
  F v;
  __builtin_memcpy(&v, p, 16);
  return v;
}
IG_INLINE F load(const bf16* p) {
  I v = {int32_t(uint32_t(p[0].bits) << 16), int32_t(uint32_t(p[1].bits) << 16), int32_t(uint32_t(p[2].bits) << 16),
         int32_t(uint32_t(p[3].bits) << 16)};
  return (F)v;
}

// Converts float16 exactly: the exponent and the fraction, shifted into place, are too small by 2^112.
IG_INLINE float widen(uint16_t h) {
  uint32_t bits = uint32_t(h & 0x7fff) << 13;
  float v;
  __builtin_memcpy(&v, &bits, 4);
  v *= 0x1p112f;
  __builtin_memcpy(&bits, &v, 4);
  if ((h & 0x7c00) == 0x7c00) {
    bits |= 0x7f800000;
  }
  bits |= uint32_t(h & 0x8000) << 16;
  __builtin_memcpy(&v, &bits, 4);
  return v;
}

// Rounds to float16, to nearest even: adds a number whose last bit has the weight of the float16's last bit.
IG_INLINE uint16_t narrow(float v) {
  uint32_t bits;
  __builtin_memcpy(&bits, &v, 4);
  uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) {
    return uint16_t(sign | 0x7e00);
  }
  if (bits >= 0x477ff000) {  // 65520 and more round to infinity
    return uint16_t(sign | 0x7c00);
  }
  uint32_t exponent = bits & 0x7f800000;
  uint32_t least = exponent > 0x38800000 ? exponent : 0x38800000;  // the exponent of 2^-14, the smallest normal float16
  uint32_t magic = least + (13 << 23);
  float m, a;
  __builtin_memcpy(&m, &magic, 4);
  __builtin_memcpy(&a, &bits, 4);
  a += m;
  __builtin_memcpy(&bits, &a, 4);
  // The difference between the sum and the added number counts ulps of the float16.
  return uint16_t(sign | ((bits - magic) + (((least >> 23) - 113) << 10)));
}

IG_INLINE F load(const f16* p) { return F{widen(p[0].bits), widen(p[1].bits), widen(p[2].bits), widen(p[3].bits)}; }

IG_INLINE void store(float* p, F v) { __builtin_memcpy(p, &v, 16); }
IG_INLINE void store(bf16* p, F v) {
  for (int i = 0; i < 4; i++) {
    uint32_t bits;
    float x = v[i];
    __builtin_memcpy(&bits, &x, 4);
    p[i].bits = x != x ? 0x7fc0 : uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}
IG_INLINE void store(f16* p, F v) {
  for (int i = 0; i < 4; i++) {
    p[i].bits = narrow(v[i]);
  }
}

IG_INLINE F fma(F a, F b, F c) { return a * b + c; }
template <class Mask>
IG_INLINE F select(Mask m, F a, F b) { return (F)(((I)m & (I)a) | (~(I)m & (I)b)); }
IG_INLINE F max(F a, F b) { return select(a > b, a, b); }
IG_INLINE F min(F a, F b) { return select(a < b, a, b); }
IG_INLINE F abs(F v) { return (F)((I)v & I{0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff}); }
IG_INLINE F sqrt(F v) {
  return F{__builtin_sqrtf(v[0]), __builtin_sqrtf(v[1]), __builtin_sqrtf(v[2]), __builtin_sqrtf(v[3])};
}
IG_INLINE F round(F v) {
  return F{__builtin_rintf(v[0]), __builtin_rintf(v[1]), __builtin_rintf(v[2]), __builtin_rintf(v[3])};
}
IG_INLINE F copy_sign(F magnitude, F sign) {
  I bit = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN};
  return (F)(((I)magnitude & ~bit) | ((I)sign & bit));
}
IG_INLINE F power_of_two(F n) {
  I v = {(int32_t(n[0]) + 127) << 23, (int32_t(n[1]) + 127) << 23, (int32_t(n[2]) + 127) << 23,
         (int32_t(n[3]) + 127) << 23};
  return (F)v;
}

IG_INLINE float sum(F v) { return (v[0] + v[2]) + (v[1] + v[3]); }
IG_INLINE float highest(F v) {
  float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
  return a > b ? a : b;
}

// Converts bytes to float32; load_halves converts their low and high nibbles.
IG_INLINE F load(const uint8_t* p) { return F{float(p[0]), float(p[1]), float(p[2]), float(p[3])}; }
IG_INLINE void load_halves(const uint8_t* p, F& low, F& high) {
  low = F{float(p[0] & 15), float(p[1] & 15), float(p[2] & 15), float(p[3] & 15)};
  high = F{float(p[0] >> 4), float(p[1] >> 4), float(p[2] >> 4), float(p[3] >> 4)};
}

IG_INLINE void prefetch(const void* p) { __builtin_prefetch(p); }

// Loads 2*kLanes elements: the first and the second half. For bf16 it loads the even and the odd elements, which needs
// no shuffle.
template <class T>
IG_INLINE void load_two(const T* p, F& a, F& b) {
  a = load(p);
  b = load(p + kLanes);
}
IG_INLINE void load_two(const bf16* p, F& even, F& odd) {
  I bits;
  __builtin_memcpy(&bits, p, 16);
  I high = {int32_t(0xffff0000), int32_t(0xffff0000), int32_t(0xffff0000), int32_t(0xffff0000)};
  even = (F)(bits << 16);
  odd = (F)(bits & high);
}

// Returns the sums of the lanes of kLanes vectors.
IG_INLINE F sums(const F* v) { return F{sum(v[0]), sum(v[1]), sum(v[2]), sum(v[3])}; }

}  // namespace ingot::cpu::INGOT_ISA
