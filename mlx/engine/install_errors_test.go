package engine

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A cancelled installation returns at once, kills its child processes and leaves nothing.
func TestInstallCancelled(t *testing.T) {
	onUnix(t)
	t.Parallel()
	for _, stage := range []string{"downloading", "compiling", "checking"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			pidFile := filepath.Join(t.TempDir(), "pid")
			hang := "sleep 300 & echo $! > " + pidFile + ".new; mv " + pidFile + ".new " + pidFile + "; wait\n"
			switch stage {
			case "downloading":
				w.opts.Python = w.pip(hang)
			case "compiling":
				w.unpack()
				w.opts.CXX = w.cxx("12.2.0", hang)
			case "checking":
				w.unpack()
				w.opts.Check = func(ctx context.Context, e *Engine) error {
					if err := os.WriteFile(pidFile, []byte("0"), 0o644); err != nil {
						return err
					}
					<-ctx.Done()
					return ctx.Err()
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			pid := make(chan int, 1)
			go func() {
				for ctx.Err() == nil {
					if data, err := os.ReadFile(pidFile); err == nil {
						n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
						pid <- n
						cancel()
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			_, err := Install(ctx, w.opts)
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("Install: %v, want context.Canceled", err)
			}
			w.noEngine()
			if n := <-pid; n > 0 && !processGone(n) {
				t.Errorf("process %d of the cancelled installation still runs", n)
			}
			if stage == "downloading" && len(w.files()) > 1 {
				t.Errorf("left behind: %q", w.files())
			}
		})
	}
}

func TestInstallErrors(t *testing.T) {
	onUnix(t)
	t.Parallel()
	refuses := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(refuses.Close)
	index := func(w *world, url string) {
		w.setenv("PIP_NO_INDEX", "")
		w.setenv("PIP_FIND_LINKS", "")
		w.setenv("PIP_INDEX_URL", url)
		w.setenv("PIP_RETRIES", "0")
	}
	for _, test := range []struct {
		name     string
		harm     func(w *world)
		kind     error
		contains []string
	}{
		{"offline", func(w *world) { index(w, "http://127.0.0.1:9/simple") },
			ErrDownload, []string{"mlx-cpu " + Version, "could not reach", "refused", "proxy", EnvEngine}},
		{"index refuses", func(w *world) { index(w, refuses.URL) },
			ErrDownload, []string{"mlx-cpu " + Version, "403", EnvEngine}},
		{"index lacks it", func(w *world) { w.setenv("PIP_FIND_LINKS", w.t.TempDir()) },
			ErrDownload, []string{"mlx-cpu==" + Version, thisHost().platform(), "no ", EnvEngine}},
		{"wrong hash", func(w *world) {
			altered := *w.opts.inside.lock
			altered.packages = []lockedPackage{{"mlx-cpu", Version, []string{strings.Repeat("ab", 32)}}}
			w.opts.inside.lock = &altered
		}, ErrHash, []string{"mlx_cpu-" + Version, strings.Repeat("ab", 32), "altered", "nothing was installed"}},
		{"pip breaks", func(w *world) {
			w.opts.Python = w.pip("echo 'ERROR: it rains'; exit 1\n")
		}, ErrDownload, []string{"it rains"}},
		{"disk full at download", func(w *world) {
			w.opts.Python = w.pip("echo 'ERROR: Could not install packages due to an OSError: [Errno 28] No space left on " +
				"device'; exit 1\n")
		}, ErrNoSpace, []string{"mlx-cpu", EnvCache}},
		{"wheel without library", func(w *world) {
			w.opts.Python = w.pip("exit 0\n")
		}, ErrDownload, []string{"no library", EnvPython}},
		{"no python", func(w *world) {
			w.opts.Python = ""
			w.opts.CXX = w.program("exec /usr/bin/env PATH='" + os.Getenv("PATH") + "' c++ \"$@\"\n")
			w.setenv("PATH", w.t.TempDir())
		}, ErrNoPython, []string{"python3-pip", EnvPython}},
		{"named python is absent", func(w *world) {
			w.opts.Python = ""
			w.setenv(EnvPython, "/nonexistent/python")
		},
			ErrNoPython, []string{EnvPython, "/nonexistent/python"}},
		{"python without pip", func(w *world) { w.opts.Python = w.program("echo 'No module named pip' >&2; exit 1\n") },
			ErrNoPython, []string{"has no pip", "ensurepip"}},
		{"old pip", func(w *world) { w.opts.Python = w.program("echo 'pip 19.3.1 from somewhere (python 3.6)'\n") },
			ErrNoPython, []string{"19.3.1", "--upgrade pip"}},
		{"no compiler", func(w *world) { w.setenv("PATH", w.t.TempDir()) },
			ErrNoCompiler, []string{"no C++20 compiler found", "CXX"}},
		{"named compiler is absent", func(w *world) { w.setenv(EnvCXX, "no-such-compiler") },
			ErrNoCompiler, []string{"no-such-compiler", "g++ 11", "CXX"}},
		{"old compiler", func(w *world) {
			w.unpack()
			w.opts.CXX = w.cxx("7.5.0", reportsTooOld)
		}, ErrNoCompiler, []string{"no C++20 compiler found", "g++ 7.5.0", "g++ 11"}},
		{"compile error", func(w *world) {
			w.unpack()
			broken := fakeBridge()
			broken["bridge.cc"] = file("int x = nonsense;\n")
			w.opts.inside.sources = broken
		}, ErrCompile, []string{"bridge.cc:1", "nonsense", "c++"}},
		{"link error", func(w *world) {
			broken := fakeBridge()
			delete(broken, "math/avx2.cc")
			delete(broken, "math/neon.cc")
			w.opts.inside.sources = broken
			w.unpack()
		}, ErrCompile, []string{"twice"}},
		{"disk full at compilation", func(w *world) {
			w.unpack()
			w.opts.CXX = w.cxx("12.2.0", "echo 'fatal error: error writing to x.s: No space left on device' >&2; exit 1\n")
		}, ErrNoSpace, []string{EnvCache}},
		{"does not load", func(w *world) {
			w.unpack()
			w.opts.Check = func(context.Context, *Engine) error {
				return errors.New("libcuda.so.1: cannot open shared object file")
			}
		}, ErrLoad, []string{"libcuda.so.1", "nothing was installed"}},
		{"cache is a file", func(w *world) {
			w.opts.CacheDir = filepath.Join(w.t.TempDir(), "file")
			if err := os.WriteFile(w.opts.CacheDir, nil, 0o644); err != nil {
				w.t.Fatal(err)
			}
		}, nil, []string{"cache folder"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.harm(w)
			e, err := Install(t.Context(), w.opts)
			if err == nil {
				t.Fatalf("installed %+v", e)
			}
			t.Log(err)
			if test.kind != nil && !errors.Is(err, test.kind) {
				t.Errorf("%v is not %v", err, test.kind)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			for _, words := range test.contains {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q does not contain %q", err, words)
				}
			}
			w.noEngine()
		})
	}
}

// If the first compiler is too old, the next one is used.
func TestInstallTriesNextCompiler(t *testing.T) {
	onUnix(t)
	t.Parallel()
	w := newWorld(t)
	w.unpack()
	bin := t.TempDir()
	old := w.cxx("7.5.0", reportsTooOld)
	if err := os.Symlink(old, filepath.Join(bin, "c++")); err != nil {
		t.Fatal(err)
	}
	good := w.program("export PATH='" + os.Getenv("PATH") + "'\nexec c++ \"$@\"\n")
	if err := os.Symlink(good, filepath.Join(bin, "g++")); err != nil {
		t.Fatal(err)
	}
	w.setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	w.install()
	if n := w.logged("compiling"); n != 2 {
		t.Errorf("%d compilers were tried, want 2: %q", n, w.lines)
	}
}
