// Kernels of recurrent layers (gated delta rule and causal convolution): one table of functions for each instruction
// set.
#pragma once

#include <cstdint>

#include "cpu/types.h"

namespace ingot::cpu {

// One head of one segment. A call computes value channels [begin, end) of all rows:
//   S_t = gate_t S_{t-1} + beta_t (v_t - gate_t S_{t-1} k_t) k_t^T,  y_t = S_t q_t
// with a state S of [value channels][key_dim] in float32. q, k, v and y have one of three types; see DeltaKernels.
struct Delta {
  int64_t rows, key_dim, begin, end;
  const void *q, *k;  // row t at t*key_stride
  const void* v;      // row t at t*value_stride; so is y
  int64_t key_stride, value_stride;
  const float *gate, *beta;  // row t at t*gate_stride
  int64_t gate_stride;
  const float* from;  // the state before row 0, [value channels][key_dim]; null: zeros
  float* to;          // the state after row t at t*state_stride; a stride of 0 keeps only the last one
  int64_t state_stride;
  void* y;
};

// Rows of q and k that are converted to float32 at a time; a kernel's work buffer holds 2*kDeltaRows*key_dim floats.
constexpr int64_t kDeltaRows = 16;

constexpr int kConvTaps = 8;

// n channels of one output row of a depthwise convolution along rows: out = bias + sum over j of taps[j] * weight[j].
struct Conv {
  const void* taps[kConvTaps];
  int count;
  const void* weight;  // tap j at j*weight_stride
  int64_t weight_stride;
  const void* bias;  // may be null
  bool silu;
  void* out;
  int64_t n;
};

struct DeltaKernels {
  void (*delta[3])(const Delta&, float* work);
  void (*conv[3])(const Conv&);
};

const DeltaKernels& delta_kernels();

}  // namespace ingot::cpu
