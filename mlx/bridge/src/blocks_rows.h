// Operations on rows: norms, rotary positions, activations, softmax, recurrences, tables, choices.
// On a CPU these are kernels of ours, elsewhere MLX's own operations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mlx/mlx.h"

namespace ingot {

namespace mx = mlx::core;

}  // namespace ingot
