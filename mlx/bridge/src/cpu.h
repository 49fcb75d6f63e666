// What the CPU kernels are chosen by: the instruction set and the precision of products.
#pragma once

#include <cstdint>
#include <string>

namespace ingot::cpu {

// In order of preference within an architecture. zen4 has the instructions of avx512bf16, and adds 512 bits beside
// products: AMD's since Zen 4, while Intel's add where they multiply (https://uops.info: VPADDW, VPDPWSSD).
enum class Isa { portable, avx2, avx512, avx512bf16, zen4, neon, dotprod };

// The set that kernels use: the best that this processor and system have, unless INGOT_CPU_ISA or set_isa says
// otherwise.
Isa isa();
void set_isa(const std::string& name);  // "" is the best; throws for one that is unknown or not there
const char* name_of(Isa isa);

// exact: int16 activations, or float32 where those would show, or bfloat16 as it is. fast: int8 activations, and in
// attention values may have bfloat16 weights.
enum class Math { exact, fast };
Math math();
void set_math(Math m);

// Picks a member of a family of tables, one for each instruction set; an absent one is the portable one.
template <class Table>
struct Choice {
  const Table* portable;
  const Table* avx2 = nullptr;
  const Table* avx512 = nullptr;
  const Table* neon = nullptr;
  const Table* dotprod = nullptr;
  const Table* avx512bf16 = nullptr;  // after the others, since tables are named by place
  const Table* zen4 = nullptr;

  const Table& get() const {
    switch (isa()) {  // a set whose table is absent has that of the next
      case Isa::zen4:
        if (zen4) {
          return *zen4;
        }
        [[fallthrough]];
      case Isa::avx512bf16:
        if (avx512bf16) {
          return *avx512bf16;
        }
        [[fallthrough]];
      case Isa::avx512:
        if (avx512) {
          return *avx512;
        }
        [[fallthrough]];
      case Isa::avx2:
        return avx2 ? *avx2 : *portable;
      case Isa::dotprod:
        if (dotprod) {
          return *dotprod;
        }
        [[fallthrough]];
      case Isa::neon:
        return neon ? *neon : *portable;
      case Isa::portable:
        break;
    }
    return *portable;
  }
};

}  // namespace ingot::cpu
