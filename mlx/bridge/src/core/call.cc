#include "core/call.h"

#include <limits>
#include <sstream>

#include "mlx/memory.h"

namespace ingot {

namespace {

constexpr mx::Dtype::Val kCodes[] = {
    mx::Dtype::Val::bool_,   mx::Dtype::Val::uint8,   mx::Dtype::Val::uint16,   mx::Dtype::Val::uint32,
    mx::Dtype::Val::uint64,  mx::Dtype::Val::int8,    mx::Dtype::Val::int16,    mx::Dtype::Val::int32,
    mx::Dtype::Val::int64,   mx::Dtype::Val::float16, mx::Dtype::Val::float32,  mx::Dtype::Val::float64,
    mx::Dtype::Val::bfloat16};

constexpr mx::Dtype kTypes[] = {mx::bool_, mx::uint8, mx::uint16,  mx::uint32,  mx::uint64,  mx::int8,    mx::int16,
                                mx::int32, mx::int64, mx::float16, mx::float32, mx::float64, mx::bfloat16};

constexpr const char* kNames[] = {"bool",  "uint8", "uint16",  "uint32",  "uint64",  "int8",    "int16",
                                  "int32", "int64", "float16", "float32", "float64", "bfloat16"};

constexpr const char* kModes[] = {"affine", "mxfp4", "mxfp8", "nvfp4"};

thread_local std::string message;
thread_local int kind = IG_OK;

}  // namespace

Engine& engine() {
  static Engine* e = new Engine;  // never destroyed: arrays may outlive static destructors
  return *e;
}

EngineThread& engine_thread() {
  static thread_local EngineThread thread;
  return thread;
}

const char* fail(int k, const std::string& m) noexcept {
  kind = k;
  try {
    message = m;
  } catch (...) {
    message.clear();
  }
  return message.c_str();
}

mx::Dtype dtype_of(int64_t code) {
  if (code < 0 || code >= int64_t(std::size(kTypes))) {
    throw std::invalid_argument("unknown dtype code " + std::to_string(code));
  }
  return kTypes[code];
}

int32_t code_of(mx::Dtype d) {
  for (size_t i = 0; i < std::size(kCodes); i++) {
    if (kCodes[i] == d.val()) {
      return int32_t(i);
    }
  }
  throw std::invalid_argument("a result has a type that the binding does not support");
}

std::string to_string(const mx::array& a) {
  std::ostringstream o;
  int32_t code = -1;
  try {
    code = code_of(a.dtype());
  } catch (...) {
  }
  o << (code < 0 ? "other" : kNames[code]) << '[';
  for (size_t i = 0; i < a.ndim(); i++) {
    o << (i ? " " : "") << a.shape()[i];
  }
  o << ']';
  return o.str();
}

mx::Shape shape_of(const int64_t* dims, int rank) {
  if (rank < 0 || rank > IG_MAX_RANK) {
    throw std::invalid_argument("rank " + std::to_string(rank) + " is not in 0..8");
  }
  mx::Shape shape;
  for (int i = 0; i < rank; i++) {
    if (dims[i] < 0 || dims[i] > std::numeric_limits<int32_t>::max()) {
      throw std::invalid_argument("dimension " + std::to_string(dims[i]) + " is out of range");
    }
    shape.push_back(int32_t(dims[i]));
  }
  return shape;
}

namespace {

void exceed(const std::string& what, size_t bytes, int64_t left) {
  std::ostringstream o;
  o << what << " needs " << bytes << " bytes; " << left << " of the memory budget of " << engine().budget <<
      " are left";
  throw OutOfMemory(o.str());
}

int64_t left_of_budget() { return std::max<int64_t>(0, engine().budget - int64_t(mx::get_active_memory())); }

}  // namespace

void reserve(size_t bytes, const std::string& what) {
  if (int64_t left = left_of_budget(); bytes > size_t(left)) {
    exceed(what, bytes, left);
  }
}

void reserve(const mx::array& a) {
  if (int64_t left = left_of_budget(); bytes_of(a) > size_t(left)) {
    exceed(to_string(a), bytes_of(a), left);
  }
}

size_t bytes_of(const mx::array& a) {
  int64_t bytes = int64_t(a.itemsize());
  bool overflow = false;
  for (auto n : a.shape()) {
    if (n < 0) {
      throw std::invalid_argument(to_string(a) + " has a negative dimension");
    }
    if (n == 0) {
      return 0;
    }
    overflow |= __builtin_mul_overflow(bytes, int64_t(n), &bytes);
  }
  if (overflow) {
    throw OutOfMemory(to_string(a) + " needs more than 2^63 bytes");
  }
  return size_t(bytes);
}

void describe(mx::array a, ig_desc* out) {
  if (a.ndim() > IG_MAX_RANK) {
    throw std::invalid_argument("a result has more than 8 axes");
  }
  if (a.status() == mx::array::Status::unscheduled) {
    reserve(a);
  }
  out->dtype = code_of(a.dtype());
  out->rank = int32_t(a.ndim());
  for (size_t i = 0; i < a.ndim(); i++) {
    out->shape[i] = a.shape()[i];
  }
  out->handle = new mx::array(std::move(a));
  engine().handles++;
}

std::vector<int> all_if_empty(std::vector<int> axes, const mx::array& x) {
  return axes.empty() ? every_axis(x) : axes;
}

std::vector<int> transpose_axes(std::vector<int> axes, const mx::array& x) {
  if (axes.empty()) {
    for (int i = int(x.ndim()) - 1; i >= 0; i--) {
      axes.push_back(i);
    }
  }
  return axes;
}

std::vector<int> every_axis(const mx::array& x) {
  std::vector<int> axes;
  for (size_t i = 0; i < x.ndim(); i++) {
    axes.push_back(int(i));
  }
  return axes;
}

// A select always writes an output of its own. mx::copy shares its source's buffer, and so does mx::contiguous if the
// buffer is at most 16 KiB larger than the slice.
mx::array owned_copy(const mx::array& x, mx::StreamOrDevice s) {
  return mx::where(mx::array(true), x, x, s);
}

Call::Call(ig_frame* frame) : s(engine_thread().streams.at(engine_thread().current)), frame_(frame) {}

mx::array Call::array() {
  auto a = optional();
  if (!a) {
    throw std::invalid_argument("argument " + std::to_string(array_) + " is nil");
  }
  return *a;
}

std::optional<mx::array> Call::optional() {
  if (array_ >= frame_->n_arrays) {
    throw std::out_of_range("not enough arrays in the frame");
  }
  auto* p = static_cast<mx::array*>(frame_->arrays[array_++]);
  return p ? std::optional<mx::array>(*p) : std::nullopt;
}

std::vector<mx::array> Call::arrays() {
  int64_t n = wide();
  std::vector<mx::array> v;
  v.reserve(n);
  for (int64_t i = 0; i < n; i++) {
    v.push_back(array());
  }
  return v;
}

int64_t Call::wide() {
  if (int_ >= frame_->n_ints) {
    throw std::out_of_range("not enough integers in the frame");
  }
  return frame_->ints[int_++];
}

int Call::integer() {
  int64_t v = wide();
  if (v < std::numeric_limits<int>::min() || v > std::numeric_limits<int>::max()) {
    throw std::out_of_range(std::to_string(v) + " does not fit 32 bits");
  }
  return int(v);
}

std::vector<int> Call::integers() {
  int64_t n = wide();
  std::vector<int> v;
  v.reserve(n);
  for (int64_t i = 0; i < n; i++) {
    v.push_back(integer());
  }
  return v;
}

std::optional<int> Call::optional_integer() {
  int v = integer();
  return v ? std::optional<int>(v) : std::nullopt;
}

double Call::real() {
  if (real_ >= frame_->n_reals) {
    throw std::out_of_range("not enough numbers in the frame");
  }
  return frame_->reals[real_++];
}

std::string Call::mode() {
  int64_t v = wide();
  if (v < 0 || v >= int64_t(std::size(kModes))) {
    throw std::invalid_argument("unknown quantization mode " + std::to_string(v));
  }
  return kModes[v];
}

void Call::result(mx::array a) {
  if (frame_->n_outs >= frame_->cap_outs) {
    throw std::out_of_range("too many results for the frame");
  }
  describe(std::move(a), &frame_->outs[frame_->n_outs]);
  frame_->n_outs++;
}

void Call::result(std::vector<mx::array> as) {
  for (auto& a : as) {
    result(std::move(a));
  }
}

}  // namespace ingot

using namespace ingot;

int32_t ig_error_kind(void) { return kind; }

const char* ig_call(int32_t op, ig_frame* frame) {
  frame->n_outs = 0;
  const char* failed = guard([&] {
    if (op < 0 || op >= operation_count) {
      throw std::out_of_range("unknown operation " + std::to_string(op));
    }
    Call call(frame);
    operations[op].run(call);
  });
  if (!failed) {
    return nullptr;
  }
  try {
    for (int i = 0; i < frame->n_outs; i++) {
      ig_free(&frame->outs[i].handle, 1);
    }
    frame->n_outs = 0;
    std::string text = op >= 0 && op < operation_count ? operations[op].name : "?";
    text += '(';
    for (int i = 0; i < frame->n_arrays; i++) {
      auto* a = static_cast<mx::array*>(frame->arrays[i]);
      text += (i ? ", " : "") + (a ? to_string(*a) : std::string("nil"));
    }
    return fail(kind, text + "): " + failed);
  } catch (...) {
    return failed;
  }
}

void ig_free(void* const* arrays, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (arrays[i]) {
      delete static_cast<mx::array*>(arrays[i]);
      engine().handles--;
    }
  }
}
