//go:build !windows

package atomicfile

import "os"

// Rename renames a file, and replaces an existing one atomically.
func Rename(from, to string) error { return os.Rename(from, to) }
