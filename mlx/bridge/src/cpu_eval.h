// Evaluation on a CPU by the thread that asks for it.
#pragma once

#include <vector>

#include "mlx/mlx.h"

namespace ingot::cpu {

namespace mx = mlx::core;

class Tape;

// Computes arrays, and all that they depend on, on this thread and its team. False, and nothing done, where a part of
// it is not for a CPU. A tape notes it.
//
// MLX hands each operation to a thread of the stream and holds the asking thread back when it runs too far ahead. On a
// processor that the team fills, these two threads and their waking cost a tenth of a token's time.
bool evaluate(const std::vector<mx::array>& arrays, Tape* tape = nullptr);

}  // namespace ingot::cpu
