//go:build unix

package serve

import (
	"context"
	"fmt"
	"iter"
	"os"
	"runtime/debug"
	"strings"

	"github.com/ingotml/ingot/runtime"
	"golang.org/x/sys/unix"
)

// envTestFault makes a model's process fail after a few tokens, for tests of the server's recovery. Its values are
// "segv" (a fault), "kill" (SIGKILL, as sent by the kernel when memory runs out), "memory" (an allocation beyond a
// limit) and "stuck" (a call that does not return). With "=WORD" appended, only requests with this stop text fail.
const envTestFault = "INGOT_TEST_FAULT"

// faultAfter is the number of events before the fault.
const faultAfter = 3

// withFault wraps e if a test asks for a fault.
func withFault(e runtime.Engine) runtime.Engine {
	kind, word, _ := strings.Cut(os.Getenv(envTestFault), "=")
	if kind == "" {
		return e
	}
	return faulty{e, kind, word}
}

type faulty struct {
	runtime.Engine
	kind, word string
}

func (f faulty) Generate(ctx context.Context, r runtime.Request) iter.Seq2[runtime.Event, error] {
	return func(yield func(runtime.Event, error) bool) {
		n := 0
		for e, err := range f.Engine.Generate(ctx, r) {
			if n++; n > faultAfter && (f.word == "" || strings.Contains(strings.Join(r.Stop, " "), f.word)) {
				f.fail()
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (f faulty) fail() {
	switch f.kind {
	case "segv":
		_ = unix.Kill(os.Getpid(), unix.SIGSEGV)
		select {}
	case "kill":
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	case "stuck":
		fmt.Fprintln(os.Stderr, "the test fault is stuck")
		for {
			_, _ = unix.Select(0, nil, nil, nil, nil) // blocks its thread, like a loop in C++
		}
	case "memory":
		// With no new address space, the next allocation that is not small fails.
		_ = unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
		debug.FreeOSMemory()
		for i := 20; ; i++ {
			fmt.Fprintln(os.Stderr, "the test fault allocates", len(make([]byte, 1<<i)), "bytes")
		}
	}
}
