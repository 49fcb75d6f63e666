// The biases, the clamped gates and the weighted sum of experts' outputs on the CPU.
#pragma once

#include <algorithm>
#include <cmath>

#include "cpu/matmul/matmul.h"
#include "cpu/rows/node.h"
#include "cpu/rows/rows.h"
#include "ops/experts/experts.h"

namespace ingot {

// The biases [experts, n] of rows, each of the row's expert. No experts: there are none.
struct ExpertBias {
  const void* bias = nullptr;
  const uint32_t* chosen = nullptr;
  int64_t experts = 0;

  // Returns the expert of a row. An index out of range is a bug of the caller. It cannot be reported from here, but
  // must not read other memory.
  int64_t expert(int64_t row) const { return std::min<int64_t>(chosen[row], experts - 1); }
};

// ExpertSum computes out[r] = sum over e of weights[r][e] * (x[r][e] + bias of e) + sigmoid(gate[r]) * added[r], for x
// [rows, k, n]. bias, added and gate are optional.
struct ExpertSum {
  cpu::Type type;
  int64_t rows, k, n;
  bool adds, gates;

  void run(const void* x, const float* weights, const ExpertBias& bias, const void* added, const float* gate,
           void* out) const {
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
          if (bias.experts > 0) {
            add(bias.bias, bias.expert(e) * n + from, weights[e]);
          }
        }
        if (added) {
          add(added, row * n + from, gate ? 1 / (1 + std::exp(-gate[row])) : 1);
        }
        kernels.narrow(type, sum, cpu::at(out, (row * n + from) * size), count);
      }
    });
  }
};

// Writes the clamped SwiGLU of one row [2n], gate first, of a type by index, after adding the bias of its expert.
inline void gate_row(const char* row, char* out, int64_t i, int64_t n, int type, const ExpertBias& bias,
                     const Clamp& c) {
  const int64_t size = type == int(cpu::Type::f32) ? 4 : 2;
  const char* of = bias.experts > 0 ? cpu::at(bias.bias, bias.expert(i) * 2 * n * size) : nullptr;
  cpu::row_kernels().clamped_gate[type]({.gate = row, .up = row + n * size, .gate_bias = of,
                                         .up_bias = of ? of + n * size : nullptr, .out = out, .n = n,
                                         .alpha = c.alpha, .limit = c.limit, .shift = c.shift});
}

}  // namespace ingot
