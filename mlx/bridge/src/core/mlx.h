// What graphs need of MLX: arrays, operations, evaluation. mlx/mlx.h includes everything and takes longer to compile.
#pragma once

#include "mlx/array.h"
#include "mlx/fast.h"
#include "mlx/ops.h"
#include "mlx/random.h"
#include "mlx/transforms.h"
