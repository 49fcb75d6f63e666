// The weighted sum of experts' outputs on the CPU.
#pragma once

#include <algorithm>
#include <cmath>

#include "cpu/matmul/matmul.h"
#include "cpu/rows/node.h"

namespace ingot {

// ExpertSum computes out[r] = sum over e of weights[r][e] * x[r][e] + sigmoid(gate[r]) * added[r], for x [rows, k, n].
// added and gate are optional.
struct ExpertSum {
  cpu::Type type;
  int64_t rows, k, n;
  bool adds, gates;

  void run(const void* x, const float* weights, const void* added, const float* gate, void* out) const {
    const auto& kernels = cpu::matmul_kernels();
    constexpr int64_t kBlock = 512;
    const int64_t blocks = (n + kBlock - 1) / kBlock, size = type == cpu::Type::f32 ? 4 : 2;
    cpu::parallel(rows * blocks, cpu::rows_per_piece(kBlock * (k + 1)), [&](int64_t begin, int64_t end) {
      float sum[kBlock], more[kBlock];
      for (int64_t i = begin; i < end; i++) {
        int64_t row = i / blocks, from = i % blocks * kBlock, count = std::min<int64_t>(kBlock, n - from);
        std::fill_n(sum, count, 0.0f);
        auto add = [&](const void* of, int64_t at, float by) {
          kernels.widen(type, cpu::at(of, at * size), more, count);
          for (int64_t j = 0; j < count; j++) {
            sum[j] += by * more[j];
          }
        };
        for (int64_t e = row * k; e < (row + 1) * k; e++) {
          add(x, e * n + from, weights[e]);
        }
        if (added) {
          add(added, row * n + from, gate ? 1 / (1 + std::exp(-gate[row])) : 1);
        }
        kernels.narrow(type, sum, cpu::at(out, (row * n + from) * size), count);
      }
    });
  }
};

}  // namespace ingot
