#include "cpu/node.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <typeinfo>

#include "cpu/tape.h"
#include "mlx/allocator.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/primitives.h"

namespace ingot::cpu {

namespace {

struct NodeTime {
  std::atomic<int64_t> calls{0}, nanoseconds{0};
};

std::mutex times_lock;
std::map<std::string, NodeTime*>& all_times() {
  static auto* m = new std::map<std::string, NodeTime*>;
  return *m;
}

NodeTime& time_of(const char* name) {
  std::lock_guard lock(times_lock);
  NodeTime*& s = all_times()[name];
  if (!s) {
    s = new NodeTime;
  }
  return *s;
}

template <class F>
void timed(NodeTime& counter, F&& f) {
  auto started = std::chrono::steady_clock::now();
  f();
  auto time = std::chrono::steady_clock::now() - started;
  counter.calls.fetch_add(1, std::memory_order_relaxed);
  counter.nanoseconds.fetch_add(std::chrono::nanoseconds(time).count(), std::memory_order_relaxed);
}

// Copies an array of any strides to row-major order.
void compact(const char* from, char* to, const mx::Shape& shape, const mx::Strides& strides, size_t item, size_t axis) {
  if (axis == shape.size()) {
    std::memcpy(to, from, item);
    return;
  }
  size_t step = item;
  for (size_t i = axis + 1; i < shape.size(); i++) {
    step *= size_t(shape[i]);
  }
  if (axis + 1 == shape.size() && strides[axis] == 1) {
    std::memcpy(to, from, item * size_t(shape[axis]));
    return;
  }
  for (int i = 0; i < shape[axis]; i++) {
    compact(from + ptrdiff_t(item) * strides[axis] * i, to + step * size_t(i), shape, strides, item, axis + 1);
  }
}

struct Strided {
  const char* from;
  char* to;
  mx::Shape shape;
  mx::Strides strides;
  size_t item;
};

void compact(const std::vector<Strided>& all) {
  for (const auto& s : all) {
    compact(s.from, s.to, s.shape, s.strides, s.item, 0);
  }
}

// The memory of a node's arrays, and the inputs that must be copied to row-major order first.
struct Run {
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<Strided> strided;
  std::vector<mx::array> copies;  // the row-major copies of strided inputs

  void clear() {
    in.clear();
    out.clear();
    strided.clear();
    copies.clear();
  }

  void execute(const Body& body, NodeTime& counter) const {
    timed(counter, [&] {
      compact(strided);
      body(Memory{in.data(), out.data()});
    });
  }
};

// Compact is a recorded step that copies the strided inputs of the next node to row-major order.
class Compact : public Replayable {
 public:
  Compact(std::vector<Strided> strided, std::vector<mx::array> to) : strided_(std::move(strided)), to_(std::move(to)) {}

  void replay(const Memory&) override { compact(strided_); }

 private:
  std::vector<Strided> strided_;
  std::vector<mx::array> to_;
};

class Node : public mx::Primitive, public Replayable, public std::enable_shared_from_this<Node> {
 public:
  Node(mx::Stream s, const char* name, std::vector<mx::Shape> shapes, Body body, std::vector<Reuse> reuse)
      : Primitive(s),
        name_(name),
        time_(&time_of(name)),
        shapes_(std::move(shapes)),
        body_(std::move(body)),
        reuse_(std::move(reuse)) {}

  // Called by MLX; runs the node on the stream's thread.
  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    auto& encoder = mx::cpu::get_command_encoder(stream());
    Run run;
    prepare(inputs, outputs, run);
    for (auto& x : run.copies) {
      encoder.add_temporary(std::move(x));
    }
    run.copies.clear();
    // The encoder keeps the memory of the inputs alive until the task has run.
    encoder.dispatch([self = shared_from_this(), run = std::move(run)] { run.execute(self->body_, *self->time_); });
  }

