package manifest

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// syncDir is a no-op: Windows has no such operation, and NTFS journals directory changes.
func syncDir(string) error { return nil }

// rename retries for up to a second: Windows does not replace a file that a reader has open.
func rename(from, to string) error {
	var err error
	for range 100 {
		err = os.Rename(from, to)
		if !errors.Is(err, windows.ERROR_SHARING_VIOLATION) && !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func isDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

// sameOwner is true for any two files: on Windows, access rights are inherited from the folder.
func sameOwner(a, b fs.FileInfo) bool { return true }

// ownedByUserOrStore and othersHaveAccess also rely on the folder's access rights.
func ownedByUserOrStore(file, root fs.FileInfo) bool { return true }

func othersHaveAccess(fs.FileMode) bool { return false }

func chownLike(string, fs.FileInfo) {}
