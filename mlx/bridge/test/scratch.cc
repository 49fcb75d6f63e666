// A replacement of cpu/scratch.cc for tests: memory of exactly the requested size, filled with NaN.
#include <cstdlib>
#include <cstring>

#include "cpu/scratch.h"

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
