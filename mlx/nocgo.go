//go:build !cgo || !(linux || darwin)

package mlx

import "unsafe"

// Without cgo there is no engine. Open returns ErrNoCgo before it calls any of these.

const haveCgo = false

func cLoad(_, _ string) string                                                  { panic(ErrNoCgo) }
func cABI() uint32                                                              { panic(ErrNoCgo) }
func cVersion() string                                                          { panic(ErrNoCgo) }
func cErrorKind() int                                                           { panic(ErrNoCgo) }
func cInit(string) (bool, string)                                               { panic(ErrNoCgo) }
func cAlloc(uintptr) unsafe.Pointer                                             { panic(ErrNoCgo) }
func cDispose(unsafe.Pointer)                                                   { panic(ErrNoCgo) }
func cCall(int32, *frame) string                                                { panic(ErrNoCgo) }
func cFree(*unsafe.Pointer, int)                                                { panic(ErrNoCgo) }
func cEval(*unsafe.Pointer, int, bool) string                                   { panic(ErrNoCgo) }
func cTapeRecord(unsafe.Pointer, *unsafe.Pointer, int) (unsafe.Pointer, string) { panic(ErrNoCgo) }
func cTapePlay(unsafe.Pointer, *int64, int, *desc) string                       { panic(ErrNoCgo) }
func cTapeFree(unsafe.Pointer)                                                  { panic(ErrNoCgo) }
func cFromHost(unsafe.Pointer, DType, *int64, int, *desc) string                { panic(ErrNoCgo) }
func cToHost(_, _ unsafe.Pointer, _ int) string                                 { panic(ErrNoCgo) }
func cRegionNew(string, int64, int64) (unsafe.Pointer, string)                  { panic(ErrNoCgo) }
func cReportTruncated(string) error                                             { panic(ErrNoCgo) }
func cWatch(string, int64) error                                                { panic(ErrNoCgo) }
func cRegionFree(unsafe.Pointer)                                                { panic(ErrNoCgo) }
func cRegionArray(unsafe.Pointer, int64, DType, *int64, int, *desc) string      { panic(ErrNoCgo) }
func cLayersNew(*frame) (unsafe.Pointer, string)                                { panic(ErrNoCgo) }
func cLayersFree(unsafe.Pointer)                                                { panic(ErrNoCgo) }
func cLayersApply(unsafe.Pointer, *frame) string                                { panic(ErrNoCgo) }
func cCounter(int32, *unsafe.Pointer, int) int64                                { panic(ErrNoCgo) }
func cLimit(int32, int64) string                                                { panic(ErrNoCgo) }
func cStreamNew(bool) (int32, string)                                           { panic(ErrNoCgo) }
func cStreamUse(int32) string                                                   { panic(ErrNoCgo) }
func cSynchronize() string                                                      { panic(ErrNoCgo) }
func cCPUSet(int, bool, string) string                                          { panic(ErrNoCgo) }
func cCPUReport() string                                                        { panic(ErrNoCgo) }
func cGroupJoin(_, _ string, _, _ int, _ int64) ([3]int32, string)              { panic(ErrNoCgo) }
func cEndMPI() int                                                              { panic(ErrNoCgo) }
func cGroupLeave(int32)                                                         { panic(ErrNoCgo) }
func cDeviceInfo() string                                                       { panic(ErrNoCgo) }
func cKernelNew(*KernelSource) (int32, string)                                  { panic(ErrNoCgo) }
func cKernelCall(int32, *frame, []string) string                                { panic(ErrNoCgo) }
