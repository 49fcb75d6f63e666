//go:build !unix

package cmd

import "github.com/ingotml/ingot/runtime"

// withFault returns e: tests of faults need Unix.
func withFault(e runtime.Engine) runtime.Engine { return e }
