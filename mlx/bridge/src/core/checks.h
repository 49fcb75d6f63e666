// Checks of arguments that MLX 0.32.4 accepts and answers with a fatal signal, an endless loop or an out-of-bounds
// read. Each function returns its first argument, or throws std::invalid_argument. ops.txt says where they are needed;
// the random calls of package mlx's tests found them.
#pragma once

#include <optional>
#include <string>

#include "core/mlx.h"

namespace ingot {

namespace mx = mlx::core;

// Throws std::invalid_argument.
[[noreturn]] void refuse(const std::string& why);

// A convolution divides by its groups and offsets pointers by its padding.
int positive(int v, const char* what);
int not_negative(int v);

// The number of results of a split: all parts are created, and those of an empty array may be billions.
int result_count(int parts);

// MLX divides by dimensions in convolutions, gathered and quantized products, attention and the gated delta rule.
const mx::array& not_empty(const mx::array& x);

// MLX compares only the last axis of packed weights and their scales, and checks a format's group and bits only in
// mx::quantize.
const mx::array& packed(const mx::array& w, const mx::array& scales, std::optional<int> group, std::optional<int> bits,
                        const std::string& format);

// An empty array has no valid index.
const mx::array& indexable(const mx::array& x, const mx::array& indices);

// A dynamic update subtracts the ranks as unsigned integers.
const mx::array& of_rank_at_most(const mx::array& update, const mx::array& x);

// get_reduction_plan (backend/common/reduce.cpp) takes the last of an empty list of strides if an axis of length 0 is
// reduced and the array is not row-major.
mx::array row_major_if_empty(const mx::array& x, mx::StreamOrDevice s);

// mx::tri, which loops to n and to m even if the result is empty.
mx::array triangle(int n, int m, int k, mx::Dtype type, mx::StreamOrDevice s);

// mx::floor_divide and mx::remainder. On x86, dividing the least integer by -1 raises a signal.
mx::array quotient(const mx::array& a, const mx::array& b, mx::StreamOrDevice s);
mx::array modulus(const mx::array& a, const mx::array& b, mx::StreamOrDevice s);

}  // namespace ingot
