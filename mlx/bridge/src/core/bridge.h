// The C ABI between ingot's Go side and the MLX C++ library.
//
// It consists of ints, pointers and flat arrays. No C++ exception crosses it: a function returns NULL, or an error
// message that is valid until the thread's next call; ig_error_kind returns its kind. Nothing calls back into Go.
// IG_FUNCTIONS is the only list of functions: C++ generates its declarations and Go its table of pointers from it.
#ifndef INGOT_BRIDGE_H
#define INGOT_BRIDGE_H

#include <stddef.h>
#include <stdint.h>

#define IG_MAX_RANK 8

// An array as Go sees it; with its shape, so that Go needs no further call.
typedef struct {
  void* handle;
  int32_t dtype;
  int32_t rank;
  int32_t shape[IG_MAX_RANK];
} ig_desc;

// The arguments and results of one call, flat, in the order of the operation's list. A list of length n is the int n,
// followed by its items.
typedef struct {
  void** arrays;  // NULL: an absent optional argument
  int64_t* ints;
  double* reals;
  ig_desc* outs;
  int32_t n_arrays, n_ints, n_reals;
  int32_t cap_outs, n_outs;
} ig_frame;

// A GPU kernel as source text.
typedef struct {
  const char* name;
  const char* source;
  const char* header;
  const char* const* inputs;
  const char* const* outputs;
  int32_t n_inputs, n_outputs;
  int32_t cuda;  // otherwise Metal
  int32_t contiguous, atomic_outputs;
  int32_t shared_memory;
} ig_kernel_source;

enum ig_error_kinds { IG_OK = 0, IG_FAILED = 1, IG_OUT_OF_MEMORY = 2 };
enum ig_counters { IG_ACTIVE, IG_PEAK, IG_CACHED, IG_BUDGET, IG_MAPPED, IG_HANDLES, IG_BUFFERS };
enum ig_limits { IG_SET_BUDGET, IG_SET_CACHE, IG_SET_WIRED, IG_RESET_PEAK, IG_CLEAR_CACHE };

// X(result, name, parameters, arguments)
#define IG_FUNCTIONS(X)                                                                                                \
  /* the number of this interface; the version of the loaded library */                                                \
  X(uint32_t, ig_abi, (void), ())                                                                                      \
  X(const char*, ig_version, (void), ())                                                                               \
  /* starts the engine on the calling thread; flavour is the wheel's; sets device to 1 for a GPU. With flavour ""      \
     the thread becomes another one of the running engine */                                                           \
  X(const char*, ig_init, (const char* flavour, int32_t* device), (flavour, device))                                   \
  X(int32_t, ig_error_kind, (void), ())                                                                                \
  /* runs an operation of ops.txt, by its index among them */                                                          \
  X(const char*, ig_call, (int32_t op, ig_frame* frame), (op, frame))                                                  \
  X(void, ig_free, (void* const* arrays, int64_t n), (arrays, n))                                                      \
  X(const char*, ig_eval, (void* const* arrays, int64_t n, int32_t async), (arrays, n, async))                         \
  /* records an evaluation on the CPU for replay with other values in its inputs. tape is set to NULL if it cannot     \
     be replayed, which is not an error; out may have been computed or not then */                                     \
  X(const char*, ig_tape_record, (void* out, void* const* inputs, int64_t n, void** tape), (out, inputs, n, tape))     \
  /* replays a tape; values are those of its inputs, one input after the other */                                      \
  X(const char*, ig_tape_replay, (void* tape, const int64_t* values, int64_t n, ig_desc* out), (tape, values, n, out)) \
  X(void, ig_tape_free, (void* tape), (tape))                                                                          \
  /* copy from and to host memory */                                                                                   \
  X(const char*, ig_from_host, (const void* data, int32_t dtype, const int64_t* shape, int32_t rank, ig_desc* out),    \
    (data, dtype, shape, rank, out))                                                                                   \
  X(const char*, ig_to_host, (void* array, void* data, int64_t bytes), (array, data, bytes))                           \
  /* bytes [offset, offset+length) of a file: mapped if the device can read a mapping, otherwise copied */             \
  X(const char*, ig_region_new, (const char* path, int64_t offset, int64_t length, void** region),                     \
    (path, offset, length, region))                                                                                    \
  X(void, ig_region_free, (void* region), (region))                                                                    \
  /* a tensor inside a region, without a copy; it keeps the region's memory alive, not the region */                   \
  X(const char*, ig_region_array,                                                                                      \
    (void* region, int64_t offset, int32_t dtype, const int64_t* shape, int32_t rank, ig_desc* out),                   \
    (region, offset, dtype, shape, rank, out))                                                                         \
  /* prepares linear layers; the frame has the arguments of LinearLayers without x. ig_layers_apply returns their      \
     results in the frame, which has x, second and weight, then kind, activation, plus_one and keep of Prologue in     \
     ops/layers.h, whether results are float32, and eps */                                                             \
  X(const char*, ig_layers_new, (ig_frame* frame, void** layers), (frame, layers))                                     \
  X(void, ig_layers_free, (void* layers), (layers))                                                                    \
  X(const char*, ig_layers_apply, (void* layers, ig_frame* frame), (layers, frame))                                    \
  X(int64_t, ig_counter, (int32_t which, void* const* arrays, int64_t n), (which, arrays, n))                          \
  X(const char*, ig_limit, (int32_t which, int64_t value), (which, value))                                             \
  X(const char*, ig_stream_new, (int32_t gpu, int32_t* index), (gpu, index))                                           \
  X(const char*, ig_stream_use, (int32_t index), (index))                                                              \
  X(const char*, ig_synchronize, (void), ())                                                                           \
  X(const char*, ig_kernel_new, (const ig_kernel_source* source, int32_t* index), (source, index))                     \
  /* ints: grid 3, threads 3, outputs of (dtype, rank, shape), template of (kind, value) paired with names */          \
  X(const char*, ig_kernel_call, (int32_t index, ig_frame* frame, const char* const* template_names),                  \
    (index, frame, template_names))                                                                                    \
  /* joins a group of ranks: backend "local" for threads of this process, or one of MLX's. An operation that takes     \
     longer than the limit ends the group. group[0] is its index, then come the rank and the number of ranks */        \
  X(const char*, ig_group_join,                                                                                        \
    (const char* backend, const char* name, int32_t rank, int32_t size, int64_t limit_ms, int32_t* group),             \
    (backend, name, rank, size, limit_ms, group))                                                                      \
  X(void, ig_group_leave, (int32_t group), (group))                                                                    \
  X(const char*, ig_device_info, (void), ())                                                                           \
  /* configures the CPU kernels: threads, int8 activations, instruction set ("": the best); 0 threads: no change */    \
  X(const char*, ig_cpu_set, (int32_t threads, int32_t fast, const char* isa), (threads, fast, isa))                   \
  /* "isa NAME", "threads N", "math exact|fast", "node NAME CALLS NANOSECONDS" lines; resets the counts */             \
  X(const char*, ig_cpu_report, (void), ())

#ifdef __cplusplus
extern "C" {
#define IG_DECLARE(result, name, parameters, arguments) __attribute__((visibility("default"))) result name parameters;
IG_FUNCTIONS(IG_DECLARE)
#undef IG_DECLARE
}
#endif

#endif  // INGOT_BRIDGE_H
