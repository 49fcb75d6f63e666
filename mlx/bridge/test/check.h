// Shared parts of the programs that check kernels: guarded memory, random numbers, and failures.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cpu/types.h"
#include "guard.h"

namespace check {

// Memory of exactly n elements. On the heap, the address sanitizer detects reads past it; it is aligned to 8 bytes
// only, like MLX's memory. In the other places it borders on a guard page.
template <class T>
class Exact {
 public:
  explicit Exact(size_t n) : n_(n), place_(place()) {
    if (place_ != Place::heap) {
      data_ = reinterpret_cast<T*>(take_pages(n * sizeof(T), place_));
      return;
    }
    block_ = static_cast<char*>(std::malloc(8 + n * sizeof(T)));
    std::memset(block_, 0, 8 + n * sizeof(T));
    data_ = reinterpret_cast<T*>(block_ + 8);
  }
  ~Exact() {
    if (place_ != Place::heap) {
      give_pages(reinterpret_cast<char*>(data_), n_ * sizeof(T), place_);
    }
    std::free(block_);
  }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;

  T* data() const { return data_; }
  T& operator[](size_t i) const { return data_[i]; }
  size_t size() const { return n_; }

 private:
  size_t n_;
  Place place_;
  char* block_ = nullptr;
  T* data_;
};

// The results of the current case, as bytes.
inline std::vector<uint8_t>& noted() {
  static std::vector<uint8_t> bytes;
  return bytes;
}
inline void note(const void* p, size_t bytes) {
  auto from = static_cast<const uint8_t*>(p);
  noted().insert(noted().end(), from, from + bytes);
}
template <class T>
void note(const Exact<T>& e) {
  note(e.data(), e.size() * sizeof(T));
}

inline std::mt19937_64& random() {
  static std::mt19937_64 r(20);
  return r;
}
inline double normal() { return std::normal_distribution<double>()(random()); }
inline int64_t below(int64_t n) { return int64_t(random()() % uint64_t(n)); }

inline float from_bits(uint32_t bits) {
  float v;
  std::memcpy(&v, &bits, 4);
  return v;
}
inline uint32_t to_bits(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  return bits;
}

inline double number(const float* p) { return *p; }
inline double number(const ingot::cpu::bf16* p) { return from_bits(uint32_t(p->bits) << 16); }
inline double number(const ingot::cpu::f16* p) {
  int exponent = p->bits >> 10 & 31, fraction = p->bits & 1023;
  double v = exponent == 31 ? (fraction ? NAN : INFINITY)
                            : std::ldexp(exponent ? 1024 + fraction : fraction, (exponent ? exponent : 1) - 25);
  return p->bits >> 15 ? -v : v;
}

// Rounds towards zero for 16-bit types: inputs only have to be representable.
inline void put(float* p, double v) { *p = float(v); }
inline void put(ingot::cpu::bf16* p, double v) { p->bits = uint16_t(to_bits(float(v)) >> 16); }
inline void put(ingot::cpu::f16* p, double v) {
  uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  v = std::fabs(v);
  int exponent;
  std::frexp(v, &exponent);
  exponent = exponent < -13 ? -13 : exponent;
  int fraction = int(std::ldexp(v, 11 - exponent));  // 1024 to 2047; less if subnormal
  p->bits = v == 0       ? sign
            : v >= 65520 ? uint16_t(sign | 0x7c00)
                         : uint16_t(sign | (fraction < 1024 ? fraction : (exponent + 14) << 10 | (fraction & 1023)));
}

inline int& failures() {
  static int n = 0;
  return n;
}

inline void fail(const std::string& what) {
  if (++failures() <= 20) {
    std::printf("FAIL %s\n", what.c_str());
  }
}

// Runs a case on the heap and then next to guard pages, with the same random numbers. note() must get the same bytes
// each time.
template <class Case>
void in_all_places(const std::string& name, Case run) {
  static uint64_t seed = 0;
  std::vector<uint8_t> first;
  seed++;
  for (Place p : {Place::heap, Place::start, Place::end}) {
    place() = p;
    const char* where[] = {"", ", after a guard page", ", before a guard page"};
    now_running() = name + where[int(p)];
    random().seed(seed);
    noted().clear();
    run();
    if (p == Place::heap) {
      first = noted();
    } else if (first != noted() || first.empty()) {
      fail(now_running() + ": different bits than on the heap");
    }
  }
  place() = Place::heap;
}

// Returns the exit status of main.
inline int exit_status(const char* name, int64_t cases) {
  std::printf("%s: %lld cases, %d failures\n", name, static_cast<long long>(cases), failures());
  return failures() == 0 && cases > 0 ? 0 : 1;
}

}  // namespace check
