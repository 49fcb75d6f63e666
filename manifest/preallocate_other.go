//go:build !linux

package manifest

import "os"

// preallocate is a no-op: other systems have no call that allocates space without changing the size.
func preallocate(*os.File, int64) error { return nil }
