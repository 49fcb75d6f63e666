package disk

import (
	"os"
	"syscall"
	"unsafe"
)

// directAlign is the alignment of direct writes, in memory and in the file. It is a multiple of every common sector
// size.
const directAlign = 4096

// OpenDirect opens a file for writes that bypass the page cache (open(2), O_DIRECT). It returns nil if the file system
// does not support them.
func OpenDirect(path string) *os.File {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return f
}

// DirectPart returns the length of the prefix of b that can be written directly at offset.
func DirectPart(b []byte, offset int64) int {
	if len(b) < directAlign || offset%directAlign != 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%directAlign != 0 {
		return 0
	}
	return len(b) &^ (directAlign - 1)
}
