//go:build cgo && (linux || darwin)

package mlx

// This is the only file that imports "C". It loads the two libraries with dlopen and calls the bridge through a table
// of function pointers, so building and testing need neither the engine nor its headers.

/*
#cgo linux LDFLAGS: -ldl
#define _GNU_SOURCE  // RTLD_DEFAULT
#include <dlfcn.h>
#include <stdlib.h>
#include "bridge/src/core/bridge.h"
#include "truncated.h"

#define IG_POINTER(result, name, parameters, arguments) result (*name) parameters;
static struct { IG_FUNCTIONS(IG_POINTER) } table;

#define IG_WRAPPER(result, name, parameters, arguments) \
  static inline result call_##name parameters { return table.name arguments; }
IG_FUNCTIONS(IG_WRAPPER)

#define IG_LOOKUP(result, name, parameters, arguments) \
  *(void**)&table.name = dlsym(lib, #name); \
  if (!table.name) return #name;

// Returns NULL, or the name of the first function that the library lacks.
static const char* look_up(void* lib) {
  IG_FUNCTIONS(IG_LOOKUP)
  return NULL;
}

// The engine is loaded first, by its full path and with RTLD_GLOBAL, so that the bridge's dependency on it resolves to
// the copy that is already loaded.
static const char* load(const char* engine, const char* bridge) {
  if (!dlopen(engine, RTLD_NOW | RTLD_GLOBAL)) return dlerror();
  void* lib = dlopen(bridge, RTLD_NOW | RTLD_LOCAL);
  if (!lib) return dlerror();
  return look_up(lib);
}

// Ends MPI, whose library MLX has loaded with RTLD_GLOBAL. Returns MPI's code, -1 if there is no such library.
static int end_mpi(void) {
  int (*finalize)(void);
  *(void**)&finalize = dlsym(RTLD_DEFAULT, "MPI_Finalize");
  return finalize ? finalize() : -1;
}
*/
import "C"

import (
	"syscall"
	"unsafe"
)

const haveCgo = true

// cReportTruncated installs a handler: if the process dies because a mapped file was truncated, it prints a line that
// starts with begin and names the file.
func cReportTruncated(begin string) error {
	b := C.CString(begin)
	defer C.free(unsafe.Pointer(b))
	return errno(C.ig_truncated_install(b))
}

// cWatch registers a mapped file with the handler of cReportTruncated; the mapping needs its first size bytes.
func cWatch(path string, size int64) error {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	return errno(C.ig_truncated_watch(p, C.longlong(size)))
}

func errno(code C.int) error {
	if code == 0 {
		return nil
	}
	return syscall.Errno(code)
}

// cLoad loads the libraries and returns the loader's error message, or "".
func cLoad(engine, bridge string) string {
	e, b := C.CString(engine), C.CString(bridge)
	defer C.free(unsafe.Pointer(e))
	defer C.free(unsafe.Pointer(b))
	return text(C.load(e, b))
}

func cABI() uint32     { return uint32(C.call_ig_abi()) }
func cVersion() string { return text(C.call_ig_version()) }
func cErrorKind() int  { return int(C.call_ig_error_kind()) }

func cInit(flavour string) (gpu bool, failed string) {
	f := C.CString(flavour)
	defer C.free(unsafe.Pointer(f))
	var device C.int32_t
	failed = text(C.call_ig_init(f, &device))
	return device != 0, failed
}

func cAlloc(size uintptr) unsafe.Pointer { return C.calloc(1, C.size_t(size)) }
func cDispose(p unsafe.Pointer)          { C.free(p) }

func cCall(op int32, f *frame) string {
	return text(C.call_ig_call(C.int32_t(op), (*C.ig_frame)(unsafe.Pointer(f))))
}

func cFree(arrays *unsafe.Pointer, n int) { C.call_ig_free(arrays, C.int64_t(n)) }

func cEval(arrays *unsafe.Pointer, n int, async bool) string {
	var a C.int32_t
	if async {
		a = 1
	}
	return text(C.call_ig_eval(arrays, C.int64_t(n), a))
}

func cTapeRecord(out unsafe.Pointer, inputs *unsafe.Pointer, n int) (tape unsafe.Pointer, failed string) {
	failed = text(C.call_ig_tape_record(out, inputs, C.int64_t(n), &tape))
	return tape, failed
}

func cTapePlay(tape unsafe.Pointer, numbers *int64, n int, out *desc) string {
	return text(C.call_ig_tape_replay(tape, (*C.int64_t)(numbers), C.int64_t(n), (*C.ig_desc)(unsafe.Pointer(out))))
}

func cTapeFree(tape unsafe.Pointer) { C.call_ig_tape_free(tape) }

func cFromHost(data unsafe.Pointer, dtype DType, shape *int64, rank int, out *desc) string {
	return text(C.call_ig_from_host(
		data, C.int32_t(dtype), (*C.int64_t)(shape), C.int32_t(rank), (*C.ig_desc)(unsafe.Pointer(out)),
	))
}

func cToHost(array, data unsafe.Pointer, bytes int) string {
	return text(C.call_ig_to_host(array, data, C.int64_t(bytes)))
}

