// NEON of 64-bit ARM; see cpu/simd/simd.h.
#pragma once

#include <arm_neon.h>

namespace ingot::cpu::INGOT_ISA {

using F = float32x4_t;
constexpr int kLanes = 4;

IG_INLINE F set(float v) { return vdupq_n_f32(v); }
IG_INLINE F load(const float* p) { return vld1q_f32(p); }
IG_INLINE F load(const bf16* p) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p)), 16));
}
IG_INLINE F load(const f16* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p))));
}

IG_INLINE void store(float* p, F v) { vst1q_f32(p, v); }
IG_INLINE void store(bf16* p, F v) {
  uint32x4_t bits = vreinterpretq_u32_f32(v);
  uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  uint32x4_t even = vshrq_n_u32(vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff))), 16);
  even = vbslq_u32(vceqq_f32(v, v), even, vdupq_n_u32(0x7fc0));
  vst1_u16(reinterpret_cast<uint16_t*>(p), vmovn_u32(even));
}
IG_INLINE void store(f16* p, F v) {
  vst1_u16(reinterpret_cast<uint16_t*>(p), vreinterpret_u16_f16(vcvt_f16_f32(v)));
}

IG_INLINE F fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
IG_INLINE F max(F a, F b) { return vmaxq_f32(a, b); }
IG_INLINE F min(F a, F b) { return vminq_f32(a, b); }
IG_INLINE F abs(F v) { return vabsq_f32(v); }
IG_INLINE F sqrt(F v) { return vsqrtq_f32(v); }
IG_INLINE F round(F v) { return vrndnq_f32(v); }
template <class Mask>
IG_INLINE F select(Mask m, F a, F b) { return vbslq_f32((uint32x4_t)m, a, b); }
IG_INLINE F copy_sign(F magnitude, F sign) { return vbslq_f32(vdupq_n_u32(0x80000000u), sign, magnitude); }
IG_INLINE F power_of_two(F n) {
  return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
}

IG_INLINE float sum(F v) { return vaddvq_f32(v); }
IG_INLINE float highest(F v) { return vmaxvq_f32(v); }

// Converts bytes to float32; load_halves converts their low and high nibbles.
IG_INLINE uint32x4_t widen_bytes(const uint8_t* p) {
  uint32_t four;
  __builtin_memcpy(&four, p, 4);
  return vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four))));
}
IG_INLINE F load(const uint8_t* p) { return vcvtq_f32_u32(widen_bytes(p)); }
IG_INLINE void load_halves(const uint8_t* p, F& low, F& high) {
  uint32x4_t v = widen_bytes(p);
  low = vcvtq_f32_u32(vandq_u32(v, vdupq_n_u32(15)));
  high = vcvtq_f32_u32(vshrq_n_u32(v, 4));
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
  uint32x4_t bits = vreinterpretq_u32_u16(vld1q_u16(reinterpret_cast<const uint16_t*>(p)));
  even = vreinterpretq_f32_u32(vshlq_n_u32(bits, 16));
  odd = vreinterpretq_f32_u32(vandq_u32(bits, vdupq_n_u32(0xffff0000u)));
}

// Returns the sums of the lanes of kLanes vectors.
IG_INLINE F sums(const F* v) { return vpaddq_f32(vpaddq_f32(v[0], v[1]), vpaddq_f32(v[2], v[3])); }

}  // namespace ingot::cpu::INGOT_ISA
