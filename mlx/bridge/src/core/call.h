// Shared parts of the bridge: reading a frame, returning results, converting exceptions to messages.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/bridge.h"
#include "core/mlx.h"

namespace ingot {

namespace mx = mlx::core;

struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The engine of the process.
struct Engine {
  std::string flavour;
  bool gpu = false;                 // the default device is a GPU
  bool shares_host_memory = false;  // the CPU allocator can wrap mapped memory
  std::atomic<int64_t> budget{INT64_MAX};
  std::atomic<int64_t> handles{0};
  std::atomic<int64_t> mapped{0};
};
Engine& engine();

// The state of an engine thread. Only these may call the bridge, and an array belongs to the thread that made it.
struct EngineThread {
  std::vector<mx::Stream> streams;  // none: the thread is another one
  int current = 0;
};
EngineThread& engine_thread();
bool on_engine_thread();

// Stores this thread's error message and its kind, and returns the message.
const char* fail(int kind, const std::string& message) noexcept;

// Calls f; returns NULL, or the message of the exception that it threw.
template <class F>
const char* guard(F&& f) noexcept {
  try {
    if (!on_engine_thread()) {
      return fail(IG_FAILED, "called outside the engine's thread");
    }
    f();
    return nullptr;
  } catch (const OutOfMemory& e) {
    return fail(IG_OUT_OF_MEMORY, e.what());
  } catch (const std::bad_alloc&) {
    return fail(IG_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return fail(IG_FAILED, e.what());
  } catch (...) {
    return fail(IG_FAILED, "unknown exception");
  }
}

// Throw OutOfMemory if the memory budget has no room for the bytes or the array. MLX's CPU allocator does not check for
// null, so a failed allocation would kill the process.
void reserve(size_t bytes, const std::string& what);
void reserve(const mx::array& a);

// Returns the bytes of an array by its shape; MLX's nbytes may overflow.
size_t bytes_of(const mx::array& a);

// Returns an array to Go: checks the budget, takes ownership and fills out. All results are created here.
void describe(mx::array a, ig_desc* out);

mx::Dtype dtype_of(int64_t code);
int32_t code_of(mx::Dtype d);
std::string to_string(const mx::array& a);
mx::Shape shape_of(const int64_t* dims, int rank);

inline mx::Shape to_shape(const std::vector<int>& v) {
  return mx::Shape(v.begin(), v.end());
}
std::vector<int> all_if_empty(std::vector<int> axes, const mx::array& x);
std::vector<int> transpose_axes(std::vector<int> axes, const mx::array& x);
std::vector<int> every_axis(const mx::array& x);
mx::array owned_copy(const mx::array& x, mx::StreamOrDevice s);

// Reads the arguments of one call, in the order of the operation's list.
class Call {
 public:
  explicit Call(ig_frame* frame);

  mx::array array();
  std::optional<mx::array> optional();
  std::vector<mx::array> arrays();
  int64_t wide();
  int integer();
  std::vector<int> integers();
  std::optional<int> optional_integer();
  bool flag() { return wide() != 0; }
  double real();
  mx::Dtype dtype() { return dtype_of(wide()); }
  std::string mode();

  void result(mx::array a);
  void result(std::vector<mx::array> as);

  mx::StreamOrDevice s;

 private:
  ig_frame* frame_;
  int32_t array_ = 0, int_ = 0, real_ = 0;
};

struct Operation {
  const char* name;
  void (*run)(Call&);
};
extern const Operation operations[];
extern const int operation_count;
extern const uint32_t abi;

}  // namespace ingot
