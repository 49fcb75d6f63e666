// Arguments that MLX 0.32.4 takes without a check and then answers with a fatal signal, an endless loop or a read
// outside of the array. Each function gives its first argument, or throws; ops.txt says where they are needed, and the
// random calls of package mlx's tests found them.
#pragma once

#include <optional>
#include <string>

#include "mlx/mlx.h"

namespace ingot {

namespace mx = mlx::core;

// The groups of a convolution divide; its padding moves pointers.
int positive(int v, const char* what);
int not_negative(int v);

// All parts of a split are made, which of an empty array may be billions.
int result_count(int parts);

// Dimensions divide in convolutions, products picked by index, packed products, attention and the gated delta rule.
const mx::array& not_empty(const mx::array& x);

// Of packed weights only the last axis of the scales is compared; a format's group and bits only by mx::quantize.
const mx::array& packed(const mx::array& w, const mx::array& scales, std::optional<int> group, std::optional<int> bits,
                        const std::string& format);

// No index is inside of an empty array.
const mx::array& indexable(const mx::array& x, const mx::array& indices);

// A dynamic update subtracts the ranks as unsigned numbers.
const mx::array& of_rank_at_most(const mx::array& update, const mx::array& x);

// get_reduction_plan (backend/common/reduce.cpp) takes the last of no strides where an axis of length 0 is reduced and
// the array is not row-major.
mx::array row_major_if_empty(const mx::array& x, mx::StreamOrDevice s);

// mx::tri, which counts to n and to m whatever their product.
mx::array triangle(int n, int m, int k, mx::Dtype type, mx::StreamOrDevice s);

// mx::floor_divide and mx::remainder; x86 answers the least integer by -1 with a signal.
mx::array quotient(const mx::array& a, const mx::array& b, mx::StreamOrDevice s);
mx::array modulus(const mx::array& a, const mx::array& b, mx::StreamOrDevice s);

}  // namespace ingot
