package engine

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// fakeWheel is a tiny replacement for MLX's wheel: a libmlx that needs a helper library next to it, and a header. pip,
// the compiler, the linker and the loader are the machine's.
type fakeWheel struct {
	dir    string            // holds only the wheel
	files  map[string][]byte // the unpacked files
	python string            // a Python that can unpack it
	lock   *lock
}

var scratch string // temporary folder of the test process

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "ingot-engine-test"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

var errNoTools = errors.New("needs a C++ compiler and Python 3 with pip")

var buildWheel = sync.OnceValues(func() (fakeWheel, error) {
	host := thisHost()
	tag := map[string]string{"linux/amd64": "manylinux_2_17_x86_64", "linux/arm64": "manylinux_2_17_aarch64",
		"darwin/arm64": "macosx_14_0_arm64"}[host.platform()]
	python, err := exec.Command("python3", "-c", "import pip, sys; print(sys.executable)").Output()
	if tag == "" || err != nil || exec.Command("c++", "--version").Run() != nil {
		return fakeWheel{}, errNoTools
	}
	src := filepath.Join(scratch, "libmlx")
	files := map[string]string{
		"helper.cc": "int helper() { return 41; }\n",
		"mlx.cc":    "#include \"mlx.h\"\nint helper();\nnamespace mlx::core { int answer() { return helper() + 1; } }\n",
		"mlx.h":     "#pragma once\nnamespace mlx::core { int answer(); }\n",
	}
	if err := os.MkdirAll(src, 0o755); err != nil {
		return fakeWheel{}, err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o644); err != nil {
			return fakeWheel{}, err
		}
	}
	ext := host.libExt()
	commands := [][]string{
		{"c++", "-shared", "-fPIC", "-o", "libhelper" + ext, "helper.cc", "-Wl,-soname,libhelper.so"},
		{"c++", "-std=c++20", "-shared", "-fPIC", "-o", "libmlx" + ext, "mlx.cc", "-Wl,-soname,libmlx.so", "-L.",
			"-lhelper", "-Wl,-rpath,$ORIGIN/../../mlx_cpu.libs"},
	}
	if host.os == "darwin" {
		commands = [][]string{
			{"c++", "-dynamiclib", "-o", "libhelper" + ext, "helper.cc", "-Wl,-install_name,@rpath/libhelper.dylib"},
			{"c++", "-std=c++20", "-dynamiclib", "-o", "libmlx" + ext, "mlx.cc", "-Wl,-install_name,@rpath/libmlx.dylib",
				"-L.", "-lhelper", "-Wl,-rpath,@loader_path/../../mlx_cpu.libs"},
		}
	}
	for _, args := range commands {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = src
		if out, err := cmd.CombinedOutput(); err != nil {
			return fakeWheel{}, fmt.Errorf("%v: %w: %s", args, err, out)
		}
	}
	info := "mlx_cpu-" + Version + ".dist-info/"
	contents := []struct{ name, file, text string }{
		{"mlx/lib/libmlx" + ext, "libmlx" + ext, ""},
		{"mlx/include/mlx/mlx.h", "mlx.h", ""},
		{"mlx/share/cmake/MLX/MLXConfig.cmake", "", "# for builds only\n"},
		{"mlx_cpu.libs/libhelper" + ext, "libhelper" + ext, ""},
		{info + "METADATA", "", "Metadata-Version: 2.1\nName: mlx-cpu\nVersion: " + Version + "\n"},
		{info + "WHEEL", "", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-" + tag + "\n"},
		{info + "licenses/LICENSE", "", "free\n"},
	}
	unpacked := map[string][]byte{}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	record := ""
	for _, c := range contents {
		data := []byte(c.text)
		if c.file != "" {
			var err error
			if data, err = os.ReadFile(filepath.Join(src, c.file)); err != nil {
				return fakeWheel{}, err
			}
		}
		unpacked[c.name] = data
		record += c.name + ",,\n"
		w, err := z.Create(c.name)
		if err != nil {
			return fakeWheel{}, err
		}
		if _, err := w.Write(data); err != nil {
			return fakeWheel{}, err
		}
	}
	w, err := z.Create(info + "RECORD")
	if err != nil {
		return fakeWheel{}, err
	}
	fmt.Fprintf(w, "%s%sRECORD,,\n", record, info)
	if err := z.Close(); err != nil {
		return fakeWheel{}, err
	}
	dir := filepath.Join(scratch, "wheels")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fakeWheel{}, err
	}
	sum := sha256.Sum256(archive.Bytes())
	return fakeWheel{dir, unpacked, strings.TrimSpace(string(python)), &lock{
		platforms: map[string][]string{host.platform(): {tag}},
		packages:  []lockedPackage{{"mlx-cpu", Version, []string{hex.EncodeToString(sum[:])}}},
	}}, os.WriteFile(filepath.Join(dir, "mlx_cpu-"+Version+"-py3-none-"+tag+".whl"), archive.Bytes(), 0o644)
})

