//go:build unix

package mlx_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"golang.org/x/sys/unix"
)

// envTruncated makes the test binary read a truncated file: the process dies, so it cannot be the process of the tests.
const envTruncated = "INGOT_TEST_TRUNCATED"

// Reading a truncated part of a file ends the process with one line that names the file.
func TestTruncatedRegion(t *testing.T) {
	if os.Getenv(envTruncated) != "" {
		readTruncated(t)
		return
	}
	if mlxtest.Open(t).Info().GPU {
		t.Skip("on a GPU a region may be a copy")
	}
	for _, test := range []struct {
		what string
		exit int
		want []string
	}{
		{"truncated", 1, []string{"ingot: " + mlx.Truncated,
			"weights has 64 of 400064 bytes; `ingot fsck --repair` repairs the store\n"}},
		// The Go runtime's own messages, for a file that is not watched and for a signal sent by kill.
		{"another file", 2, []string{"fatal error: fault", "SIGBUS: bus error"}},
		{"sent", 2, []string{"SIGBUS: bus error"}},
	} {
		self := exec.Command(os.Args[0], "-test.run=^TestTruncatedRegion$")
		self.Env = append(os.Environ(), envTruncated+"="+test.what, "GOTRACEBACK=none", "TMPDIR="+t.TempDir())
		out, err := self.CombinedOutput()
		// The kernel may give a signal of the whole process to a thread that is not Go's. Go's handler then raises it
		// again with the default action, so the process dies of it without a message.
		if status, ok := self.ProcessState.Sys().(syscall.WaitStatus); ok && test.what == "sent" &&
			status.Signaled() && status.Signal() == syscall.SIGBUS {
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: output %q, want %q", test.what, out, want)
			}
		}
		if code := self.ProcessState.ExitCode(); code != test.exit {
			t.Errorf("%s: exit status %d (%v), want %d", test.what, code, err, test.exit)
		}
		if test.exit == 1 && strings.Count(string(out), "\n") != 1 {
			t.Errorf("%s: output has more than one line: %q", test.what, out)
		}
	}
}

func readTruncated(t *testing.T) {
	path := numbersFile(t, 64, 100_000)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	mlxtest.Do(t, func(e *mlx.Thread) {
		r := mlx.OpenRegion(e, path, 64, 400_000)
		x := r.Array(0, mlx.Float32, 100_000)
		switch os.Getenv(envTruncated) {
		case "another file":
			readAnother(t)
		case "sent":
			_ = unix.Kill(os.Getpid(), unix.SIGBUS)
			select {}
		}
		if err := os.Truncate(path, 64); err != nil {
			t.Fatal(err)
		}
		fmt.Println(mlx.Sum(x, false).Float32s()) // does not return
	})
}

func readAnother(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "another"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	fmt.Println(b[0]) // does not return
}
