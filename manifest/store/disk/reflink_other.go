//go:build !linux

package disk

import (
	"errors"
	"os"
)

// Reflink is not supported: macOS can only clone to a new file by path.
func Reflink(to, from *os.File) error { return errors.ErrUnsupported }
