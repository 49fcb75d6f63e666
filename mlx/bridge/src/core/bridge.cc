// Initialization, evaluation, host memory, counters, limits and streams.
#include <cstring>
#include <mutex>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "core/call.h"
#include "cpu/eval.h"
#include "cpu/isa.h"
#include "cpu/node.h"
#include "cpu/scratch.h"
#include "cpu/tape.h"
#include "cpu/team/team.h"
#include "mlx/backend/cuda/cuda.h"
#include "mlx/backend/metal/metal.h"
#include "mlx/compile.h"
#include "mlx/memory.h"
#include "mlx/scheduler.h"
#include "mlx/version.h"

namespace ingot {

namespace {

thread_local bool is_engine_thread = false;
std::mutex starting;

// Reports whether an array over allocator::Buffer(p - 8) reads p: MLX's CPU allocator keeps the size in the 8 bytes
// before the data (mlx 0.32.4, backend/no_gpu/allocator.cpp). For the CPU wheel only: on GPUs a Buffer is something
// else.
bool wraps_host_memory() {
  alignas(64) static char block[128];
  char* p = block + 64;
  mx::array a(mx::allocator::Data(mx::allocator::Buffer(p - 8), [](mx::allocator::Buffer) {}), {1}, mx::uint8);
  return a.data<void>() == p;
}

// Returns free pages of the heap to the system. glibc keeps them: once a block of up to 32 MiB has been freed, later
// ones of that size come from the heap, of which it gives back only the end by itself (mallopt(3), M_MMAP_THRESHOLD).
void trim_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

std::vector<mx::array> list(void* const* arrays, int64_t n) {
  std::vector<mx::array> v;
  v.reserve(n);
  for (int64_t i = 0; i < n; i++) {
    if (arrays[i]) {  // skips absent layers of a cache
      v.push_back(*static_cast<mx::array*>(arrays[i]));
    }
  }
  return v;
}

void evaluate(std::vector<mx::array> arrays, bool async) {
  if (!engine().gpu && cpu::evaluate(arrays)) {
    return;
  }
  if (async) {
    mx::async_eval(std::move(arrays));
  } else {
    mx::eval(std::move(arrays));
  }
}

// Resets MLX's count of active tasks to zero after a failed evaluation. A task that throws on its stream's thread
// before its completion is enqueued never decrements the count (mlx 0.32.4, backend/cpu/encoder.h and StreamThread's
// enqueue in scheduler.cpp); later evaluations above the memory limit would then wait forever.
void settle() {
  auto& e = engine();
  if (e.gpu) {
    return;
  }
  for (auto& s : engine_thread().streams) {
    try {
      mx::synchronize(s);
    } catch (const std::exception&) {  // the failure has been reported already
    }
  }
  while (mx::scheduler::n_active_tasks() > 0) {
    mx::scheduler::notify_task_completion(engine_thread().streams[0]);
  }
}

template <class F>
const char* guard_evaluation(F&& f) noexcept {
  return guard([&] {
    try {
      f();
    } catch (...) {
      settle();
      throw;
    }
  });
}

}  // namespace

bool on_engine_thread() { return is_engine_thread; }

}  // namespace ingot

using namespace ingot;

uint32_t ig_abi(void) { return abi; }

const char* ig_version(void) { return mx::version(); }

const char* ig_init(const char* flavour, int32_t* device) {
  is_engine_thread = true;
  const char* failed = guard([&] {
    std::lock_guard lock(starting);
    auto& e = engine();
    auto& t = engine_thread();
    if (*flavour == 0) {
      if (e.flavour.empty()) {
        throw std::runtime_error("the engine is not running");
      }
      t.streams.push_back(mx::default_stream(e.gpu ? mx::Device::gpu : mx::Device::cpu));
      *device = e.gpu;
      return;
    }
    if (!e.flavour.empty()) {
      throw std::runtime_error("the engine is already running");
    }
    bool gpu = mx::metal::is_available() || mx::cu::is_available();
    mx::Device d(gpu ? mx::Device::gpu : mx::Device::cpu);
    mx::set_default_device(d);
    if (!gpu) {
      mx::disable_compile();  // on the CPU it runs a compiler in a shared folder, without any gain
    }
    t.streams.push_back(mx::default_stream(d));
    e.flavour = flavour;
    e.shares_host_memory = e.flavour == "cpu" && wraps_host_memory();
    e.gpu = gpu;
    *device = gpu;
  });
  if (failed) {
    is_engine_thread = false;
  }
  return failed;
}

const char* ig_eval(void* const* arrays, int64_t n, int32_t async) {
  return guard_evaluation([&] {
    auto v = list(arrays, n);
    if (v.empty()) {
      return;
    }
    evaluate(std::move(v), async);
  });
}

const char* ig_tape_record(void* out, void* const* inputs, int64_t n, void** tape) {
  *tape = nullptr;
  return guard_evaluation([&] {
    if (!engine().gpu) {
      *tape = cpu::Tape::record(*static_cast<mx::array*>(out), list(inputs, n)).release();
    }
  });
}

