//go:build !linux

package disk

import "os"

// Preallocate is a no-op: other systems have no call that allocates space without changing the size.
func Preallocate(*os.File, int64) error { return nil }
