#include <algorithm>
#include <atomic>
#include <cmath>

#include "cpu/matmul/matmul.h"
#include "cpu/team/team.h"

namespace ingot::cpu {

namespace {

constexpr int64_t kChunk = 512;            // scales that are widened at a time
constexpr int64_t kGrain = 64 * kChunk;    // scales of a piece of work
constexpr float kMaxZero = 255;            // the largest code

Type type_of_scales(const Weights& w) {
  return w.scale_type == ScaleType::f32 ? Type::f32 : w.scale_type == ScaleType::f16 ? Type::f16 : Type::bf16;
}

// Reports whether biases [from, to) equal -zero * scale. If zero is negative, it is set to what the first scale that is
// not 0 implies.
bool is_symmetric(const Weights& w, int64_t from, int64_t to, float& zero) {
  const auto& k = matmul_kernels();
  const Type type = type_of_scales(w);
  float scales[kChunk], biases[kChunk];
  for (int64_t i = from; i < to; i += kChunk) {
    const int64_t n = std::min(kChunk, to - i), at = i * w.scale_bytes();
    k.widen(type, static_cast<const uint8_t*>(w.scales) + at, scales, n);
    k.widen(type, static_cast<const uint8_t*>(w.biases) + at, biases, n);
    for (int64_t j = 0; j < n && zero < 0; j++) {
      const float ratio = -biases[j] / scales[j];
      if (scales[j] != 0) {
        if (!(ratio >= 0 && ratio <= kMaxZero && ratio == std::floor(ratio))) {
          return false;
        }
        zero = ratio;
      }
    }
    bool same = true;
    for (int64_t j = 0; j < n; j++) {
      same &= biases[j] == scales[j] * -std::max(zero, 0.0f);
    }
    if (!same) {
      return false;
    }
  }
  return true;
}

}  // namespace

void drop_biases(Weights& w) {
  const int64_t n = w.format == Format::affine && w.biases ? w.rows * w.groups() : 0;
  float zero = -1;
  // Most weights have biases of their own, so the first scales decide.
  if (!is_symmetric(w, 0, std::min(n, kChunk), zero) || zero < 0) {
    return;
  }
  std::atomic<bool> same{true};
  parallel(n, kGrain, [&](int64_t from, int64_t to) {
    float known = zero;
    if (same.load(std::memory_order_relaxed) && !is_symmetric(w, from, to, known)) {
      same.store(false, std::memory_order_relaxed);
    }
  });
  if (same) {
    w.biases = nullptr;
    w.zero = int(zero);
  }
}

}  // namespace ingot::cpu
