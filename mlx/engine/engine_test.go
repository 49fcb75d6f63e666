package engine

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// engineFolder creates a folder that Find accepts as an engine, except for the files in without.
func engineFolder(t *testing.T, flavour Flavour, without ...string) string {
	t.Helper()
	dir := t.TempDir()
	ext := thisHost().libExt()
	const sumOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	manifest, err := json.Marshal(Manifest{
		Version: Version, Flavour: flavour, Key: "0123456789abcdef", Bridge: sumOfNothing,
	})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"mlx/lib/libmlx" + ext: nil, "bridge/libingot_mlx" + ext: nil, manifestName: manifest}
	for _, name := range without {
		delete(files, name)
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// emptyWorld returns the options of a machine where nothing is installed.
func emptyWorld(t *testing.T, host host, env ...string) Options {
	t.Helper()
	return Options{inside: &inside{sources: fakeBridge(), host: &host,
		environ: append([]string{EnvCache + "=" + t.TempDir()}, env...)}}
}

func TestFindInFolder(t *testing.T) {
	t.Parallel()
	ext := thisHost().libExt()
	garbled := engineFolder(t, CPU)
	if err := os.WriteFile(filepath.Join(garbled, manifestName), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, dir string
		requested Flavour
		contains  []string // of the error; nil if an engine is found
	}{
		{"complete", engineFolder(t, Metal), "", nil},
		{"the requested flavour", engineFolder(t, CUDA12), CUDA12, nil},
		{"another flavour", engineFolder(t, CUDA12), CPU, []string{"cuda12", "cpu"}},
		{"no such folder", filepath.Join(t.TempDir(), "x"), "", []string{"libmlx" + ext, "libingot_mlx" + ext, manifestName}},
		{"no library", engineFolder(t, CPU, "mlx/lib/libmlx"+ext), "", []string{"lacks mlx/lib/libmlx" + ext + ":"}},
		{"no bridge", engineFolder(t, CPU, "bridge/libingot_mlx"+ext), "", []string{"lacks bridge/libingot_mlx" + ext + ":"}},
		{"no manifest", engineFolder(t, CPU, manifestName), "", []string{"lacks " + manifestName + ":"}},
		{"garbled manifest", garbled, "", []string{"a readable " + manifestName}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			opts := emptyWorld(t, thisHost(), EnvEngine+"="+test.dir)
			opts.Flavour = test.requested
			e, err := Find(opts)
			if test.contains == nil {
				if err != nil {
					t.Fatal(err)
				}
				if e.Dir != test.dir || e.Source != SourceEnv || e.Lib != filepath.Join(test.dir, "mlx", "lib", "libmlx"+ext) {
					t.Errorf("found %+v", e)
				}
				return
			}
			// Neither Find nor Install falls back to the cache.
			_, installed := Install(t.Context(), opts)
			for _, err := range []error{err, installed} {
				if !errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotInstalled) {
					t.Fatalf("error is %v, want ErrInvalid", err)
				}
				for _, words := range append(test.contains, EnvEngine, test.dir) {
					if !strings.Contains(err.Error(), words) {
						t.Errorf("%q does not contain %q", err, words)
					}
				}
			}
		})
	}
}

