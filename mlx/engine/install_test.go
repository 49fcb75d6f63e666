package engine

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
)

func TestInstall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// Settings that users have for their own Python must not make the installation fail.
	w.setenv("PIP_USER", "1")
	w.setenv("PIP_REQUIRE_VIRTUALENV", "1")
	if _, err := Find(w.opts); !errors.Is(err, ErrNotInstalled) {
		t.Fatalf("Find before Install: %v, want ErrNotInstalled", err)
	}
	e := w.install()
	ext := thisHost().libExt()
	want := []string{
		"bridge/libingot_mlx" + ext,
		"engine.json",
		"mlx/lib/libmlx" + ext,
		"mlx_cpu-" + Version + ".dist-info/licenses/LICENSE",
		"mlx_cpu.libs/libhelper" + ext,
	}
	var have []string
	for _, name := range w.files() {
		if name, ok := strings.CutPrefix(name, "engine/"+e.Key+"/"); ok &&
			(!strings.Contains(name, "dist-info") || strings.Contains(name, "LICENSE")) {
			have = append(have, name)
		}
	}
	slices.Sort(have)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("the engine's files (-want +got):\n%s", diff)
	}
	m, err := readManifest(e.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Version != Version || m.Flavour != CPU || m.Key != e.Key || m.Compiler == "" ||
		!slices.Contains(m.Flags, "-std=c++20") {
		t.Errorf("engine.json: %+v", m)
	}
	for _, path := range []string{e.Lib, e.Bridge} {
		if !strings.HasPrefix(path, e.Dir) {
			t.Errorf("%s is not in %s", path, e.Dir)
		}
	}
	found, err := Find(w.opts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, found); diff != "" {
		t.Errorf("Find (-installed +found):\n%s", diff)
	}

	// A second installation downloads and compiles nothing.
	w.install()
	if w.logged("downloading mlx-cpu") != 1 || w.logged("compiling") != 1 {
		t.Errorf("the second installation did work: %q", w.lines)
	}

	// Changed sources need only a compiler, neither Python nor an index.
	changed := fakeBridge()
	changed["bridge.h"].Data = append(changed["bridge.h"].Data, "// another line\n"...)
	w.opts.inside.sources = changed
	w.opts.Python = "/nonexistent/python"
	if second := w.install(); second.Key == e.Key {
		t.Errorf("changed sources have the same key %s", e.Key)
	}
	if n := w.logged("downloading mlx-cpu"); n != 1 {
		t.Errorf("%d downloads, want 1", n)
	}
}

// An engine works after its folder is moved, without the wheels that it was linked from.
func TestEngineMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unpack()
	e := w.install()
	bridge, err := os.ReadFile(e.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(bridge), w.opts.CacheDir) {
		t.Errorf("%s holds the path %s", e.Bridge, w.opts.CacheDir)
	}
	moved := filepath.Join(t.TempDir(), "moved here")
	if err := os.Rename(e.Dir, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(w.opts.CacheDir); err != nil {
		t.Fatal(err)
	}
	w.setenv(EnvEngine, moved)
	got, err := Find(w.opts)
	if err != nil {
		t.Fatal(err)
	}
	if got.Dir != moved || got.Source != SourceEnv || got.Key != e.Key || got.Flavour != CPU {
		t.Errorf("Find with %s: %+v", EnvEngine, got)
	}
	if err := loads(t.Context(), got); err != nil {
		t.Error(err)
	}
}

// A file system without hard links gets copies.
func TestLinkTreeCopies(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	path := filepath.Join(from, "tool")
	if err := os.WriteFile(path, []byte("text"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(path, filepath.Join(to, "tool")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(to, "tool"))
	if err != nil || string(data) != "text" {
		t.Errorf("copy holds %q, %v", data, err)
	}
	info, err := os.Stat(filepath.Join(to, "tool"))
	if err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("copy has mode %v, %v", info.Mode(), err)
	}
}

// CUDA compiles kernels at run time, so it needs the headers; the other flavours do not.
func TestLinkTreeKeepsHeadersForCUDA(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	for _, name := range []string{"mlx/include/cccl/cuda/cmath", "mlx/lib/libmlx.so", "mlx/share/cmake/x",
		"nvidia/cu13/include/cuda_fp16.h", "bin/x"} {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		flavour Flavour
		headers bool
	}{{CUDA13, true}, {CUDA12, true}, {CPU, false}, {Metal, false}} {
		to := t.TempDir()
		if err := linkTree(from, to, test.flavour); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{
			"mlx/include/cccl/cuda/cmath":     test.headers,
			"nvidia/cu13/include/cuda_fp16.h": true,
			"mlx/lib/libmlx.so":               true,
			"mlx/share":                       false,
			"bin":                             false,
		} {
			if _, err := os.Stat(filepath.Join(to, name)); (err == nil) != want {
				t.Errorf("%s: %s is there: %v, want %v", test.flavour, name, err == nil, want)
			}
		}
	}
}

func TestInstallAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	engines := make([]*Engine, 3)
	var group sync.WaitGroup
	for i := range engines {
		group.Go(func() {
			var err error
			if engines[i], err = Install(t.Context(), w.opts); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, e := range engines {
		if diff := cmp.Diff(engines[0], e); diff != "" {
			t.Errorf("engines differ:\n%s", diff)
		}
	}
	if w.logged("downloading mlx-cpu") != 1 || w.logged("compiling") != 1 {
		t.Errorf("installed more than once: %q", w.lines)
	}
	if w.logged("waiting") == 0 {
		t.Errorf("no installation waited: %q", w.lines)
	}
}

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

// The next installation removes what killed processes left, but not the work of live processes.
func TestInstallSweeps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	engines := filepath.Join(w.opts.CacheDir, "engine")
	s, err := newSetup(w.opts)
	if err != nil {
		t.Fatal(err)
	}
	stale := []string{s.engineDir() + tmpInfix + "1", filepath.Join(engines, "0123"+tmpInfix+"3")}
	working := filepath.Join(engines, "4567"+tmpInfix+"4")
	for _, dir := range append(stale, working) {
		if err := os.MkdirAll(filepath.Join(dir, "out"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	other := flock.New(filepath.Join(engines, "4567"+lockSuffix))
	if err := other.Lock(); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	w.unpack()
	// An engine with a missing file is rebuilt.
	if err := os.MkdirAll(filepath.Join(s.engineDir(), "bridge"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.install()
	for _, dir := range stale {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
	if _, err := os.Stat(working); err != nil {
		t.Errorf("removed the folder of a live process: %v", err)
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
