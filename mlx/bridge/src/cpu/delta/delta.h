// Kernels of recurrent layers (gated delta rule, selective scans, RWKV 7, gates and causal convolution): one table of
// functions for each instruction set.
#pragma once

#include <cstdint>

#include "cpu/types.h"

namespace ingot::cpu {

// One head of one segment. A call computes value channels [begin, end) of all rows:
//   S_t = gate_t S_{t-1} + beta_t (v_t - gate_t S_{t-1} k_t) k_t^T,  y_t = S_t q_t
// with a state S of [value channels][key_dim] in float32. q, k, v and y have one of three types; see DeltaKernels. The
// gate is a number, or one for each column of S.
//
// A selective scan has no prediction, and its gates follow from its steps (beta):
//   S_t = e^(beta_t rate) S_{t-1} + beta_t v_t k_t^T,  y_t = S_t q_t + skip v_t
struct Delta {
  int64_t rows, key_dim, begin, end;
  const void *q, *k;  // row t at t*key_stride
  const void* v;      // row t at t*value_stride; so is y
  int64_t key_stride, value_stride;
  const float *gate, *beta;  // row t at t*gate_stride; a scan has no gate, columns have key_dim times as many
  int64_t gate_stride;
  const float* from;  // the state before row 0, [value channels][key_dim]; null: zeros
  float* to;          // the state after row t at t*state_stride; a stride of 0 keeps only the last one
  int64_t state_stride;
  void* y;
  float rate, skip;  // of a scan
};

// Rows of q and k that are converted to float32 at a time; a kernel's work buffer holds 2*kDeltaRows*key_dim floats,
// 3*kDeltaRows*key_dim if columns have gates.
constexpr int64_t kDeltaRows = 16;

// n channels of all rows of a selective scan with a state of each channel, [states] in float32:
//   S_t = e^(step_t rate) S_{t-1} + step_t x_t b_t,  y_t = S_t c_t + skip x_t
// All is float32. x, step and y have row t at t*stride, b and c at t*states.
struct ChannelScan {
  int64_t rows, n, states, stride;
  const float *x, *step, *b, *c;
  const float* rate;  // [n][states]
  const float* skip;  // [n], or null
  const float* from;  // [n][states]; may be to
  float *to, *y;
};

// Floats of a ChannelScan's work buffer, per state: of two vectors.
constexpr int64_t kChannelWork = 2 * 16;

// One head of one segment of RWKV 7, with a state S of [dim][dim] in float32:
//   S_t = S_{t-1} diag(decay_t) - (S_{t-1} u_t) (u_t * rate_t)^T + v_t key_t^T,  y_t = norm(S_t r_t) + bonus_t v_t
// decay = e^(-e^-0.5 sigmoid(w)), rate = sigmoid(a), u = k*key_scale at length 1, key = k (1 + (rate-1) key_rate), and
// bonus = the sum of r*key*bonus. The norm is a LayerNorm with weight and bias. r, w, k, v, a and y have one of three
// types and row t at t*stride; all else is float32 [dim].
struct Wkv {
  int64_t rows, dim, stride;
  const void *r, *w, *k, *v, *a;
  const float *key_scale, *key_rate, *bonus, *weight, *bias;
  float eps;
  const float* from;  // the state before row 0; may be to
  float* to;          // after the last row
  void* y;
};

// Floats of a Wkv's work buffer, per channel.
constexpr int64_t kWkvWork = 7;

// n elements of a row of step sizes, softplus(x + bias) limited to [least, most], or of gates, e^(rate * softplus(x +
// bias)), if there are rates. All is float32; out may be x.
struct Softplus {
  const float *x, *bias, *rate;  // rate may be null
  float least, most;
  float* out;
  int64_t n;
};

// n channels of a row before the recurrence of RG-LRU: gate = e^(rate sigmoid(decay + decay_bias)), and out = x
// sigmoid(input + input_bias) sqrt(1 - gate^2), where the root is 1 in a text's first row. Rates are not positive. x,
// input and decay have one of three types; all else is float32.
struct UnitGates {
  const void *x, *input, *decay;
  const float *input_bias, *decay_bias, *rate;
  bool first;
  float *out, *gate;
  int64_t n;
};

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
  void (*column_delta[3])(const Delta&, float* work);
  void (*scan[3])(const Delta&, float* work);
  void (*channels)(const ChannelScan&, float* work);
  void (*softplus)(const Softplus&);
  void (*unit_gates[3])(const UnitGates&);
  void (*conv[3])(const Conv&);
  void (*wkv[3])(const Wkv&, float* work);
};

const DeltaKernels& delta_kernels();

}  // namespace ingot::cpu
