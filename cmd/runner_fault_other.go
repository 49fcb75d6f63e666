//go:build !unix

package cmd

import "github.com/ingotml/ingot/runtime"

// withFault is the engine itself: tests of faults need Unix.
func withFault(e runtime.Engine) runtime.Engine { return e }
