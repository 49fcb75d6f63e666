// Package runtest tells a test what its run allows: how long it may take, what must be installed, and whether the race
// detector is on.
//
// Contract:
//   - A run states what it must cover in environment variables, one per Switch. The Makefile sets them.
//   - A test never skips in silence what its run must cover: Need fails, with the variable's name and the reason, if
//     the switch is set and something is missing.
//   - A test that takes minutes has a long form and asks Long. The short form covers the same code in fewer rounds.
//   - Only tests import this package.
package runtest

import (
	"os"
	"testing"
)

// Switch is an environment variable that demands something of a test run if it is not empty.
type Switch string

// The switches of docs/design/tests.md.
const (
	Engine   Switch = "INGOT_TEST_ENGINE"  // tests with the MLX engine
	Clients  Switch = "INGOT_TEST_CLIENTS" // tests with the official clients of the server's APIs
	Terminal Switch = "INGOT_TEST_TMUX"    // conversations in tmux
	Trace    Switch = "INGOT_TEST_STRACE"  // the order of system calls, under strace
	CUDA     Switch = "INGOT_TEST_CUDA"    // the bridge against MLX's CUDA wheel, a download of 90 MB
	MPI      Switch = "INGOT_TEST_MPI"     // ranks that mpirun starts; the path of Open MPI's mpirun
	LongRun  Switch = "INGOT_TEST_LONG"    // the long forms of tests, which take hours together
)

// On reports whether the switch is set.
func (s Switch) On() bool { return os.Getenv(string(s)) != "" }

// Need ends the test if missing is not nil: it fails if the switch is set, and is skipped otherwise.
func (s Switch) Need(t testing.TB, missing error) {
	t.Helper()
	switch {
	case missing == nil:
	case s.On():
		t.Fatalf("%s is set, but %v", s, missing)
	default:
		t.Skipf("%v (with %s=1 this is a failure)", missing, s)
	}
}

// Only skips the test unless the switch is set.
func (s Switch) Only(t testing.TB) {
	t.Helper()
	if !s.On() {
		t.Skipf("runs with %s=1 only", s)
	}
}

// Long reports whether tests run in their long forms.
func Long() bool { return LongRun.On() }

// Pick returns the long form's value in a long run, or else the short form's.
func Pick[T any](short, long T) T {
	if Long() {
		return long
	}
	return short
}
