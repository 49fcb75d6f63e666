package mlx

import (
	"fmt"
	"unsafe"
)

// Truncated follows "ingot: " at the start of the last line that a process prints if it dies because a mapped file was
// truncated.
const Truncated = "a file of the model was truncated while it was in use: "

// Region is a range of a file as memory: mapped if the device can read host memory, otherwise copied. The file must not
// be truncated or rewritten in place while arrays over it exist. Reading a truncated part ends the process, which then
// reports the file.
type Region struct {
	t      *Thread
	handle unsafe.Pointer
	path   string
}

// OpenRegion makes bytes [offset, offset+length) of a file available to arrays. Call it inside Do.
func OpenRegion(t *Thread, path string, offset, length int64) *Region {
	p, failed := cRegionNew(path, offset, length)
	t.must(prefix("OpenRegion", failed))
	if err := cWatch(path, offset+length); err != nil {
		cRegionFree(p)
		panic(&Error{Message: fmt.Sprintf("OpenRegion: watch %s: %v", path, err)})
	}
	return &Region{t: t, handle: p, path: path}
}

// Array returns a tensor that starts offset bytes into the region, little-endian and row-major, without a copy. It
// keeps the memory mapped even after Close.
func (r *Region) Array(offset int64, d DType, shape ...int) *Array {
	if r.handle == nil {
		panic(&Error{Message: fmt.Sprintf("Region(%s): it was closed", r.path)})
	}
	f := r.t.frame
	f.reset()
	for _, n := range shape {
		f.int(int64(n))
	}
	r.t.must(prefix("Region("+r.path+")", cRegionArray(r.handle, offset, d, f.ints, len(shape), f.outs)))
	return r.t.adopt(f.outs)
}

// Close closes the region. Its memory is released with the last array over it. Call it inside Do.
func (r *Region) Close() {
	if r.handle != nil {
		cRegionFree(r.handle)
		r.handle = nil
	}
}
