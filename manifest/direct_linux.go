package manifest

import (
	"os"
	"syscall"
	"unsafe"
)

// directAlign is what direct writes are aligned to, in memory and in the file: no common disk has larger sectors.
const directAlign = 4096

// openDirect opens a file for writes past the page cache (open(2), O_DIRECT); nil where the file system has none.
func openDirect(path string) *os.File {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return f
}

// directPart is how many bytes of a write, from its start on, can go past the page cache.
func directPart(b []byte, offset int64) int {
	if len(b) < directAlign || offset%directAlign != 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%directAlign != 0 {
		return 0
	}
	return len(b) &^ (directAlign - 1)
}
