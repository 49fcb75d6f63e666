// Row-wise kernels (norms, activations, softmax, rope, top-k, embedding rows): one table of functions for each
// instruction set.
#pragma once

#include <cstdint>

#include "cpu/types.h"

namespace ingot::cpu {

// The arguments of a norm over one row of n elements. Optional pointers may be null.
struct Norm {
  const void* x;
  const void* residual;  // optional; added to x, and the sum is rounded to the type of x
  void* sum;             // result x + residual, if there is a residual
  const void* weight;
  bool weight_f32;   // weights are float32; otherwise they have the type of x
  float offset;      // added to each weight
  const void* bias;  // optional; layer_norm only, in the type of x
  float eps;
  void* out;
  int64_t n;
};

// The arguments of a clamped SwiGLU over n elements: (u + shift) * g * sigmoid(alpha * g), where g is gate, at most
// limit, and u is up, from -limit to limit. The biases are optional and are added before; both or none are set.
struct ClampedGate {
  const void *gate, *up, *gate_bias, *up_bias;
  void* out;
  int64_t n;
  float alpha, limit, shift;
};

// The arguments of a sum of rows with weights: out = sum over j of weights[j] * x[j*size ...], plus scale * added.
struct Mix {
  const void* x;
  int count;
  const float* weights;
  const void* added;  // optional
  float scale;
  void* out;
  int64_t size;
};

enum class Act { sigmoid, silu, gelu, gelu_tanh, cap, relu2, clip, exp_tail };
constexpr int kActs = 8;

// The quantization format of a table's rows.
enum class Packing { affine, mxfp4, mxfp8, nvfp4 };
struct PackedRow {
  Packing packing;
  int bits, group;
  const uint8_t* codes;  // little-endian bit stream
  const void* scales;    // affine: in the type of the result; otherwise bytes
  const void* biases;    // affine only
  float multiplier;      // multiplies the rounded result, which is rounded again; 1: none
  void* out;
  int64_t n;
};

// Functions for f32, f16 and bf16, in the order of Type. They compute in float32 and round once at the end.
struct RowKernels {
  void (*rms_norm[3])(const Norm&);
  void (*layer_norm[3])(const Norm&);

  // out = act(gate) * up, or act(gate) if up is null. Only cap, clip and exp_tail use limit.
  void (*activate[kActs][3])(const void* gate, const void* up, void* out, int64_t n, float limit);
  void (*clamped_gate[3])(const ClampedGate&);
  void (*add[3])(const void* a, const void* b, void* out, int64_t n);
  void (*multiply[3])(const void* a, const void* b, void* out, int64_t n);
  void (*scale[3])(const void* x, float by, void* out, int64_t n);
  void (*mix[3])(const Mix&);
  // Multiplies x so that its root mean square is that of like; the mean square of x counts as at least least.
  void (*rescale[3])(const void* x, const void* like, void* out, int64_t n, float least);
  // Subtracts the mean plus deviations standard deviations, and limits the result to 0 and more.
  void (*sparse[3])(const void* x, void* out, int64_t n, float deviations);
  void (*blend[3])(const void* x, const void* delta, const void* by, void* out, int64_t n);  // x + delta*by
  void (*softmax[3])(const void* x, void* out, int64_t n, float* work);  // work has n floats
  // Computes the largest element m and the sum of e^(x-m).
  void (*exp_sum[3])(const void* x, int64_t n, float* largest, float* sum);

  // Computes cos and sin of positions[j]*freqs[j], times scale.
  void (*angles)(const float* freqs, const float* positions, int64_t n, float scale, float* cos, float* sin);
  // Rotates the first 2*half of n channels (rope). out may be x.
  void (*rotate[3])(const void* x, void* out, int64_t n, int64_t half, bool traditional, const float* cos,
                    const float* sin);

  // Returns the index of the first NaN, or else of the first largest element, and its value.
  int64_t (*largest[3])(const void* x, int64_t n, float* value);
  // Computes the largest element of each block; NaN counts as infinity.
  void (*block_peaks[3])(const void* x, int64_t n, int64_t block, float* peaks);
  // Collects the elements that are not below a threshold, and their indices plus first. Returns their number.
  int64_t (*not_below[3])(const void* x, int64_t n, float threshold, int32_t first, float* values, int32_t* ids);

  void (*unpack[3])(const PackedRow&);
};

const RowKernels& row_kernels();

}  // namespace ingot::cpu
