package engine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

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
