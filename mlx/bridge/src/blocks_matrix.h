// Weights of products as arrays, and what our kernels make of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cpu_matmul.h"
#include "cpu_node.h"
#include "mlx/mlx.h"

namespace ingot {

namespace mx = mlx::core;

using Optional = std::optional<mx::array>;

constexpr const char* kModes[] = {"affine", "mxfp4", "mxfp8", "nvfp4"};

// A matrix of weights as arrays; what its pointers will be is known when the node runs.
struct Matrix {
  cpu::Weights form;             // without pointers
  mx::Dtype type = mx::float32;  // of a product with float32 activations narrowed to theirs
};

bool floating(mx::Dtype d);
cpu::Type type_of(mx::Dtype d);

// Whether kernels take such activations, or plain weights.
bool takes(const mx::array& x);

// Quantized weights [..., out, in] that our kernels take; the shape of w before its last two axes is not looked at.
std::optional<Matrix> quantized_matrix(int columns, const mx::array& w, const mx::array& scales, const Optional& biases,
                                       std::optional<int> group, std::optional<int> bits, const std::string& mode);
Matrix plain_matrix(const mx::array& w);

mx::Dtype product_type(const mx::array& x, const Matrix& m);

// The weights of a node's next inputs.
cpu::Weights at(const cpu::Weights& form, const cpu::Memory& memory, int& next);

// x [..., in] times the rows of matrices, to results of the given shapes; arrays are theirs in order, then of each that
// is biased its bias in float32.
std::vector<mx::array> multiply(mx::array x, const std::vector<Matrix>& matrices, std::vector<mx::array> arrays,
                                const std::vector<int>& biased, const std::vector<mx::Shape>& shapes, mx::Dtype type,
                                mx::StreamOrDevice s);

}  // namespace ingot
