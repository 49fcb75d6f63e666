// Weight matrices as MLX arrays, and their conversion to the kernels' Weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/mlx.h"
#include "cpu/matmul/matmul.h"
#include "cpu/node.h"

namespace ingot {

namespace mx = mlx::core;

using Optional = std::optional<mx::array>;

constexpr const char* kModes[] = {"affine", "mxfp4", "mxfp8", "nvfp4"};

// The form of a weight matrix. Its pointers are set when the node runs.
struct Matrix {
  cpu::Weights form;             // pointers are unset
  mx::Dtype type = mx::float32;  // promoted with the type of the activations to the type of the result
};

bool floating(mx::Dtype d);
cpu::Type type_of(mx::Dtype d);

// Reports whether the kernels support x as activations, or as plain weights.
bool takes(const mx::array& x);

// Returns the matrix of quantized weights [..., out, in], or nothing if the kernels do not support it. It does not
// check the shape of w before the last two axes.
std::optional<Matrix> quantized_matrix(int columns, const mx::array& w, const mx::array& scales, const Optional& biases,
                                       std::optional<int> group, std::optional<int> bits, const std::string& mode);
Matrix plain_matrix(const mx::array& w);

mx::Dtype product_type(const mx::array& x, const Matrix& m);

// Returns form with the pointers of a node's next inputs, and advances next past them.
cpu::Weights at(const cpu::Weights& form, const cpu::Memory& memory, int& next);

// Multiplies x [..., in] by each of the matrices and returns results of the given shapes. arrays has the arrays of each
// matrix in order, followed by its bias in float32 if it is biased.
std::vector<mx::array> multiply(mx::array x, const std::vector<Matrix>& matrices, std::vector<mx::array> arrays,
                                const std::vector<int>& biased, const std::vector<mx::Shape>& shapes, mx::Dtype type,
                                mx::StreamOrDevice s);

}  // namespace ingot
