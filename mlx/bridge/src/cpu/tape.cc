#include "cpu/tape.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "cpu/eval.h"
#include "mlx/allocator.h"

namespace ingot::cpu {

namespace {

mx::array copied(const mx::array& a) {
  mx::array to(a.shape(), a.dtype(), nullptr, {});
  to.set_data(mx::allocator::malloc(a.nbytes()));
  std::memcpy(to.data<char>(), a.data<char>(), a.nbytes());
  to.set_status(mx::array::Status::available);
  return to;
}

}  // namespace

Tape::Arena::~Arena() {
  for (auto& [bytes, b] : free_) {
    mx::allocator::allocator().free(b);
  }
}

mx::allocator::Buffer Tape::Arena::take(size_t bytes) {
  std::lock_guard lock(lock_);
  if (auto found = free_.find(bytes); found != free_.end()) {
    auto b = found->second;
    free_.erase(found);
    return b;
  }
  auto b = mx::allocator::allocator().malloc(bytes);
  blocks_.insert(b.ptr());
  return b;
}

void Tape::Arena::give(size_t bytes, mx::allocator::Buffer b) {
  std::lock_guard lock(lock_);
  free_.emplace(bytes, b);
}

mx::allocator::Data Tape::memory(size_t bytes) {
  auto b = arena_->take(bytes);
  return {b, [arena = arena_, bytes](mx::allocator::Buffer b) { arena->give(bytes, b); }};
}

void Tape::hold(const mx::array& a) {
  if (!arena_->has(a) && holds_.insert(a.buffer().ptr()).second) {
    held_.push_back(a.data_shared_ptr());
  }
}

void Tape::add_step(std::shared_ptr<Replayable> node, const std::vector<mx::array>& inputs,
                    const std::vector<const void*>& in, const std::vector<void*>& out) {
  for (const auto& x : inputs) {
    hold(x);
  }
  steps_.push_back({std::move(node), in_.size(), out_.size()});
  in_.insert(in_.end(), in.begin(), in.end());
  out_.insert(out_.end(), out.begin(), out.end());
}

std::unique_ptr<Tape> Tape::record(const mx::array& out, const std::vector<mx::array>& inputs) {
  auto tape = std::make_unique<Tape>();
  for (const auto& a : inputs) {
    if (a.status() != mx::array::Status::available || a.dtype() != mx::int32 || !a.flags().row_contiguous) {
      return nullptr;
    }
    tape->inputs_.push_back(a);
    tape->hold(a);
  }
  if (!evaluate({out}, tape.get()) || !tape->whole_ || tape->steps_.empty() || !out.flags().row_contiguous) {
    return nullptr;
  }
  // Replays overwrite this memory, so the caller's array gets a copy.
  mx::array wanted = out, result(out.shape(), out.dtype(), nullptr, {});
  result.copy_shared_buffer(wanted);
  wanted.copy_shared_buffer(copied(wanted));
  tape->result_ = std::make_unique<mx::array>(std::move(result));
  tape->holds_.clear();
  return tape;
}

mx::array Tape::replay(const int64_t* values, int64_t count) {
  int64_t wanted = 0;
  for (const auto& a : inputs_) {
    wanted += int64_t(a.size());
  }
  if (count != wanted) {
    throw std::invalid_argument("the inputs of the tape have " + std::to_string(wanted) + " values, got " +
                                std::to_string(count));
  }
  for (auto& a : inputs_) {
    auto* to = a.data<int32_t>();
    for (size_t i = 0; i < a.size(); i++) {
      to[i] = int32_t(*values++);
    }
  }
  for (const auto& s : steps_) {
    s.node->replay(Memory{in_.data() + s.in, out_.data() + s.out});
  }
  return copied(*result_);
}

}  // namespace ingot::cpu
