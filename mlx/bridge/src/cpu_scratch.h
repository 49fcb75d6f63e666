// Memory that kernels work in.
#pragma once

#include <cstddef>

namespace ingot::cpu {

constexpr int kScratchSlots = 16;

// Memory of the calling thread, aligned to 64 bytes, that lives until its next call with the same slot.
void* scratch(int slot, size_t bytes);
template <class T>
T* scratch(int slot, size_t count) { return static_cast<T*>(scratch(slot, count * sizeof(T))); }

}  // namespace ingot::cpu
