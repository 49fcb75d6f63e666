#include "cpu/isa.h"

#include <atomic>
#include <cstdlib>
#include <stdexcept>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ingot::cpu {

namespace {

constexpr const char* kNames[] = {"portable", "avx2", "avx512", "avx512vbmi", "avx512bf16", "zen4", "neon"};
constexpr int kCount = sizeof(kNames) / sizeof(kNames[0]);

#if defined(__x86_64__)
// __builtin_cpu_supports of Clang 14 does not know f16c.
bool has_f16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

bool has(Isa isa) {
  switch (isa) {
    case Isa::portable:
      return true;
#if defined(__x86_64__)
    case Isa::avx2:
      __builtin_cpu_init();
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
#if defined(IG_HAS_AVX512)
    case Isa::avx512:
      return has(Isa::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vnni");
    case Isa::avx512vbmi:
      return has(Isa::avx512) && __builtin_cpu_supports("avx512vbmi");
    case Isa::avx512bf16:
    case Isa::zen4:
      return has(Isa::avx512) && __builtin_cpu_supports("avx512bf16");
#endif
#elif defined(__aarch64__)
    case Isa::neon:
      return true;
#endif
    default:
      return false;
  }
}

// Reports whether a supported set is the best choice for this processor.
bool suits([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::zen4) {
    return __builtin_cpu_is("amd");
  }
#endif
  return true;
}

Isa best() {
  int i = kCount - 1;
  while (!has(Isa(i)) || !suits(Isa(i))) {  // ends at portable
    i--;
  }
  return Isa(i);
}

Isa parse(const std::string& name) {
  if (name.empty()) {
    return best();
  }
  std::string known;
  for (int i = 0; i < kCount; i++) {
    if (name == kNames[i]) {
      if (!has(Isa(i))) {
        throw std::invalid_argument("this processor or engine does not support the instruction set " + name);
      }
      return Isa(i);
    }
    known += (i ? ", " : "") + std::string(kNames[i]);
  }
  throw std::invalid_argument("unknown instruction set " + name + "; known sets: " + known);
}

std::atomic<Isa> chosen{best()};
std::atomic<Math> precision{Math::exact};

}  // namespace

Isa isa() { return chosen.load(std::memory_order_relaxed); }
void set_isa(const std::string& name) { chosen = parse(name); }
const char* name_of(Isa isa) { return kNames[int(isa)]; }
Math math() { return precision.load(std::memory_order_relaxed); }
void set_math(Math m) { precision = m; }

}  // namespace ingot::cpu
