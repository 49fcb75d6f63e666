// Scratch memory in place of cpu_node.cc's: of exactly the size asked for, and full of NaN rather than of what is left
// over.
#include <cstdlib>
#include <cstring>

#include "../src/cpu_scratch.h"

namespace ingot::cpu {

void* scratch(int slot, size_t bytes) {
  struct Slots {
    void* block[kScratchSlots] = {};
    ~Slots() {
      for (void* b : block) {
        std::free(b);
      }
    }
  };
  static thread_local Slots slots;
  std::free(slots.block[slot]);
  void* p = nullptr;
  if (posix_memalign(&p, 64, bytes ? bytes : 1) != 0) {
    std::abort();
  }
  std::memset(p, 0xff, bytes);
  return slots.block[slot] = p;
}

}  // namespace ingot::cpu
