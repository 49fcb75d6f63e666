// The instruction set and the precision of the CPU kernels.
#pragma once

#include <cstdint>
#include <string>

// The installer defines INGOT_NO_AVX512 on processors without AVX-512, and leaves out the files of its kernels.
#if defined(__x86_64__) && !defined(INGOT_NO_AVX512)
#define IG_HAS_AVX512 1
#endif

namespace ingot::cpu {

// In order of preference within an architecture. avx512bf16 also uses VBMI where the processor has it, which is
// everywhere but on Cooper Lake. zen4 has the instructions of avx512bf16, but executes 512-bit additions beside
// multiplications (AMD since Zen 4). Intel's processors use the same units for both (https://uops.info: VPADDW,
// VPDPWSSD).
enum class Isa { portable, avx2, avx512, avx512vbmi, avx512bf16, zen4, neon };

// Returns the instruction set that kernels use: the best one that the processor and the system support, unless
// INGOT_CPU_ISA or set_isa chose another.
Isa isa();
void set_isa(const std::string& name);  // "": the best one; throws if the set is unknown or not supported
const char* name_of(Isa isa);

// exact: activations become int16, or stay bfloat16 or float32 where int16 would lose precision. fast: activations
// become int8, and attention may round softmax weights to bfloat16.
enum class Math { exact, fast };
Math math();
void set_math(Math m);

// A family of kernel tables, one for each instruction set. get returns the table of the current set; if it is absent,
// that of the next lower set, and finally portable.
template <class Table>
struct Choice {
  const Table* portable;
  const Table* avx2 = nullptr;
  const Table* avx512 = nullptr;
  const Table* avx512vbmi = nullptr;
  const Table* avx512bf16 = nullptr;
  const Table* zen4 = nullptr;
  const Table* neon = nullptr;

  const Table& get() const {
    switch (isa()) {  // a set without a table falls through to the next lower one
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
      case Isa::avx512vbmi:
        if (avx512vbmi) {
          return *avx512vbmi;
        }
        [[fallthrough]];
      case Isa::avx512:
        if (avx512) {
          return *avx512;
        }
        [[fallthrough]];
      case Isa::avx2:
        return avx2 ? *avx2 : *portable;
      case Isa::neon:
        return neon ? *neon : *portable;
      case Isa::portable:
        break;
    }
    return *portable;
  }
};

}  // namespace ingot::cpu
