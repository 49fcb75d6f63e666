// Operations on rows: norms, rope, activations, softmax, recurrent layers, embedding tables, top-k. On the CPU they use
// our kernels, on other devices MLX's operations. Types and shapes that the kernels do not support go to MLX on every
// device, which also reports errors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/mlx.h"

namespace ingot {

namespace mx = mlx::core;
using Optional = std::optional<mx::array>;
using Where = mx::StreamOrDevice;

// Norms over the last axis. With plus_one the weights are 1 + weight, added in float32, and the result has the type of
// x.
mx::array rms_norm(const mx::array& x, const Optional& weight, double eps, Where s);
mx::array rms_norm_plus_one(const mx::array& x, const mx::array& weight, double eps, Where s);
// Returns x + residual in the type of x, and its norm.
std::vector<mx::array> add_rms_norm(const mx::array& x, const mx::array& residual, const Optional& weight, double eps,
                                    bool plus_one, Where s);
mx::array layer_norm(const mx::array& x, const Optional& weight, const Optional& bias, double eps, Where s);

mx::array as_type(const mx::array& x, mx::Dtype to, Where s);
mx::array joined(const std::vector<mx::array>& xs, int axis, Where s);
mx::array joined_slots(const std::vector<int>& ranges, int n, const std::vector<mx::array>& xs, Where s);
mx::array zeroed(const mx::Shape& shape, mx::Dtype type, Where s);
mx::array taken(const mx::array& x, const mx::array& indices, int axis, Where s);

// Activations, and gates act(gate)*up. Without up, the last axis of gate holds both, gate first.
enum class Activation { sigmoid, silu, gelu, gelu_tanh };
mx::array activation(Activation a, const mx::array& x, Where s);
mx::array gated(Activation a, const mx::array& gate, const Optional& up, Where s);
mx::array softcap(const mx::array& x, double limit, Where s);
mx::array squared_relu(const mx::array& x, Where s);
mx::array clipped(const mx::array& x, double limit, Where s);
mx::array exp_tail(const mx::array& x, double limit, Where s);
// Multiplies row i of x [T, ...] by 1 + beta*ln(1 + floor((positions[i]+shift)/context)).
mx::array grown_rows(const mx::array& x, const mx::array& positions, double beta, int context, int shift, Where s);
mx::array softplus(const mx::array& x, Where s);

// Sums of the rows of several streams, and what else their models need; see ops.txt.
mx::array mix_rows(const mx::array& x, const Optional& weights, const Optional& added, const Optional& scales, Where s);
mx::array rescale_rows(const mx::array& x, const mx::array& like, double least, Where s);
mx::array sparse_rows(const mx::array& x, double deviations, Where s);
std::vector<mx::array> blend_rows(const mx::array& x, const mx::array& delta, const mx::array& by, Where s);
mx::array known_ids(const mx::array& ids, int n, Where s);
std::vector<mx::array> stream_weights(const mx::array& numbers, const mx::array& scale, const mx::array& base, int n,
                                      int iterations, double eps, Where s);

mx::array scaled_by(const mx::array& x, double value, Where s);
mx::array sum_of(const mx::array& a, const mx::array& b, Where s);
mx::array product_of(const mx::array& a, const mx::array& b, Where s);
mx::array softmax_over(const mx::array& x, const std::vector<int>& axes, bool precise, Where s);
mx::array log_sum_exp(const mx::array& x, const std::vector<int>& axes, bool keepdims, Where s);

// Rope as in MLX, over [..., T, D] from an offset, or from one offset per batch row.
mx::array rope(const mx::array& x, int dims, bool traditional, double base, double scale, int offset, Where s);
mx::array rope_periods(const mx::array& x, const mx::array& periods, int dims, bool traditional, double scale,
                       int offset, Where s);
mx::array rope_offsets(const mx::array& x, const mx::array& offsets, const mx::array& periods, int dims,
                       bool traditional, double scale, Where s);
// Norms of heads that are fused before rope: one weight [dim] per array, or none.
struct HeadNorms {
  std::vector<mx::array> weights;
  double eps = 0;
  bool plus_one = false;
};
// Rope of packed rows: each of xs is [T, heads, dim]; positions are int32 [T], or [sections, T].
std::vector<mx::array> rotate_rows(std::vector<mx::array> xs, const HeadNorms& norms, const mx::array& positions,
                                   const mx::array& freqs, bool traditional, bool interleaved, double scale,
                                   const std::vector<int>& sections, Where s);

// Returns the rows of a table [n, dim] with the given ids, times scale. With first the table is the rows from there on
// of a larger one, and ids of other rows give zeros.
mx::array table_rows(const mx::array& table, const mx::array& ids, std::optional<int> first, double scale, Where s);
mx::array packed_table_rows(const mx::array& w, const mx::array& scales, const Optional& biases, const mx::array& ids,
                            std::optional<int> first, double scale, std::optional<int> group, std::optional<int> bits,
                            const std::string& format, mx::Dtype type, Where s);

mx::array arg_max(const mx::array& x, int axis, bool keepdims, Where s);
// Returns the k largest elements of the last axis in descending order, and their indices.
std::vector<mx::array> largest(const mx::array& x, int k, Where s);

// The gated delta rule over [B, T, ...], and over packed rows.
std::vector<mx::array> gated_delta(const mx::array& q, const mx::array& k, const mx::array& v, const mx::array& gates,
                                   const mx::array& beta, const Optional& state, const Optional& mask, Where s);
std::vector<mx::array> gated_delta_rows(const mx::array& q, const mx::array& k, const mx::array& v,
                                        const mx::array& gates, const mx::array& beta,
                                        const std::vector<mx::array>& states, bool every, bool in_place,
                                        const std::vector<int>& lengths, Where s);
// Returns e^(rate * softplus(x + bias)): the gate by which a head's state decays at each row.
mx::array decay(const mx::array& x, const mx::array& bias, const mx::array& rate, Where s);
// Selective scans, and sums of rows that decay, over packed rows.
mx::array step_sizes(const mx::array& x, const mx::array& bias, double least, double most, Where s);
std::vector<mx::array> state_scan(const mx::array& q, const mx::array& k, const mx::array& v, const mx::array& steps,
                                  const mx::array& rate, const Optional& skip, const std::vector<mx::array>& states,
                                  bool in_place, const std::vector<int>& lengths, Where s);
std::vector<mx::array> channel_scan(const mx::array& x, const mx::array& steps, const mx::array& b, const mx::array& c,
                                    const mx::array& rate, const Optional& skip, const std::vector<mx::array>& states,
                                    bool in_place, const std::vector<int>& lengths, Where s);
std::vector<mx::array> decayed_sum(const mx::array& x, const mx::array& decay, const std::vector<mx::array>& states,
                                   bool in_place, const std::vector<int>& lengths, Where s);
// The gates of RG-LRU and its gated rows; parts are the biases of input and decay, and the rates.
std::vector<mx::array> unit_gates(const mx::array& x, const mx::array& input, const mx::array& decay,
                                  const std::vector<mx::array>& parts, const mx::array& positions, Where s);
// The scan of RWKV 7 over packed rows r, w, k, v and a; parts are the key's scale and rate, the bonus, and the norm's
// weight and bias.
std::vector<mx::array> wkv_scan(const mx::array& r, const mx::array& w, const mx::array& k, const mx::array& v,
                                const mx::array& a, const std::vector<mx::array>& parts, double eps,
                                const std::vector<mx::array>& states, bool in_place, const std::vector<int>& lengths,
                                Where s);
// A causal depthwise convolution along the rows of each segment.
std::vector<mx::array> causal_conv(const mx::array& x, const mx::array& weight, const Optional& bias,
                                   const std::vector<mx::array>& states, bool silu, bool every, bool in_place,
                                   const std::vector<int>& lengths, Where s);

}  // namespace ingot