func cRegionNew(path string, offset, length int64) (unsafe.Pointer, string) {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	var region unsafe.Pointer
	failed := text(C.call_ig_region_new(p, C.int64_t(offset), C.int64_t(length), &region))
	return region, failed
}

func cRegionFree(region unsafe.Pointer) { C.call_ig_region_free(region) }

func cRegionArray(region unsafe.Pointer, offset int64, dtype DType, shape *int64, rank int, out *desc) string {
	return text(C.call_ig_region_array(
		region, C.int64_t(offset), C.int32_t(dtype), (*C.int64_t)(shape), C.int32_t(rank),
		(*C.ig_desc)(unsafe.Pointer(out)),
	))
}

func cLayersNew(f *frame) (unsafe.Pointer, string) {
	var layers unsafe.Pointer
	failed := text(C.call_ig_layers_new((*C.ig_frame)(unsafe.Pointer(f)), &layers))
	return layers, failed
}

func cLayersFree(layers unsafe.Pointer) { C.call_ig_layers_free(layers) }

func cLayersApply(layers unsafe.Pointer, f *frame) string {
	return text(C.call_ig_layers_apply(layers, (*C.ig_frame)(unsafe.Pointer(f))))
}

func cCounter(which int32, arrays *unsafe.Pointer, n int) int64 {
	return int64(C.call_ig_counter(C.int32_t(which), arrays, C.int64_t(n)))
}

func cLimit(which int32, value int64) string {
	return text(C.call_ig_limit(C.int32_t(which), C.int64_t(value)))
}

func cStreamNew(gpu bool) (index int32, failed string) {
	var g, i C.int32_t
	if gpu {
		g = 1
	}
	failed = text(C.call_ig_stream_new(g, &i))
	return int32(i), failed
}

func cStreamUse(index int32) string { return text(C.call_ig_stream_use(C.int32_t(index))) }
func cSynchronize() string          { return text(C.call_ig_synchronize()) }
func cGroupJoin(backend, name string, rank, size int, limitMs int64) (group [3]int32, failed string) {
	b, n := C.CString(backend), C.CString(name)
	defer C.free(unsafe.Pointer(b))
	defer C.free(unsafe.Pointer(n))
	failed = text(C.call_ig_group_join(
		b, n, C.int32_t(rank), C.int32_t(size), C.int64_t(limitMs), (*C.int32_t)(unsafe.Pointer(&group)),
	))
	return group, failed
}

// cEndMPI waits for the other ranks.
func cEndMPI() int { return int(C.end_mpi()) }

func cGroupLeave(group int32) { C.call_ig_group_leave(C.int32_t(group)) }
func cDeviceInfo() string     { return text(C.call_ig_device_info()) }

func cCPUSet(threads int, fast bool, isa string) string {
	i := C.CString(isa)
	defer C.free(unsafe.Pointer(i))
	return text(C.call_ig_cpu_set(C.int32_t(threads), flag(fast), i))
}

func cCPUReport() string { return text(C.call_ig_cpu_report()) }

func cKernelNew(k *KernelSource) (index int32, failed string) {
	var c cStrings
	defer c.free()
	source := (*C.ig_kernel_source)(c.alloc(unsafe.Sizeof(C.ig_kernel_source{})))
	source.name, source.source, source.header = c.one(k.Name), c.one(k.Source), c.one(k.Header)
	source.inputs, source.n_inputs = c.list(k.Inputs), C.int32_t(len(k.Inputs))
	source.outputs, source.n_outputs = c.list(k.Outputs), C.int32_t(len(k.Outputs))
	source.shared_memory = C.int32_t(k.SharedMemory)
	source.cuda, source.contiguous, source.atomic_outputs = flag(k.CUDA), flag(!k.AnyLayout), flag(k.AtomicOutputs)
	var i C.int32_t
	failed = text(C.call_ig_kernel_new(source, &i))
	return int32(i), failed
}

func cKernelCall(index int32, f *frame, templates []string) string {
	var c cStrings
	defer c.free()
	return text(C.call_ig_kernel_call(C.int32_t(index), (*C.ig_frame)(unsafe.Pointer(f)), c.list(templates)))
}

// cStrings owns C memory for the duration of one call.
type cStrings struct{ all []unsafe.Pointer }

func (c *cStrings) alloc(size uintptr) unsafe.Pointer {
	p := cAlloc(size)
	c.all = append(c.all, p)
	return p
}

func (c *cStrings) one(s string) *C.char {
	p := C.CString(s)
	c.all = append(c.all, unsafe.Pointer(p))
	return p
}

func (c *cStrings) list(list []string) **C.char {
	p := (**C.char)(c.alloc(uintptr(len(list)+1) * unsafe.Sizeof(uintptr(0))))
	for i, s := range list {
		unsafe.Slice(p, len(list)+1)[i] = c.one(s)
	}
	return p
}

func (c *cStrings) free() {
	for _, p := range c.all {
		C.free(p)
	}
}

func flag(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

func text(s *C.char) string {
	if s == nil {
		return ""
	}
	if t := C.GoString(s); t != "" {
		return t
	}
	return "failed without a message"
}