  // Runs the node on this thread. The inputs must be evaluated.
  void run(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs, Tape* tape) {
    static thread_local Run run;  // its lists keep their capacity
    run.clear();                  // after a run that failed
    prepare(inputs, outputs, run, tape);
    run.execute(body_, *time_);
    if (tape) {
      if (!run.strided.empty()) {
        tape->add_step(std::make_shared<Compact>(run.strided, run.copies), {}, {}, {});
      }
      tape->add_step(shared_from_this(), inputs, run.in, run.out);
    }
    run.clear();
  }

  void replay(const Memory& memory) override {
    timed(*time_, [&] { body_(memory); });
  }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error(std::string(name_) + " is a CPU operation");
  }

  const char* name() const override { return name_; }
  bool is_equivalent(const mx::Primitive&) const override { return false; }
  std::vector<mx::Shape> output_shapes(const std::vector<mx::array>&) override { return shapes_; }

 private:
  void prepare(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs, Run& run, Tape* tape = nullptr) {
    for (const auto& x : inputs) {
      if (x.flags().row_contiguous || x.size() <= 1) {
        run.in.push_back(x.data<char>());
        continue;
      }
      mx::array row_major(x.shape(), x.dtype(), nullptr, {});
      row_major.set_data(mx::allocator::malloc(row_major.nbytes()));
      run.strided.push_back({x.data<char>(), row_major.data<char>(), x.shape(), x.strides(), x.itemsize()});
      run.in.push_back(row_major.data<char>());
      run.copies.push_back(std::move(row_major));
    }
    for (size_t i = 0; i < outputs.size(); i++) {
      allocate(inputs, outputs[i], int(i), tape);
      run.out.push_back(outputs[i].data<char>());
    }
  }

  void allocate(const std::vector<mx::array>& inputs, mx::array& out, int index, Tape* tape) {
    for (const auto& r : reuse_) {
      const auto& x = inputs[size_t(r.input)];
      bool fits = x.flags().row_contiguous && x.nbytes() == out.nbytes();
      // While recording, an input's memory is not reused: a replay must find the input unchanged.
      if (r.output == index && fits && (r.always || (!tape && x.is_donatable()))) {
        out.copy_shared_buffer(x);
        return;
      }
      if (r.output == index && r.always) {
        throw std::runtime_error(std::string(name_) + ": memory that is written in place is not row-major");
      }
    }
    out.set_data(tape ? tape->memory(out.nbytes()) : mx::allocator::malloc(out.nbytes()));
  }

  const char* name_;
  NodeTime* time_;
  std::vector<mx::Shape> shapes_;
  Body body_;
  std::vector<Reuse> reuse_;
};

}  // namespace

std::vector<mx::array> node(const char* name, std::vector<mx::array> inputs, std::vector<mx::Shape> shapes,
                            std::vector<mx::Dtype> types, mx::StreamOrDevice s, Body body, std::vector<Reuse> reuse) {
  auto made = std::make_shared<Node>(mx::to_stream(s), name, shapes, std::move(body), std::move(reuse));
  return mx::array::make_arrays(std::move(shapes), types, made, std::move(inputs));
}

bool is_node(const mx::Primitive& p) { return typeid(p) == typeid(Node); }

void run_node(mx::Primitive& p, const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs, Tape* tape) {
  static_cast<Node&>(p).run(inputs, outputs, tape);
}

bool on_cpu(mx::StreamOrDevice s) { return mx::to_stream(s).device == mx::Device::cpu; }

std::string profile() {
  std::lock_guard lock(times_lock);
  std::string text;
  for (auto& [name, s] : all_times()) {
    int64_t calls = s->calls.exchange(0), time = s->nanoseconds.exchange(0);
    if (calls > 0) {
      text += name + " " + std::to_string(calls) + " " + std::to_string(time) + "\n";
    }
  }
  return text;
}

}  // namespace ingot::cpu
