//go:build !linux

package manifest

import (
	"errors"
	"os"
)

// reflink is not supported: macOS can only clone to a new file by path.
func reflink(to, from *os.File) error { return errors.ErrUnsupported }
