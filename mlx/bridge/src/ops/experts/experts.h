// Mixture-of-experts layers: routing, the experts' feed-forward blocks and the weighted sum of their outputs. On the
// CPU each is one node, on other devices it is composed of MLX's operations.
#pragma once

#include <optional>
#include <vector>

#include "core/mlx.h"

namespace ingot {

namespace mx = mlx::core;

// What a router makes of scores before it chooses: their softmax, their sigmoids, or square roots of their softplus.
enum class Scoring { softmax, sigmoid, sqrt_softplus };

// How a router chooses experts by score.
struct Choosing {
  int k;                   // experts per row
  int groups, top_groups;  // only experts of the best top_groups groups are candidates
  int group_best;          // the score of a group is the sum of its best 1 or 2
  Scoring scoring;
  bool sum_to_one;         // normalize the weights of the chosen experts
  double scale;            // multiplies the weights
};

// Returns weights, float32 [T, k], and experts, uint32 [T, k], for scores [T, experts]. A correction [experts] is added
// for the choice only. The experts may be given, uint32 [T, k].
std::vector<mx::array> choose_experts(const mx::array& scores, const std::optional<mx::array>& correction,
                                      const std::optional<mx::array>& given, const Choosing& c, mx::StreamOrDevice s);

// Divides a choice [T, k] into experts below n, with weights, and those from n on, which return their input: see
// IdentityExperts in ops.txt.
std::vector<mx::array> identity_experts(const mx::array& weights, const mx::array& chosen, int n, mx::StreamOrDevice s);

// Divides a choice [T, k] into the n experts from first on and the others: see OwnExperts in ops.txt.
std::vector<mx::array> own_experts(const mx::array& weights, const mx::array& chosen, int first, int n,
                                   mx::StreamOrDevice s);

// Returns weights, float32 [T, 2], and experts, uint32 [T, 2]: see SparseMixer in ops.txt.
std::vector<mx::array> sparse_mixer(const mx::array& scores, double jitter, mx::StreamOrDevice s);

// Returns the sum of x [T, k, n] or [T, k, 1, n] over k, weighted with weights [T, k], plus added [T, n] times
// sigmoid(gate [T, 1]). The rows chosen [T, k] of bias [experts, n] are added to x before.
mx::array combine_rows(const mx::array& x, const mx::array& weights, const std::optional<mx::array>& bias,
                       const std::optional<mx::array>& chosen, const std::optional<mx::array>& added,
                       const std::optional<mx::array>& gate, mx::StreamOrDevice s);

// A clamped SwiGLU: (u + shift) * g * sigmoid(alpha * g), where g is gate, at most limit, and u is up, from -limit to
// limit.
struct Clamp {
  float alpha, limit, shift;
};

// Returns the clamped SwiGLU of rows x [..., 2n], gate first. Row rows[i] of bias [m, 2n] is added to row i before.
mx::array clamped_gate(const mx::array& x, const std::optional<mx::array>& bias, const std::optional<mx::array>& rows,
                       const Clamp& c, mx::StreamOrDevice s);

struct GatedExperts {
  const mx::array &x, &weights, &chosen;
  // Two matrices per expert, as in Layers: gate and up [experts, 2n, in], and down [experts, out, n].
  const std::vector<mx::array>& parts;
  const std::vector<int>&formats, &groups, &bits;
  bool gelu;  // the activation is GELU with tanh instead of SiLU
  // With a limit the gate is a clamped SwiGLU, and there may be two biases: [experts, 2n] and [experts, out].
  Clamp clamp;
  const std::vector<mx::array>& biases;
  const std::optional<mx::array>&added, &gate;  // as in combine_rows
};

// Returns the combined outputs of the chosen experts [T, k] for rows x [T, in].
mx::array gated_experts(const GatedExperts& e, mx::StreamOrDevice s);

}  // namespace ingot
