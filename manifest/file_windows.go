package manifest

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// syncDir does nothing: Windows has no such operation, NTFS journals names.
func syncDir(string) error { return nil }

// rename waits a little for a reader of the old file: Windows does not replace a file that is open.
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

// sameOwner takes what one user can open for their own: rights are inherited from the folder.
func sameOwner(a, b fs.FileInfo) bool { return true }

// ownedHere and othersMay take the rights that the folder gives, as sameOwner does.
func ownedHere(file, root fs.FileInfo) bool { return true }

func othersMay(fs.FileMode) bool { return false }

func chownLike(string, fs.FileInfo) {}
