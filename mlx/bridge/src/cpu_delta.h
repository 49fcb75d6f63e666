// Kernels of recurrent layers: one table of functions for each instruction set.
#pragma once

#include <cstdint>

#include "cpu_types.h"

namespace ingot::cpu {

// One head of one segment, of which the value channels begin to end are computed.
struct Delta {
  int64_t rows, key_dim, begin, end;
  const void *q, *k;       // row t of the head is at t*key_stride
  const void* v;           // at t*value_stride, as y
  int64_t key_stride, value_stride;
  const float *gate, *beta;  // at t*gate_stride
  int64_t gate_stride;
  const float* from;       // [value channels, key_dim]; null is zeros
  float* to;               // the state after row t at t*state_stride, which is 0 where only the last is wanted
  int64_t state_stride;
  void* y;
};

// Rows of q and k that are worked on at once; work holds 2*kDeltaRows*key_dim floats.
constexpr int64_t kDeltaRows = 16;

constexpr int kConvTaps = 8;

// n channels of one row of a convolution along rows: taps[j] is what weight row j multiplies.
struct Conv {
  const void* taps[kConvTaps];
  int count;
  const void* weight;  // row j at j*weight_stride
  int64_t weight_stride;
  const void* bias;    // or null
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
