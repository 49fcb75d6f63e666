// Our operations as nodes of an MLX graph on the CPU.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/mlx.h"
#include "cpu/scratch.h"
#include "cpu/team/team.h"

namespace ingot::cpu {

namespace mx = mlx::core;

// The memory of a node's arrays while it runs. Inputs are row-major. MLX aligns memory to 8 bytes only.
struct Memory {
  const void* const* in;
  void* const* out;

  template <class T>
  const T* input(int i) const { return static_cast<const T*>(in[i]); }
  template <class T>
  T* output(int i) const { return static_cast<T*>(out[i]); }
};

// The computation of a node. It runs on the stream's thread and may call parallel.
using Body = std::function<void(const Memory&)>;

// An output that may take over the memory of an input.
struct Reuse {
  int output;
  int input;
  bool always;  // written in place (a cache); otherwise only if nothing else holds the input
};

// Creates a node and returns its outputs. The name appears in profiles and in the graph; it must be a constant.
std::vector<mx::array> node(const char* name, std::vector<mx::array> inputs, std::vector<mx::Shape> shapes,
                            std::vector<mx::Dtype> types, mx::StreamOrDevice s, Body body,
                            std::vector<Reuse> reuse = {});

bool is_node(const mx::Primitive& p);

class Tape;

// Runs a node on this thread. The inputs must be evaluated. If tape is not null, it records the node and allocates the
// results.
void run_node(mx::Primitive& p, const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs, Tape* tape);

// A recorded node.
class Replayable {
 public:
  virtual ~Replayable() = default;
  virtual void replay(const Memory& memory) = 0;
};

// Reports whether operations on this stream run on the CPU.
bool on_cpu(mx::StreamOrDevice s);

// Returns the time spent in nodes by name, as lines "name calls nanoseconds", and resets the counters.
std::string profile();

}  // namespace ingot::cpu
