#include "cpu/eval.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "cpu/node.h"
#include "cpu/tape.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/primitives.h"

namespace ingot::cpu {

namespace {

// A set of addresses. The graph of a token has hundreds, and the standard library's sets allocate memory for each.
class Seen {
 public:
  // Reports whether id is new.
  bool insert(std::uintptr_t id) {
    if (2 * ++count_ > slots_.size()) {
      grow();
    }
    return place(id);
  }

 private:
  bool place(std::uintptr_t id) {
    size_t mask = slots_.size() - 1, i = size_t((uint64_t(id) * 0x9e3779b97f4a7c15) >> 32) & mask;
    for (; slots_[i] != 0; i = (i + 1) & mask) {
      if (slots_[i] == id) {
        return false;
      }
    }
    slots_[i] = id;
    return true;
  }

  void grow() {
    std::vector<std::uintptr_t> old(std::max<size_t>(1024, 2 * slots_.size()));
    old.swap(slots_);
    for (auto id : old) {
      if (id != 0) {
        place(id);
      }
    }
  }

  std::vector<std::uintptr_t> slots_;
  size_t count_ = 0;
};

// Walk lists the arrays to evaluate in topological order.
class Walk {
 public:
  // Adds an array and all that it depends on. Returns false if one of them is not for the CPU.
  bool add(const mx::array& root) {
    if (!visit(root)) {
      return false;
    }
    while (!path_.empty()) {
      auto& [a, next] = path_.back();
      if (next < a->inputs().size()) {
        if (!visit(a->inputs()[next++])) {
          return false;
        }
        continue;
      }
      order.push_back(*a);
      path_.pop_back();
    }
    return true;
  }

  std::vector<mx::array> order;
  std::vector<mx::array> pending;  // scheduled by MLX and perhaps not complete

 private:
  bool visit(const mx::array& a) {
    if (a.status() == mx::array::Status::available) {
      return true;
    }
    if (a.status() == mx::array::Status::evaluated) {
      pending.push_back(a);
      return true;
    }
    if (!a.has_primitive() || a.primitive().device() != mx::Device::cpu) {
      return false;
    }
    if (seen_.insert(a.id())) {
      path_.emplace_back(&a, 0);
    }
    return true;
  }

  std::vector<std::pair<const mx::array*, size_t>> path_;
  Seen seen_;
};

// MLX operations that return a view of their input where possible (mlx 0.32.4, backend/cpu/primitives.cpp and
// backend/common/common.cpp).
bool is_view(const mx::Primitive& p) {
  static const std::unordered_set<std::string_view> names = {
      "AsStrided", "Broadcast", "BroadcastAxes", "Depends",   "ExpandDims",   "Flatten",   "Reshape",
      "Slice",     "Split",     "Squeeze",       "StopGradient", "Transpose", "Unflatten",
  };
  return names.count(p.name()) > 0;
}

bool shares(const mx::array& x, const std::vector<mx::array>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const auto& in) {
    return in.data_shared_ptr() == x.data_shared_ptr();
  });
}

// MlxTasks runs MLX's own operations, which execute on the threads of their streams.
class MlxTasks {
 public:
  MlxTasks() = default;
  MlxTasks(const MlxTasks&) = delete;
  MlxTasks& operator=(const MlxTasks&) = delete;

  // After another failure, running tasks still write to arrays that are about to be freed.
  ~MlxTasks() {
    try {
      wait();
    } catch (const std::exception&) {  // the first failure is reported
    }
  }

  // Runs the operation of a. Returns false if it did more than create views.
  bool run(mx::array& a, std::vector<mx::array>& outputs) {
    auto& p = a.primitive();
    if (busy_ && *busy_ != p.stream()) {
      wait();
    }
    p.eval_cpu(a.inputs(), outputs);
    bool view = is_view(p) && std::all_of(outputs.begin(), outputs.end(), [&](const auto& x) {
      return shares(x, a.inputs());
    });
    if (view) {
      return true;
    }
    auto& encoder = mx::cpu::get_command_encoder(p.stream());
    // As in MLX's own evaluation, the memory that a task reads must live until it has run. Memory that an output took
    // over is kept alive by the output.
    std::vector<std::shared_ptr<mx::array::Data>> read;
    for (const auto& in : a.inputs()) {
      read.push_back(in.data_shared_ptr());
    }
    for (const auto& s : a.siblings()) {
      read.push_back(s.data_shared_ptr());
    }
    read.erase(std::remove(read.begin(), read.end(), a.data_shared_ptr()), read.end());
    encoder.dispatch([read = std::move(read), temporaries = std::move(encoder.temporaries())] {});
    busy_ = p.stream();
    return false;
  }

  // Waits until all tasks are complete.
  void wait() {
    if (auto s = std::exchange(busy_, std::nullopt)) {
      mx::synchronize(*s);
    }
  }

 private:
  std::optional<mx::Stream> busy_;  // the stream with tasks that may be running
};

}  // namespace

bool evaluate(const std::vector<mx::array>& arrays, Tape* tape) {
  Walk walk;
  for (const auto& a : arrays) {
    if (!walk.add(a)) {
      return false;
    }
  }
  for (auto& a : walk.pending) {
    a.wait();
  }
  walk.pending.clear();
  MlxTasks mlx_tasks;
  for (auto& next : walk.order) {
    // If only its consumers hold the array, one of them can take over its memory.
    mx::array a = std::move(next);
    if (a.status() != mx::array::Status::unscheduled) {
      continue;  // evaluated together with a sibling
    }
    auto outputs = a.outputs();
    if (is_node(a.primitive())) {
      mlx_tasks.wait();
      run_node(a.primitive(), a.inputs(), outputs, tape);
    } else if (!mlx_tasks.run(a, outputs) && tape) {
      tape->give_up();
    }
    for (auto& x : outputs) {
      x.set_status(mx::array::Status::available);
    }
    outputs.clear();
    a.detach();
  }
  mlx_tasks.wait();
  return true;
}

}  // namespace ingot::cpu
