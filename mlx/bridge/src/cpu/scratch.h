// Scratch memory of the kernels.
#pragma once

#include <cstddef>

namespace ingot::cpu {

constexpr int kScratchSlots = 16;

// Returns memory of the calling thread, aligned to 64 bytes. It is valid until the thread's next call with the same
// slot, or of free_scratch. The thread keeps it for later calls. Throws std::bad_alloc.
void* scratch(int slot, size_t bytes);
template <class T>
T* scratch(int slot, size_t count) { return static_cast<T*>(scratch(slot, count * sizeof(T))); }

// Frees the scratch memory of the calling thread.
void free_scratch() noexcept;

}  // namespace ingot::cpu
