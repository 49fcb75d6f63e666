// Evaluation of graphs on the CPU by the calling thread.
#pragma once

#include <vector>

#include "core/mlx.h"

namespace ingot::cpu {

namespace mx = mlx::core;

class Tape;

// Evaluates arrays and all that they depend on, on this thread and its team. Returns false without any effect if a part
// of the graph is not for the CPU. If tape is not null, it records the evaluation.
//
// MLX's own evaluation hands each operation to the thread of its stream, and throttles the calling thread. On
// processors that the team occupies, these two threads and their wake-ups cost a tenth of the time of a token.
bool evaluate(const std::vector<mx::array>& arrays, Tape* tape = nullptr);

}  // namespace ingot::cpu
