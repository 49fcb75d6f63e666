// What the programs share that measure this machine: its widest vectors, a clock, and memory in large pages.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#if defined(__AVX512F__)
constexpr int kWidth = 64;  // bytes of a vector
#elif defined(__AVX__)
constexpr int kWidth = 32;
#else
constexpr int kWidth = 16;
#endif

typedef float Floats __attribute__((vector_size(kWidth)));

// Returns a time in seconds.
inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns at least `bytes` bytes in large pages, or null if there is no memory. Where the system refuses large pages,
// small ones are measured.
inline void* LargePages(size_t bytes) {
  constexpr size_t kPage = size_t(2) << 20;
  const size_t whole = (bytes + kPage - 1) / kPage * kPage;
  void* p = std::aligned_alloc(kPage, whole);
#if defined(__linux__)
  if (p) madvise(p, whole, MADV_HUGEPAGE);
#endif
  return p;
}
