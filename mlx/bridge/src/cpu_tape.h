// An evaluation on the CPU that can be done again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "cpu_node.h"
#include "mlx/mlx.h"

namespace ingot::cpu {

// What an evaluation did: its nodes one after the other, and where their arrays lie. Played again they read what lies
// there by then, and write it to the same places. Building, walking and freeing a token's graph costs as much as a
// tenth of computing it.
//
// Whoever plays knows that it is the same graph but for the numbers in its inputs. Memory that a node writes in place
// (a cache) is written again; memory in between belongs to the tape.
class Tape {
 public:
  // Computes an array as evaluate does. inputs are those whose numbers may change, computed, int32 and row-major. Null
  // where not all of it can be done again; then it may be computed or not.
  static std::unique_ptr<Tape> record(const mx::array& out, const std::vector<mx::array>& inputs);

  // Does it all again with other numbers, those of one input after the other.
  mx::array replay(const int64_t* values, int64_t count);

  // While it is being recorded: memory for a result, what a node did, and that something cannot be done again.
  mx::allocator::Data memory(size_t bytes);
  void add_step(std::shared_ptr<Replayable> node, const std::vector<mx::array>& inputs, const std::vector<const void*>& in,
           const std::vector<void*>& out);
  void give_up() { whole_ = false; }

 private:
  // Memory of which a block, once free, is used for another result of its size: what one run can share the next one
  // can.
  class Arena {
   public:
    ~Arena();
    mx::allocator::Buffer take(size_t bytes);
    void give(size_t bytes, mx::allocator::Buffer b);
    bool has(const mx::array& a) const { return blocks_.count(a.buffer().ptr()) > 0; }

   private:
    std::mutex lock_;  // MLX's threads may be the ones that let go
    std::multimap<size_t, mx::allocator::Buffer> free_;
    std::unordered_set<const void*> blocks_;
  };
  struct Step {
    std::shared_ptr<Replayable> node;
    size_t in, out;  // where its pointers begin
  };
  using Held = std::shared_ptr<mx::array::Data>;

  void hold(const mx::array& a);

  bool whole_ = true;
  std::shared_ptr<Arena> arena_ = std::make_shared<Arena>();
  std::vector<Step> steps_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::vector<Held> held_;  // memory that is not the arena's
  std::unordered_set<const void*> holds_;
  std::vector<mx::array> inputs_;
  std::unique_ptr<mx::array> result_;
};

}  // namespace ingot::cpu
