#include "cpu/scratch.h"

#include <cstdlib>
#include <new>
#include <utility>

namespace ingot::cpu {

namespace {

struct Slot {
  void* data = nullptr;
  size_t size = 0;
  ~Slot() { clear(); }
  void clear() {
    std::free(std::exchange(data, nullptr));
    size = 0;
  }
};

thread_local Slot slots[kScratchSlots];

}  // namespace

void* scratch(int slot, size_t bytes) {
  Slot& s = slots[slot];
  if (s.size < bytes) {
    s.clear();
    s.data = std::aligned_alloc(64, (bytes + 4095) / 4096 * 4096);
    if (!s.data) {
      throw std::bad_alloc();
    }
    s.size = bytes;
  }
  return s.data;
}

void free_scratch() noexcept {
  for (Slot& s : slots) {
    s.clear();
  }
}

}  // namespace ingot::cpu
