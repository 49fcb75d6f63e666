// Linear layers that share an input.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "blocks_matrix.h"
#include "blocks_rows.h"
#include "mlx/mlx.h"

namespace ingot {

// What is done to the input of linear layers on the way. Of a few rows it costs no node of its own.
struct Prologue {
  enum Kind { nothing, norm, gate } kind = nothing;
  Optional second;  // norm: what is added to the input; gate: what the activated input is multiplied with
  Optional weight;  // of the norm
  double eps = 0;
  bool plus_one = false;
  bool keep = false;  // the normalized input is a result too
  Activation act = Activation::silu;
};

// x W^T + bias for several W that share x. parts lists, for each W: W [out, in], or its codes and scales and, where the
// format has them, biases; then its bias [out], where biased says so. A format is that of ops.txt's modes, -1 for
// plain. Where joined is set, the last two axes of x count as one; a result of heads is [..., heads, out/heads], of 0
// [..., out].
class Layers {
 public:
  Layers(const std::vector<mx::array>& parts, bool joined, const std::vector<int>& formats, const std::vector<int>& groups,
         const std::vector<int>& bits, const std::vector<int>& biased, const std::vector<int>& heads);

  // Computes the weights, if they are not yet, and notes where they lie: products on a CPU then have x alone as an
  // input.
  void prepare(mx::StreamOrDevice s);

  std::vector<mx::array> operator()(const mx::array& x, mx::StreamOrDevice s) const;

  // The same of norm(x + second), or of act(x) * second. Before the results come their sum, where a norm has a second,
  // and the normalized input, where it is kept.
  std::vector<mx::array> with_prologue(const Prologue& prologue, const mx::array& x, mx::StreamOrDevice s) const;

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
    std::vector<cpu::Product> products;  // without results
    std::vector<mx::array> held;         // the memory of all

    int64_t columns() const { return matrices[0].form.columns; }
    void multiply(const void* x, cpu::Type type, int64_t rows, bool fast, void* const* results) const;
  };

  mx::Shape result(size_t i, const mx::array& x) const;
  bool fuses(const Prologue& prologue, const mx::array& x, mx::StreamOrDevice s) const;
  std::vector<mx::array> multiply_prepared(const mx::array& x, mx::StreamOrDevice s) const;
  std::vector<mx::array> multiply_arrays(const mx::array& x, int columns, mx::StreamOrDevice s) const;

  bool joined_;
  std::vector<Layer> layers_;
  std::shared_ptr<const Prepared> prepared_;  // or null
};

}  // namespace ingot
