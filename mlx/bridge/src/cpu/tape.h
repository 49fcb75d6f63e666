// Recording and replay of an evaluation on the CPU.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "core/mlx.h"
#include "cpu/node.h"

namespace ingot::cpu {

// A tape is a recorded evaluation: its nodes in order, and the addresses of their arrays. A replay runs the nodes again
// on the same memory, whose contents may have changed. It saves building, walking and freeing the graph, which takes up
// to a tenth of the time of a token.
//
// The caller guarantees that a replay stands for the same graph with other values in its inputs. Memory that a node
// writes in place (a KV cache) is written again. The tape owns the memory of intermediate results.
class Tape {
 public:
  // Evaluates out and records it. inputs are the arrays whose values may change: evaluated, int32 and row-major.
  // Returns null if some operation cannot be replayed; out may or may not have been evaluated then.
  static std::unique_ptr<Tape> record(const mx::array& out, const std::vector<mx::array>& inputs);

  // Sets the inputs to the given values, one input after the other, runs the nodes and returns a copy of the result.
  mx::array replay(const int64_t* values, int64_t count);

  // Used while recording: memory allocates a result, add_step records a node, give_up marks the evaluation as not
  // replayable.
  mx::allocator::Data memory(size_t bytes);
  void add_step(std::shared_ptr<Replayable> node, const std::vector<mx::array>& inputs,
                const std::vector<const void*>& in, const std::vector<void*>& out);
  void give_up() { whole_ = false; }

 private:
  // A pool of blocks of memory. A block that is free again serves another result of the same size, in replays as in the
  // recorded evaluation.
  class Arena {
   public:
    ~Arena();
    mx::allocator::Buffer take(size_t bytes);
    void give(size_t bytes, mx::allocator::Buffer b);
    bool has(const mx::array& a) const { return blocks_.count(a.buffer().ptr()) > 0; }

   private:
    std::mutex lock_;  // MLX's threads may release blocks
    std::multimap<size_t, mx::allocator::Buffer> free_;
    std::unordered_set<const void*> blocks_;
  };
  struct Step {
    std::shared_ptr<Replayable> node;
    size_t in, out;  // indices of its first pointers in in_ and out_
  };
  using Held = std::shared_ptr<mx::array::Data>;

  void hold(const mx::array& a);

  bool whole_ = true;
  std::shared_ptr<Arena> arena_ = std::make_shared<Arena>();
  std::vector<Step> steps_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::vector<Held> held_;  // memory that does not belong to the arena
  std::unordered_set<const void*> holds_;
  std::vector<mx::array> inputs_;
  std::unique_ptr<mx::array> result_;
};

}  // namespace ingot::cpu
