// Helpers of the row operations that create nodes.
#pragma once

#include <algorithm>

#include "cpu/node.h"
#include "cpu/types.h"

namespace ingot::cpu {

inline bool has_kernels(mx::Dtype d) { return d == mx::float32 || d == mx::float16 || d == mx::bfloat16; }
inline int type_index(mx::Dtype d) {
  return int(d == mx::float32 ? Type::f32 : d == mx::float16 ? Type::f16 : Type::bf16);
}

// Reports whether an operation on x uses our kernels: x is not empty, has a type with kernels, and is on the CPU.
inline bool uses_kernels(const mx::array& x, mx::StreamOrDevice s) {
  return x.size() > 0 && has_kernels(x.dtype()) && on_cpu(s);
}

constexpr int kRowsScratch = 8;

// Elements of a piece of work, whose overhead is hundreds of nanoseconds.
constexpr int64_t kPiece = 8192;
inline int64_t rows_per_piece(int64_t row) { return std::max<int64_t>(1, kPiece / std::max<int64_t>(1, row)); }

inline const char* at(const void* p, int64_t bytes) { return static_cast<const char*>(p) + bytes; }
inline char* at(void* p, int64_t bytes) { return static_cast<char*>(p) + bytes; }

// Calls f(from, count) for pieces of n elements. cost is the cost of an element relative to an addition.
template <class F>
void in_pieces(int64_t n, int64_t cost, F&& f) {
  parallel(n, kPiece / cost, [&](int64_t begin, int64_t end) { f(begin, end - begin); });
}

}  // namespace ingot::cpu
