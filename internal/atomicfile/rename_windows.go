package atomicfile

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// Rename renames a file, and replaces an existing one atomically. It retries for up to a second: Windows does not
// replace a file that a reader has open.
func Rename(from, to string) error {
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
