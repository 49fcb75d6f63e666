// The largest elements of a row.
#pragma once

#include "cpu/rows/rows.h"
#include "cpu/rows/sweep.h"

namespace ingot::cpu::INGOT_ISA {

IG_INLINE bool any(F flags) { return highest(flags) > 0.0f; }

template <class T>
static int64_t largest(const void* from, int64_t n, float* value) {
  const T* x = static_cast<const T*>(from);
  F zero = set(0.0f), one = set(1.0f);
  // Four independent maxima hide the latency of comparisons.
  F m[4], nan[4];
  for (int j = 0; j < 4; j++) {
    m[j] = set(-__builtin_inff());
    nan[j] = zero;
  }
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      F v = load(x + i + j * kLanes);
      nan[j] = select(v != v, one, nan[j]);
      m[j] = select(v > m[j], v, m[j]);
    }
  }
  sweep(n - i, [&, x, i](int64_t k, auto part) IG_LAMBDA {
    F v = part.keep(part.load(x + i + k), -__builtin_inff());
    nan[0] = select(v != v, one, nan[0]);
    m[0] = select(v > m[0], v, m[0]);
  });
  bool nans = any(nan[0] + nan[1] + (nan[2] + nan[3]));
  float best = nans ? __builtin_nanf("") : highest(max(max(m[0], m[1]), max(m[2], m[3])));
  *value = best;
  F wanted = set(best);
  for (i = 0; i + kLanes <= n; i += kLanes) {
    F v = load(x + i);
    F hit = nans ? select(v != v, one, zero) : select(v == wanted, one, zero);
    if (any(hit)) {
      break;
    }
  }
  for (; i < n; i++) {
    float v = get(x + i);
    if (nans ? v != v : v == best) {
      return i;
    }
  }
  return 0;
}

template <class T>
static void block_peaks(const void* from, int64_t n, int64_t block, float* peaks) {
  const T* x = static_cast<const T*>(from);
  F infinity = set(__builtin_inff());
  for (int64_t begin = 0; begin < n; begin += block, peaks++) {
    F m = set(-__builtin_inff());
    sweep(block < n - begin ? block : n - begin, [=, &m](int64_t i, auto part) IG_LAMBDA {
      F v = part.keep(part.load(x + begin + i), -__builtin_inff());
      v = select(v != v, infinity, v);
      m = max(v, m);
    });
    *peaks = highest(m);
  }
}

template <class T>
static int64_t not_below(const void* from, int64_t n, float threshold, int32_t first, float* values, int32_t* ids) {
  const T* x = static_cast<const T*>(from);
  F t = set(threshold), zero = set(0.0f), one = set(1.0f);
  int64_t count = 0;
  sweep(n, [&, x, t, zero, one](int64_t i, auto part) IG_LAMBDA {
    F v = part.load(x + i);
    F hit = part.keep(select(v < t, zero, one), 0.0f);
    if (!any(hit)) {
      return;
    }
    float flags[kLanes], lanes[kLanes];
    store(flags, hit);
    store(lanes, v);
    for (int j = 0; j < kLanes; j++) {
      if (flags[j] != 0.0f) {
        values[count] = lanes[j];
        ids[count++] = first + int32_t(i) + j;
      }
    }
  });
  return count;
}

}  // namespace ingot::cpu::INGOT_ISA
