//go:build !linux

package disk

import "os"

// OpenDirect returns nil: no other system has direct writes with the semantics of O_DIRECT.
func OpenDirect(string) *os.File { return nil }

// DirectPart returns 0: nothing can be written directly.
func DirectPart([]byte, int64) int { return 0 }