// An engine folder named by INGOT_ENGINE is accepted on platforms that MLX does not support
// (https://ml-explore.github.io/mlx/build/html/install.html).
func TestFindInFolderAnywhere(t *testing.T) {
	t.Parallel()
	host := thisHost()
	host.arch = "riscv64"
	if _, err := Find(emptyWorld(t, host, EnvEngine+"="+engineFolder(t, CPU))); err != nil {
		t.Error(err)
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	linux := host{os: "linux", arch: "amd64", root: t.TempDir(), avx512: true}
	key := func(change func(o *Options)) string {
		t.Helper()
		o := emptyWorld(t, linux)
		change(&o)
		s, err := newSetup(o)
		if err != nil {
			t.Fatal(err)
		}
		return s.key
	}
	base := key(func(*Options) {})
	for _, test := range []struct {
		name   string
		same   bool
		change func(o *Options)
	}{
		{"again, in another cache", true, func(*Options) {}},
		{"another compiler", true, func(o *Options) { o.CXX = "clang++" }},
		{"unit of another architecture", true, func(o *Options) {
			s := fakeBridge()
			s["more/neon.cc"] = file("x")
			o.inside.sources = s
		}},
		{"for any processor", true, func(o *Options) { o.Portable = true }},
		{"for any processor, on one without AVX-512", true, func(o *Options) {
			h := linux
			h.avx512 = false
			o.inside.host, o.Portable = &h, true
		}},
		{"processor without AVX-512", false, func(o *Options) { h := linux; h.avx512 = false; o.inside.host = &h }},
		{"file of another kind", true, func(o *Options) {
			s := fakeBridge()
			s["README.md"] = file("x")
			o.inside.sources = s
		}},
		{"source", false, func(o *Options) {
			s := fakeBridge()
			s["bridge.cc"] = file("x")
			o.inside.sources = s
		}},
		{"header", false, func(o *Options) {
			s := fakeBridge()
			s["bridge.h"] = file("x")
			o.inside.sources = s
		}},
		{"more units", false, func(o *Options) {
			s := fakeBridge()
			s["more/avx512.cc"] = file("x")
			o.inside.sources = s
		}},
		{"flavour", false, func(o *Options) { o.Flavour = CUDA13 }},
		{"architecture", false, func(o *Options) { h := linux; h.arch = "arm64"; o.inside.host = &h }},
		{"wheels", false, func(o *Options) {
			l, err := lockOf(CPU)
			if err != nil {
				t.Fatal(err)
			}
			l.packages[0].hashes[0] = strings.Repeat("0", 64)
			o.inside.lock = l
		}},
	} {
		if got := key(test.change); (got == base) != test.same {
			t.Errorf("%s: key %s, was %s", test.name, got, base)
		}
	}
}

func TestCacheFolder(t *testing.T) {
	t.Parallel()
	named, env := t.TempDir(), t.TempDir()
	opts := emptyWorld(t, host{os: "linux", arch: "amd64", root: t.TempDir()}, EnvCache+"="+env)
	for _, test := range []struct{ option, want string }{{"", env}, {named, named}} {
		opts.CacheDir = test.option
		s, err := newSetup(opts)
		if err != nil {
			t.Fatal(err)
		}
		if s.cacheDir != test.want || s.kernelDir() != filepath.Join(test.want, "kernels", Version) {
			t.Errorf("cache folder %s with kernels in %s, want %s", s.cacheDir, s.kernelDir(), test.want)
		}
	}
}

func TestStatus(t *testing.T) {
	onUnix(t)
	t.Parallel()
	w := newWorld(t)
	before := Status(t.Context(), w.opts)
	if before.Installed || before.Downloaded || before.Source != SourceCache || before.Flavour != CPU ||
		before.FlavourReason == "" || before.Key == "" {
		t.Errorf("before the installation: %+v", before)
	}
	if before.Python == nil || before.Compiler == nil || before.Compiler.Version == "" || len(before.Problems) != 1 {
		t.Errorf("before the installation: %v", before)
	}
	if names := w.files(); len(names) > 0 {
		t.Errorf("Status wrote %q", names)
	}
	if w.logged("") > 0 {
		t.Errorf("Status logged %q", w.lines)
	}
	e := w.install()
	after := Status(t.Context(), w.opts)
	if !after.Installed || !after.Downloaded || after.Dir != e.Dir || after.Dir != before.Dir || after.Lib != e.Lib ||
		after.Key != e.Key || len(after.Problems) > 0 {
		t.Errorf("after the installation: %+v", after)
	}
	data, err := json.Marshal(after)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, back); diff != "" {
		t.Errorf("JSON round trip (-want +got):\n%s", diff)
	}
	for _, words := range []string{"installed", e.Dir, "cpu (asked for)", "mlx-cpu " + Version, after.Compiler.Path} {
		if !strings.Contains(after.String(), words) {
			t.Errorf("%q does not contain %q", after, words)
		}
	}

	// Missing tools are not a problem if the engine is installed. Otherwise each missing tool is reported.
	w.opts.Python = ""
	w.setenv("PATH", t.TempDir())
	if r := Status(t.Context(), w.opts); len(r.Problems) > 0 || r.Python != nil || r.Compiler != nil {
		t.Errorf("installed, without tools: %+v", r)
	}
	w.opts.CacheDir = t.TempDir()
	if r := Status(t.Context(), w.opts); len(r.Problems) != 3 {
		t.Errorf("not installed, without tools: %q", r.Problems)
	}
}

func TestStatusOfFolder(t *testing.T) {
	t.Parallel()
	dir := engineFolder(t, CUDA13)
	r := Status(t.Context(), emptyWorld(t, thisHost(), EnvEngine+"="+dir))
	if !r.Installed || r.Source != SourceEnv || r.Dir != dir || r.Flavour != CUDA13 || r.CacheDir != "" ||
		len(r.Problems) > 0 {
		t.Errorf("%+v", r)
	}
	r = Status(t.Context(), emptyWorld(t, thisHost(), EnvEngine+"="+t.TempDir()))
	if r.Installed || r.Source != SourceEnv || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "lacks") {
		t.Errorf("%+v", r)
	}
}

func TestStatusUnsupported(t *testing.T) {
	t.Parallel()
	r := Status(t.Context(), emptyWorld(t, host{os: "plan9", arch: "386", root: t.TempDir()}))
	if r.Installed || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "plan9/386") {
		t.Errorf("%+v", r)
	}
}