const char* ig_tape_replay(void* tape, const int64_t* values, int64_t n, ig_desc* out) {
  return guard([&] { describe(static_cast<cpu::Tape*>(tape)->replay(values, n), out); });
}

void ig_tape_free(void* tape) { delete static_cast<cpu::Tape*>(tape); }

const char* ig_from_host(const void* data, int32_t dtype, const int64_t* shape, int32_t rank, ig_desc* out) {
  return guard([&] {
    auto type = dtype_of(dtype);
    mx::array a(shape_of(shape, rank), type, nullptr, {});
    reserve(a);
    a.set_data(mx::allocator::malloc(a.nbytes()));
    if (a.nbytes() > 0) {
      std::memcpy(a.data<void>(), data, a.nbytes());
    }
    a.set_status(mx::array::Status::available);
    describe(std::move(a), out);
  });
}

const char* ig_to_host(void* array, void* data, int64_t bytes) {
  return guard_evaluation([&] {
    mx::array a = *static_cast<mx::array*>(array);
    if (int64_t(a.nbytes()) != bytes) {
      throw std::invalid_argument(to_string(a) + " has " + std::to_string(a.nbytes()) + " bytes, not " +
                                  std::to_string(bytes));
    }
    if (bytes == 0) {
      return;
    }
    evaluate({a}, false);
    if (!a.flags().row_contiguous) {
      a = mx::contiguous(a, false, Call(nullptr).s);
      evaluate({a}, false);
    }
    std::memcpy(data, a.data<void>(), bytes);
  });
}

int64_t ig_counter(int32_t which, void* const* arrays, int64_t n) {
  switch (which) {
    case IG_ACTIVE:
      return int64_t(mx::get_active_memory());
    case IG_PEAK:
      return int64_t(mx::get_peak_memory());
    case IG_CACHED:
      return int64_t(mx::get_cache_memory());
    case IG_BUDGET:
      return engine().budget;
    case IG_MAPPED:
      return engine().mapped;
    case IG_HANDLES:
      return engine().handles;
    case IG_BUFFERS: {
      int64_t bytes = -1;
      guard([&] { bytes = int64_t(mx::get_array_buffer_size(list(arrays, n))); });
      return bytes;
    }
  }
  return -1;
}

const char* ig_limit(int32_t which, int64_t value) {
  return guard([&] {
    if (value < 0) {
      throw std::invalid_argument("a limit is negative: " + std::to_string(value));
    }
    switch (which) {
      case IG_SET_BUDGET:
        engine().budget = value;
        mx::set_memory_limit(size_t(value));
        return;
      case IG_SET_CACHE:
        mx::set_cache_limit(size_t(value));
        return;
      case IG_SET_WIRED:
        mx::set_wired_limit(size_t(value));
        return;
      case IG_RESET_PEAK:
        mx::reset_peak_memory();
        return;
      case IG_CLEAR_CACHE:
        mx::clear_cache();
        cpu::Team::instance().each(cpu::free_scratch);
        trim_heap();
        return;
    }
    throw std::invalid_argument("unknown limit " + std::to_string(which));
  });
}

const char* ig_stream_new(int32_t gpu, int32_t* index) {
  return guard([&] {
    auto& t = engine_thread();
    t.streams.push_back(mx::new_stream(mx::Device(gpu ? mx::Device::gpu : mx::Device::cpu)));
    *index = int32_t(t.streams.size()) - 1;
  });
}

const char* ig_stream_use(int32_t index) {
  return guard([&] {
    auto& t = engine_thread();
    t.streams.at(index);
    t.current = index;
  });
}

const char* ig_synchronize(void) {
  return guard_evaluation([&] { mx::synchronize(engine_thread().streams.at(engine_thread().current)); });
}

const char* ig_device_info(void) {
  static thread_local std::string text;
  text.clear();
  guard([&] {
    for (auto& [key, value] : mx::device_info()) {
      text += key + "=";
      text += std::holds_alternative<std::string>(value) ? std::get<std::string>(value)
                                                         : std::to_string(std::get<size_t>(value));
      text += "\n";
    }
  });
  return text.c_str();
}

const char* ig_cpu_set(int32_t threads, int32_t fast, const char* isa) {
  return guard([&] {
    mx::synchronize();  // a running kernel keeps its settings
    if (threads > 0) {
      cpu::set_isa(isa);
      cpu::set_math(fast ? cpu::Math::fast : cpu::Math::exact);
      cpu::Team::instance().resize(threads);
    }
  });
}

const char* ig_cpu_report(void) {
  static thread_local std::string text;
  text = std::string("isa ") + cpu::name_of(cpu::isa()) + "\nthreads " + std::to_string(cpu::Team::instance().size()) +
         "\nmath " + (cpu::math() == cpu::Math::fast ? "fast" : "exact") + "\n" + cpu::profile();
  return text.c_str();
}
