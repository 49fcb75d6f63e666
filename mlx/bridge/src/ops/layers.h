// Linear layers that share an input.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mlx.h"
#include "ops/matrix.h"
#include "ops/rows.h"

namespace ingot {

// An operation that is fused before linear layers: a norm, or a gate. With few rows it runs in the node of the
// products.
struct Prologue {
  enum Kind { nothing, norm, gate } kind = nothing;
  Optional second;  // norm: added to the input; gate: multiplied by the activated input
  Optional weight;  // norm only
  double eps = 0;
  bool plus_one = false;
  bool keep = false;  // also return the normalized input
  Activation act = Activation::silu;
};

// Computes x W^T + bias for several W that share x. parts has, for each W: W [out, in], or its codes, scales and, if
// the format has them, biases; then its bias [out], if biased. A format is an index of ops.txt's modes, or -1 for plain
// weights. If joined, the last two axes of x count as one. The result has the shape [..., heads, out/heads], or [...,
// out] if heads is 0.
class Layers {
 public:
  Layers(const std::vector<mx::array>& parts, bool joined, const std::vector<int>& formats,
         const std::vector<int>& groups, const std::vector<int>& bits, const std::vector<int>& biased,
         const std::vector<int>& heads);

  // Evaluates the weights and keeps their addresses: on the CPU, products then have x as their only input. Without
  // effect if the kernels do not support them.
  void prepare(mx::StreamOrDevice s);

  // The results have the type of x, or, if wide, are float32: sums that are not rounded.
  std::vector<mx::array> operator()(const mx::array& x, bool wide, mx::StreamOrDevice s) const;

  // Applies the layers to norm(x + second), or to act(x) * second. The results are preceded by x + second, if a norm
  // has a second, and by the normalized input, if it is kept.
  std::vector<mx::array> with_prologue(const Prologue& prologue, const mx::array& x, bool wide,
                                       mx::StreamOrDevice s) const;

 private:
  struct Layer {
    mx::array w;
    Optional scales, biases, bias;
    std::string mode;
    std::optional<int> group, bits;
    int heads = 0;
  };
  struct Prepared {
    std::vector<Matrix> matrices;
    std::vector<Optional> added;
    std::vector<cpu::Product> products;  // with y unset
    std::vector<mx::array> held;         // keeps the memory of all weights alive

    int64_t columns() const { return matrices[0].form.columns; }
    void multiply(const void* x, cpu::Type type, bool wide, int64_t rows, bool fast, void* const* results) const;
  };

  mx::Shape result(size_t i, const mx::array& x) const;
  bool fuses(const Prologue& prologue, const mx::array& x, mx::StreamOrDevice s) const;
  std::vector<mx::array> multiply_prepared(const mx::array& x, bool wide, mx::StreamOrDevice s) const;
  std::vector<mx::array> multiply_arrays(const mx::array& x, int columns, mx::StreamOrDevice s) const;

  bool joined_;
  std::vector<Layer> layers_;
  std::shared_ptr<const Prepared> prepared_;  // null if not prepared
};

}  // namespace ingot
