// Measures the machine's limits for the CPU benchmarks. `peaks THREADS` reads lines from standard input; each "read",
// "fma", "i16", "i8" or "bf16" prints one number: memory bandwidth in GB/s, or 10^9 operations per second (a
// multiply-add counts as two), 0 without such instructions. Compile with -O3 and the instructions to measure.

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "machine.h"

namespace {

constexpr size_t kBytes = size_t(512) << 20;
constexpr int kPasses = 7;
constexpr double kSeconds = 0.15; // approximate time of each arithmetic pass

typedef uint64_t Words __attribute__((vector_size(kWidth)));

volatile uint64_t sink;

// Hides a value from the compiler, which would otherwise fold the steps of a chain.
#if defined(__x86_64__)
#define PIN(v) asm volatile("" : "+v"(v))
#elif defined(__aarch64__)
#define PIN(v) asm volatile("" : "+w"(v))
#else
#define PIN(v) asm volatile("" : "+m"(v))
#endif

// Runs fn(thread) on all threads at once, kPasses times. Returns the median time from the first start to the last end.
double Median(int threads, const std::function<void(int)>& fn) {
  std::barrier<> gate(threads);
  std::vector<double> begun(threads), ended(threads), all;
  auto body = [&](int t) {
    for (int pass = 0; pass <= kPasses; pass++) { // the first is a warm-up
      gate.arrive_and_wait();
      begun[t] = Now();
      fn(t);
      ended[t] = Now();
      gate.arrive_and_wait();
      if (t == 0 && pass > 0)
        all.push_back(*std::max_element(ended.begin(), ended.end()) - *std::min_element(begun.begin(), begun.end()));
    }
  };
  std::vector<std::thread> team;
  for (int t = 1; t < threads; t++) team.emplace_back(body, t);
  body(0);
  for (auto& t : team) t.join();
  std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
  return all[all.size() / 2];
}

uint64_t Sum(const char* p, size_t bytes) {
  const Words* at = reinterpret_cast<const Words*>(p);
  Words a{}, b{}, c{}, d{};
  for (const Words* end = at + bytes / sizeof(Words); at < end; at += 8) {
    a += at[0], b += at[1], c += at[2], d += at[3];
    a += at[4], b += at[5], c += at[6], d += at[7];
  }
  a += b + c + d;
  return a[0];
}

double Read(int threads) {
  static char* data = nullptr;
  if (!data) {
    data = static_cast<char*>(LargePages(kBytes));
    if (!data) return 0;
    std::memset(data, 1, kBytes);
  }
  const size_t share = kBytes / threads / 4096 * 4096;
  const double seconds = Median(threads, [&](int t) { sink = Sum(data + t * share, share); });
  return share * threads / seconds / 1e9;
}

// Returns the rate of a kernel that does operations * rounds. The number of rounds makes a pass take about kSeconds.
double Rate(int threads, double operations, void (*kernel)(long)) {
  long rounds = 1000;
  for (double took = 0; took < kSeconds / 10; rounds *= 2) {
    const double begun = Now();
    kernel(rounds);
    took = Now() - begun;
  }
  rounds *= 5;
  return operations * rounds * threads / Median(threads, [&](int) { kernel(rounds); }) / 1e9;
}

// Independent accumulators hide the latency of a step.
constexpr size_t kChains = 12;

// Runs step(accumulator) on each, repeatedly. Constant indices keep the accumulators in registers.
template <class V, class Step, size_t... J>
void Chains(long rounds, Step step, std::index_sequence<J...>) {
  V a[] = {V{} + J...};
  for (long i = 0; i < rounds; i++) ((step(a[J])), ...);
  V total = a[0];
  ((total += a[J]), ...);
  uint64_t first;
  std::memcpy(&first, &total, sizeof first);
  sink = first;
}

template <class V, class Step>
void Chains(long rounds, Step step) {
  Chains<V>(rounds, step, std::make_index_sequence<kChains>());
}

void FMA(long rounds) {
  Floats x = Floats{} + 1.0000001f, y = Floats{} + 1e-9f;
  Chains<Floats>(rounds, [&](Floats& a) {
    a = a * x + y;
    PIN(a);
  });
}

// One instruction multiplies, the other adds neighbours. PIN keeps the product in the loop.
#if defined(__AVX512BW__)
typedef int32_t Ints __attribute__((vector_size(64)));
#define OP(name, x, y) Ints(_mm512_##name(__m512i(x), __m512i(y)))
#elif defined(__AVX2__)
typedef int32_t Ints __attribute__((vector_size(32)));
#define OP(name, x, y) Ints(_mm256_##name(__m256i(x), __m256i(y)))
#endif

#if defined(__AVX512VNNI__)  // one instruction also adds its products
#define DOT16(a, x, y) Ints(_mm512_dpwssd_epi32(__m512i(a), __m512i(x), __m512i(y)))
#define DOT8(a, x, y) Ints(_mm512_dpbusd_epi32(__m512i(a), __m512i(x), __m512i(y)))
#elif defined(OP)
#define DOT16(a, x, y) OP(add_epi32, a, OP(madd_epi16, x, y))
#define DOT8(a, x, y) OP(add_epi16, a, OP(maddubs_epi16, x, y))
#endif

#if defined(OP)
void Madd(long rounds) {
  Ints x = Ints{} + 0x00030003, y = Ints{} + 0x00050005;
  Chains<Ints>(rounds, [&](Ints& a) {
    PIN(x);
    a = DOT16(a, x, y);
    PIN(a);
  });
}

void Maddubs(long rounds) {
  Ints x = Ints{} + 0x03030303, y = Ints{} + 0x05050505;
  Chains<Ints>(rounds, [&](Ints& a) {
    PIN(x);
    a = DOT8(a, x, y);
    PIN(a);
  });
}

#if defined(__AVX512BF16__)
void DotBF16(long rounds) {
  const auto x = (__m512bh)_mm512_set1_epi32(0x3f803f80), y = (__m512bh)_mm512_set1_epi32(0x30003000);
  Chains<Floats>(rounds, [&](Floats& a) {
    a = Floats(_mm512_dpbf16_ps(__m512(a), x, y));
    PIN(a);
  });
}
#endif

double I16(int threads) { return Rate(threads, 2.0 * kChains * sizeof(Ints) / 2, Madd); }
double I8(int threads) { return Rate(threads, 2.0 * kChains * sizeof(Ints), Maddubs); }
#elif defined(__ARM_NEON)
void Mlal(long rounds) {
  int16x4_t x = vdup_n_s16(3), y = vdup_n_s16(5);
  Chains<int32x4_t>(rounds, [&](int32x4_t& a) {
    PIN(x);
    a = vmlal_s16(a, x, y);
    PIN(a);
  });
}

double I16(int threads) { return Rate(threads, 2.0 * kChains * 4, Mlal); }

#if defined(__ARM_FEATURE_DOTPROD)
void Dot(long rounds) {
  int8x16_t x = vdupq_n_s8(3), y = vdupq_n_s8(5);
  Chains<int32x4_t>(rounds, [&](int32x4_t& a) {
    PIN(x);
    a = vdotq_s32(a, x, y);
    PIN(a);
  });
}

double I8(int threads) { return Rate(threads, 2.0 * kChains * 16, Dot); }
#else
double I8(int) { return 0; }
#endif
#else
double I16(int) { return 0; }
double I8(int) { return 0; }
#endif

double BF16([[maybe_unused]] int threads) {
#if defined(__AVX512BF16__)
  return Rate(threads, 2.0 * kChains * sizeof(Floats) / 2, DotBF16);
#else
  return 0;
#endif
}

} // namespace

int main(int argc, char** argv) {
  const int threads = argc == 2 ? std::atoi(argv[1]) : 0;
  if (threads < 1) {
    std::fprintf(stderr, "usage: peaks THREADS\n");
    return 2;
  }
  for (std::string line; std::getline(std::cin, line);) {
    double value;
    if (line == "read") {
      value = Read(threads);
    } else if (line == "fma") {
      value = Rate(threads, 2.0 * kChains * sizeof(Floats) / sizeof(float), FMA);
    } else if (line == "i16") {
      value = I16(threads);
    } else if (line == "i8") {
      value = I8(threads);
    } else if (line == "bf16") {
      value = BF16(threads);
    } else {
      std::fprintf(stderr, "peaks: no measurement %s\n", line.c_str());
      return 2;
    }
    std::printf("%.3f\n", value);
    std::fflush(stdout);
  }
}
