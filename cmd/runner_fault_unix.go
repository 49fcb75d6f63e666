//go:build unix

package cmd

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

// envTestFault makes a model's process fail after a few tokens, for tests of what becomes of the rest: "segv" by a
// fault, "kill" as the system kills when memory runs out, "memory" by asking for more than it may have, "stuck" by a
// call that does not return; with "=WORD" only where the request has this stop text.
const envTestFault = "INGOT_TEST_FAULT"

// faultAfter is how many events a request has before.
const faultAfter = 3

// withFault is the engine itself but in tests.
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
		fmt.Fprintln(os.Stderr, "it is stuck")
		for {
			_, _ = unix.Select(0, nil, nil, nil, nil) // holds its thread as a loop in C++ does
		}
	case "memory":
		// No new address space at all: the next allocation that is not a small one fails.
		_ = unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
		debug.FreeOSMemory()
		for i := 20; ; i++ {
			fmt.Fprintln(os.Stderr, "it has", len(make([]byte, 1<<i)), "bytes more")
		}
	}
}
