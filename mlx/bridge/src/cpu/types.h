// Element types of the kernels: plain bits without functions, so that every translation unit may include this header.
#pragma once

#include <cstdint>

namespace ingot::cpu {

struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};

enum class Type { f32, f16, bf16 };

}  // namespace ingot::cpu
