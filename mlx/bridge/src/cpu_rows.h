// Kernels on rows: one table of functions for each instruction set.
#pragma once

#include <cstdint>

#include "cpu_types.h"

namespace ingot::cpu {

// A row that is normalized; what is null is not there.
struct Norm {
  const void* x;
  const void* residual;  // added to x; the sum is rounded to the type of x
  void* sum;             // where there is a residual
  const void* weight;
  bool weight_f32;       // else weights have the type of x
  float offset;          // added to the weights
  const void* bias;      // of layer_norm, of the type of x
  float eps;
  void* out;
  int64_t n;
};

enum class Act { sigmoid, silu, gelu, gelu_tanh, cap };
constexpr int kActs = 5;

// How a row of a quantized table is packed.
enum class Packing { affine, mxfp4, mxfp8, nvfp4 };
struct PackedRow {
  Packing packing;
  int bits, group;
  const uint8_t* codes;  // little-endian bits, one after the other
  const void* scales;    // of affine in the type of the result, else bytes
  const void* biases;    // of affine
  float multiplier;      // of the rounded result, which is rounded again; 1 for none
  void* out;
  int64_t n;
};

// Functions for f32, f16 and bf16, in the order of Type. They compute in float32 and round once.
struct RowKernels {
  void (*rms_norm[3])(const Norm&);
  void (*layer_norm[3])(const Norm&);

  // act(gate), times up where there is one; limit is of cap alone.
  void (*activate[kActs][3])(const void* gate, const void* up, void* out, int64_t n, float limit);
  void (*add[3])(const void* a, const void* b, void* out, int64_t n);
  void (*multiply[3])(const void* a, const void* b, void* out, int64_t n);
  void (*scale[3])(const void* x, float by, void* out, int64_t n);
  void (*softmax[3])(const void* x, void* out, int64_t n, float* work);  // work: n floats
  // The largest element m and the sum of e^(x-m).
  void (*exp_sum[3])(const void* x, int64_t n, float* largest, float* sum);

  // cos and sin of position*freqs[j], times scale.
  void (*angles)(const float* freqs, const float* positions, int64_t n, float scale, float* cos, float* sin);
  // Rotates the first 2*half of n channels; out may be x.
  void (*rotate[3])(const void* x, void* out, int64_t n, int64_t half, bool traditional, const float* cos, const float* sin);

  // The first NaN, or else the first largest element, and where it is.
  int64_t (*largest[3])(const void* x, int64_t n, float* value);
  // The largest element of each block; NaN counts as infinity.
  void (*block_peaks[3])(const void* x, int64_t n, int64_t block, float* peaks);
  // The elements that are not below a threshold, numbered from first on; gives their number.
  int64_t (*not_below[3])(const void* x, int64_t n, float threshold, int32_t first, float* values, int32_t* ids);

  void (*unpack[3])(const PackedRow&);
};

const RowKernels& row_kernels();

}  // namespace ingot::cpu
