// The segments of a batch of packed rows, for recurrent layers.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/call.h"
#include "core/checks.h"
#include "core/mlx.h"

namespace ingot {

namespace mx = mlx::core;
using Where = mx::StreamOrDevice;

// The segments of a batch of packed rows.
struct Segments {
  std::vector<int64_t> first, count;

  Segments(const std::vector<int>& lengths, int rows) {
    int64_t next = 0;
    for (int n : lengths) {
      if (n < 1) {
        throw std::invalid_argument("a segment of " + std::to_string(n) + " rows; want at least 1");
      }
      first.push_back(next);
      count.push_back(n);
      next += n;
    }
    if (next != rows || lengths.empty()) {
      throw std::invalid_argument("segments of " + std::to_string(next) + " rows for " + std::to_string(rows) +
                                  " rows of input");
    }
  }
  size_t size() const { return first.size(); }
};

inline std::string shapes_of(const std::vector<mx::array>& xs) {
  std::string text;
  for (const auto& x : xs) {
    text += (text.empty() ? "" : ", ") + to_string(x);
  }
  return text;
}

inline mx::array segment(const mx::array& x, int64_t first, int64_t count, Where s) {
  mx::Shape start(x.ndim(), 0), stop = x.shape();
  start[0] = int(first);
  stop[0] = int(first + count);
  return mx::slice(x, start, stop, s);
}

}  // namespace ingot
