// What layers of experts need beside products with their matrices: the choice of experts, and the sum of what they
// gave. On a CPU each is one node, elsewhere MLX's own operations.
#pragma once

#include <optional>
#include <vector>

#include "mlx/mlx.h"

namespace ingot {

namespace mx = mlx::core;

// How experts are chosen by their scores.
struct Choosing {
  int k;                   // experts of a row
  int groups, top_groups;  // only those of the best groups are looked at
  bool sigmoid;            // of each score, else the softmax of all
  bool sum_to_one;         // the weights of those chosen
  double scale;            // of the weights
};

// Weights float32 [T, k] and experts uint32 [T, k], by scores [T, experts]; a correction [experts] is added for the
// choice.
std::vector<mx::array> choose_experts(const mx::array& scores, const std::optional<mx::array>& correction, const Choosing& c,
                                      mx::StreamOrDevice s);

// Rows x [T, k, n] or [T, k, 1, n] added up by weights [T, k], and added [T, n] times the sigmoid of gate [T, 1].
mx::array combine_rows(const mx::array& x, const mx::array& weights, const std::optional<mx::array>& added,
                       const std::optional<mx::array>& gate, mx::StreamOrDevice s);

// What the chosen experts [T, k] make of rows x [T, in], combined. parts, formats, groups and bits are of two matrices
// of each expert: gate and up [experts, 2n, in], and down [experts, out, n], as Layers takes them. The activation is
// SiLU or GELU by tanh.
mx::array gated_experts(const mx::array& x, const mx::array& weights, const mx::array& chosen, const std::vector<mx::array>& parts,
                        const std::vector<int>& formats, const std::vector<int>& groups, const std::vector<int>& bits, bool gelu,
                        const std::optional<mx::array>& added, const std::optional<mx::array>& gate, mx::StreamOrDevice s);

}  // namespace ingot
