// Our own operations as nodes of an MLX graph, on the CPU.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cpu_scratch.h"
#include "cpu_team.h"
#include "mlx/mlx.h"

namespace ingot::cpu {

namespace mx = mlx::core;

// Where a node's arrays lie when it runs. Inputs are row-major. Memory of MLX is aligned to 8 bytes only.
struct Memory {
  const void* const* in;
  void* const* out;

  template <class T>
  const T* input(int i) const { return static_cast<const T*>(in[i]); }
  template <class T>
  T* output(int i) const { return static_cast<T*>(out[i]); }
};

// What a node computes; it runs on the stream's thread, and may call parallel.
using Body = std::function<void(const Memory&)>;

// How an output gets its memory.
struct Reuse {
  int output;
  int input;
  bool always;  // a new version over the same memory; else only where nobody else holds the input
};

// Makes a node. Its name shows in profiles and in the graph.
std::vector<mx::array> node(const char* name, std::vector<mx::array> inputs, std::vector<mx::Shape> shapes,
                            std::vector<mx::Dtype> types, mx::StreamOrDevice s, Body body,
                            std::vector<Reuse> reuse = {});

bool is_node(const mx::Primitive& p);

class Tape;

// Runs a node on this thread. The inputs are computed. With a tape, which notes it, its results have memory of the
// tape.
void run_node(mx::Primitive& p, const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs, Tape* tape);

// A node that a tape noted, to run again.
class Replayable {
 public:
  virtual ~Replayable() = default;
  virtual void replay(const Memory& memory) = 0;
};

// Whether operations on this stream are ours.
bool on_cpu(mx::StreamOrDevice s);

// Time spent inside the bodies of nodes, by name: "name calls nanoseconds" lines. Zeroes the counts.
std::string profile();

}  // namespace ingot::cpu
