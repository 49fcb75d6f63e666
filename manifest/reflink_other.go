//go:build !linux

package manifest

import (
	"errors"
	"os"
)

// reflink is not there: macOS clones by path and into new files only, and io.Copy does it there by itself.
func reflink(to, from *os.File) error { return errors.ErrUnsupported }
