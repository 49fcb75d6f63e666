// Products with plain and quantized weights. On the CPU they use our kernels, on other devices MLX's operations. Types
// and shapes that the kernels do not support go to MLX on every device, which also reports errors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/mlx.h"

namespace ingot {

namespace mx = mlx::core;

mx::array matrix_product(const mx::array& a, const mx::array& b, mx::StreamOrDevice s);

mx::array quantized_product(const mx::array& x, const mx::array& w, const mx::array& scales,
                            const std::optional<mx::array>& biases, bool transpose, std::optional<int> group,
                            std::optional<int> bits, const std::string& mode, mx::StreamOrDevice s);

// See Layers in ops/layers.h.
std::vector<mx::array> linear_layers(const mx::array& x, const std::vector<mx::array>& parts, bool joined,
                                     const std::vector<int>& formats, const std::vector<int>& groups,
                                     const std::vector<int>& bits, const std::vector<int>& biased,
                                     const std::vector<int>& heads, mx::StreamOrDevice s);

// Products with matrices that are chosen by index, on both sides.
mx::array gathered_product(const mx::array& a, const mx::array& b, const std::optional<mx::array>& lhs,
                           const std::optional<mx::array>& rhs, bool sorted, mx::StreamOrDevice s);
struct GatheredQuantized {
  const mx::array &x, &w, &scales;
  const std::optional<mx::array>&biases, &lhs, &rhs;
  bool transpose;
  std::optional<int> group, bits;
  const std::string& mode;
  bool sorted;
};
mx::array gathered_quantized(const GatheredQuantized& g, mx::StreamOrDevice s);

}  // namespace ingot