// fakeBridge returns sources with one unit per architecture and one that consists of two files.
func fakeBridge() fstest.MapFS {
	return fstest.MapFS{
		"bridge.h": file("#pragma once\nint twice(int);\n"),
		"bridge.cc": file("#include \"bridge.h\"\n#include \"mlx/mlx.h\"\n#include <concepts>\n" +
			"template <std::integral T> T same(T x) { return x; }\n" +
			"extern \"C\" __attribute__((visibility(\"default\"))) int ingot_answer() " +
			"{ return same(twice(mlx::core::answer())); }\n"),
		"math/avx2.cc": file("#include \"bridge.h\"\n#ifndef __AVX2__\n#error \"no AVX2\"\n#endif\n" +
			"int twice(int x) { return 2 * x; }\n"),
		"math/neon.cc": file("#include \"bridge.h\"\n#ifndef __ARM_NEON\n#error \"no NEON\"\n#endif\n" +
			"int twice(int x) { return 2 * x; }\n"),
	}
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// world is one test's cache, environment and progress log.
type world struct {
	t     *testing.T
	opts  Options
	wheel fakeWheel
	mu    sync.Mutex
	lines []string
}

// newWorld returns a world that can install the fake wheel.
func newWorld(t *testing.T) *world {
	t.Helper()
	wheel, err := buildWheel()
	if errors.Is(err, errNoTools) {
		runtest.Engine.Need(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, wheel: wheel}
	host := thisHost()
	w.opts = Options{
		Flavour:  CPU,
		CacheDir: filepath.Join(t.TempDir(), "cache"),
		Python:   wheel.python,
		Log:      func(format string, args ...any) { w.log(fmt.Sprintf(format, args...)) },
		Check:    loads,
		inside:   &inside{sources: fakeBridge(), lock: wheel.lock, host: &host, environ: cleanEnv()},
	}
	w.setenv("PIP_NO_INDEX", "1")
	w.setenv("PIP_FIND_LINKS", wheel.dir)
	return w
}

// cleanEnv returns this process's environment without the variables that configure pip, the compiler or the engine.
func cleanEnv() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "PIP_") || strings.HasPrefix(kv, "INGOT_") || strings.HasPrefix(kv, "CXX=")
	})
	return append(env, "PIP_CONFIG_FILE="+os.DevNull, "PIP_NO_CACHE_DIR=1")
}

func (w *world) setenv(name, value string) {
	w.opts.inside.environ = append(w.opts.inside.environ, name+"="+value)
}

func (w *world) log(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
}

// logged counts the progress lines that start with word.
func (w *world) logged(word string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, line := range w.lines {
		if strings.HasPrefix(line, word) {
			n++
		}
	}
	return n
}

func (w *world) install() *Engine {
	w.t.Helper()
	e, err := Install(w.t.Context(), w.opts)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, strings.Join(w.lines, "\n"))
	}
	return e
}

// program writes a shell script and returns its path.
func (w *world) program(text string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "program")
	// If a process forks while the file is open for writing, running it fails with ETXTBSY: https://go.dev/issue/22315
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// unpack puts the wheel into the cache without pip, for tests of the later stages.
func (w *world) unpack() {
	w.t.Helper()
	s, err := newSetup(w.opts)
	if err != nil {
		w.t.Fatal(err)
	}
	for name, data := range w.wheel.files {
		path := filepath.Join(s.wheelDir(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

// pip returns a Python whose pip runs a shell script instead of downloading.
func (w *world) pip(script string) string {
	w.t.Helper()
	return w.program("case \"$*\" in *--version*) echo 'pip 23.2.1 from x (python 3.11)'; exit;; esac\n" + script)
}

// cxx returns a compiler that identifies itself as GCC and runs a shell script instead of compiling.
func (w *world) cxx(version, script string) string {
	w.t.Helper()
	return w.program("case \"$*\" in *--version*) echo 'g++ (GCC) " + version + "'; exit;; esac\n" + script)
}

const reportsTooOld = "echo \"g++: error: unrecognized command line option '-std=c++20'; did you mean " +
	"'-std=c++2a'?\" >&2; exit 1\n"

// noEngine fails the test if the cache contains anything but lock files and complete wheels.
func (w *world) noEngine() {
	w.t.Helper()
	for _, path := range w.files() {
		if strings.Contains(path, tmpInfix) || strings.HasPrefix(path, "engine/") && !strings.HasSuffix(path, lockSuffix) {
			w.t.Errorf("left behind: %s", path)
		}
	}
	if _, err := Find(w.opts); !errors.Is(err, ErrNotInstalled) {
		w.t.Errorf("Find after a failed installation: %v, want ErrNotInstalled", err)
	}
}

func (w *world) files() []string {
	w.t.Helper()
	var files []string
	err := filepath.WalkDir(w.opts.CacheDir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && path != w.opts.CacheDir {
			name, _ := filepath.Rel(w.opts.CacheDir, path)
			if !entry.IsDir() || strings.Contains(name, tmpInfix) {
				files = append(files, filepath.ToSlash(name))
			}
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	return files
}

// loads loads an engine as package mlx does, in a separate process.
func loads(ctx context.Context, e *Engine) error {
	const script = `
import ctypes, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
if ctypes.CDLL(sys.argv[2]).ingot_answer() != 84: sys.exit("wrong answer")
`
	cmd := exec.CommandContext(ctx, "python3", "-c", script, e.Lib, e.Bridge)
	cmd.Dir = scratch // Python also searches its working directory for modules
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.ReplaceAll(bytes.TrimSpace(out), []byte("\n"), []byte(" ")))
	}
	return nil
}

func onUnix(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs in this test are shell scripts")
	}
}
