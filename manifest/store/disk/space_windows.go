package disk

import (
	"os"

	"golang.org/x/sys/windows"
)

// freeSpace returns the bytes that this user can still write to the disk that contains dir.
func freeSpace(dir string) (int64, bool) {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, nil, nil); err != nil {
		return 0, false
	}
	return int64(min(free, 1<<62)), true
}

// Allocated returns the size of a file, because its disk space is unknown.
func Allocated(info os.FileInfo) int64 { return info.Size() }
