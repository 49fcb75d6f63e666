//go:build !unix

package serve

import "github.com/ingotml/ingot/runtime"

// withFault returns e: tests of faults need Unix.
func withFault(e runtime.Engine) runtime.Engine { return e }
