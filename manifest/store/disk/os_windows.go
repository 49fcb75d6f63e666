package disk

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/windows"
)

// SyncDir is a no-op: Windows has no such operation, and NTFS journals directory changes.
func SyncDir(string) error { return nil }

func isDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

// SameOwner is true for any two files: on Windows, access rights are inherited from the folder.
func SameOwner(a, b fs.FileInfo) bool { return true }

// OwnedByUserOrStore also relies on the folder's access rights.
func OwnedByUserOrStore(file, root fs.FileInfo) bool { return true }

// OthersHaveAccess relies on the folder's access rights.
func OthersHaveAccess(fs.FileMode) bool { return false }

// ChownLike has no effect.
func ChownLike(string, fs.FileInfo) {}
