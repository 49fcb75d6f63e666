package manifest

import (
	"os"

	"golang.org/x/sys/windows"
)

// freeSpace is what this user may still write to the disk of a folder.
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

func allocated(info os.FileInfo) int64 { return info.Size() }
