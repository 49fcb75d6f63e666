// Package engine finds and installs the MLX engine, and reports which engine would be used and why.
//
// An engine is one folder that can be moved as a whole:
//
//	mlx/lib/libmlx.so                the library of the official MLX wheel (.dylib on macOS) and its helper files
//	mlx_cpu.libs/, nvidia/, ...      libraries that it loads by relative path, as the wheel placed them
//	bridge/libingot_mlx.so           package bridge's sources, compiled against that wheel's headers
//	engine.json                      description: see Manifest
//
// The engine is the folder that INGOT_ENGINE names, or else the folder of this program's key in the user's cache. No
// other place is searched, because a libmlx that does not match the bridge's headers corrupts memory. The key is a hash
// of the bridge's sources, the compiler flags, the MLX version, the flavour, the locked wheels and the platform.
//
// On a processor without AVX-512, Install leaves out the AVX-512 kernels, which take half of the compile time. That
// engine has its own key. If only an engine for the other kind of processor is cached, Find returns it: both run on any
// processor.
//
// Install downloads the wheels with the user's pip, which is configured with their index, proxy and certificates. It
// accepts only the hashes in the embedded lock files. A failed or interrupted installation leaves no incomplete engine.
// If two processes install the same engine, the second waits for the first and uses its result.
//
// This package needs no cgo and loads no library: package mlx does.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/internal/limits/place"
)

// Version is the MLX release that the bridge is written for.
const Version = "0.32.4"

// Flavour is a build of MLX. It determines which devices MLX can use.
type Flavour string

// The flavours. Each has a lock file in lock/, which lists the platforms that it supports.
const (
	CPU    Flavour = "cpu"    // Linux
	Metal  Flavour = "metal"  // macOS on Apple silicon
	CUDA12 Flavour = "cuda12" // Linux, NVIDIA driver 525 or newer
	CUDA13 Flavour = "cuda13" // Linux, NVIDIA driver 580 or newer
)

// The environment variables that this package reads. An option overrides its variable.
const (
	EnvEngine  = "INGOT_ENGINE"         // an engine folder to use
	EnvCache   = "INGOT_CACHE"          // the cache folder; default: ingot/ in the user's cache folder
	EnvFlavour = "INGOT_ENGINE_FLAVOUR" // the flavour; default: detected. Ignored with INGOT_ENGINE
	EnvPython  = "INGOT_PYTHON"         // the Python whose pip downloads the wheels
	EnvCXX     = "CXX"                  // the C++ compiler, optionally with arguments
)

// Options configures finding and installing an engine. The zero value suits most callers.
type Options struct {
	Flavour  Flavour                                    // "" means INGOT_ENGINE_FLAVOUR, or else detected
	CacheDir string                                     // "" means INGOT_CACHE, or else ingot/ in the user's cache
	Python   string                                     // "" means INGOT_PYTHON, or else python3 or python with pip
	Portable bool                                       // kernels for all processors, not only this one
	CXX      string                                     // "" means CXX, or else c++, g++ or clang++
	Log      func(format string, args ...any)           // one progress line per call, never concurrently; may be nil
	Check    func(ctx context.Context, e *Engine) error // loads a new engine before Install keeps it; may be nil

	inside *inside // set by tests
}

// An Engine is an installed engine. Its paths are absolute.
type Engine struct {
	Dir     string
	Lib     string // libmlx, which must be loaded first and by this path
	Bridge  string // libingot_mlx
	Flavour Flavour
	Version string // MLX version according to engine.json; the library is checked when it is loaded
	Key     string
	Source  string // how it was found: "INGOT_ENGINE" or "cache"
	Kernels string // folder of the user for kernels that MLX compiles at run time; empty if there is no cache folder
	Sum     string // SHA-256 of the bridge when it was installed; empty = unknown
	// LacksAVX512: this processor has AVX-512, but the engine has no kernels for it. Install compiles one that does.
	LacksAVX512 bool
}

// The values of Engine.Source and Report.Source.
const (
	SourceEnv   = EnvEngine
	SourceCache = "cache"
)

// Manifest is engine.json: the contents of an engine's folder and how its bridge was built.
type Manifest struct {
	Version  string   `json:"version"` // of MLX
	Flavour  Flavour  `json:"flavour"`
	Key      string   `json:"key"`
	ABI      int64    `json:"abi"`      // of the bridge
	Compiler string   `json:"compiler"` // name and version
	Flags    []string `json:"flags"`    // without paths
	Bridge   string   `json:"bridge"`   // SHA-256 of libingot_mlx
}

const (
	manifestName = "engine.json"
	maxManifest  = 1 << 20
)

// The kinds of failures. The messages that wrap them say what happened and what to do.
var (
	ErrNotInstalled = errors.New("engine not installed")
	ErrInvalid      = errors.New("the engine cannot be used")
	ErrUnsupported  = errors.New("unsupported machine")
	ErrNoPython     = errors.New("no Python with pip")
	ErrDownload     = errors.New("download failed")
	ErrHash         = errors.New("downloaded file has the wrong hash")
	ErrNoCompiler   = errors.New("no C++20 compiler")
	ErrCompile      = errors.New("bridge does not compile")
	ErrNoSpace      = errors.New("no space left")
	ErrLoad         = errors.New("engine does not load")
)

// failure is an error with a message of its own that wraps one of the sentinels above.
type failure struct {
	kind error
	error
}

func (f failure) Unwrap() []error { return []error{f.kind, f.error} }

func failf(kind error, format string, args ...any) error {
	return failure{kind, fmt.Errorf(format, args...)}
}

// Find returns the engine that this program would use. It downloads and builds nothing. If there is no engine the error
// wraps ErrNotInstalled, ErrUnsupported, or ErrInvalid if INGOT_ENGINE is not an engine folder or others could have
// written the engine.
func Find(opts Options) (*Engine, error) {
	s, err := newSetup(opts)
	if err != nil {
		return nil, err
	}
	return s.find()
}

func (s *setup) find() (*Engine, error) {
	if s.fixed != "" {
		e, missing := open(s.fixed, s.host.libExt())
		if len(missing) > 0 {
			return nil, failf(ErrInvalid, "%s is %s, which lacks %s: point it at a complete engine folder, or unset it",
				EnvEngine, s.fixed, strings.Join(missing, " and "))
		}
		if s.Flavour != "" && s.Flavour != e.Flavour {
			return nil, failf(ErrInvalid, "%s is %s, which has flavour %s, but flavour %s was requested: unset one of the two",
				EnvEngine, s.fixed, e.Flavour, s.Flavour)
		}
		e.Source, e.Kernels = SourceEnv, s.kernelDir()
		return e.checked()
	}
	e := s.cached(s.engineDir())
	if e == nil && s.host.arch == "amd64" && !s.Portable {
		other, err := s.makeKey(target{s.host.arch, !s.target.avx512})
		if err != nil {
			return nil, err
		}
		if e = s.cached(s.engineDirOf(other)); e != nil {
			e.LacksAVX512 = s.target.avx512
		}
	}
	if e == nil {
		return nil, failf(ErrNotInstalled, "the MLX engine (%s, %s) is not installed in %s: run 'ingot engine install'",
			s.flavour, Version, s.engineDir())
	}
	return e.checked()
}

// cached returns the engine in a folder of the cache, or nil if there is no complete one.
func (s *setup) cached(dir string) *Engine {
	e, missing := open(dir, s.host.libExt())
	if len(missing) > 0 {
		return nil
	}
	e.Source, e.Kernels = SourceCache, s.kernelDir()
	return e
}

// open reads an engine's folder and lists missing files.
func open(dir, ext string) (*Engine, []string) {
	e := &Engine{
		Dir:    dir,
		Lib:    filepath.Join(dir, "mlx", "lib", "libmlx"+ext),
		Bridge: filepath.Join(dir, "bridge", "libingot_mlx"+ext),
	}
	var missing []string
	for _, path := range []string{e.Lib, e.Bridge, filepath.Join(dir, manifestName)} {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			name, _ := filepath.Rel(dir, path)
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, missing
	}
	m, err := readManifest(dir)
	if err != nil {
		return nil, []string{fmt.Sprintf("a readable %s (%v)", manifestName, err)}
	}
	e.Flavour, e.Version, e.Key, e.Sum = m.Flavour, m.Version, m.Key, m.Bridge
	return e, nil
}

func readManifest(dir string) (Manifest, error) {
	var m Manifest
	data, err := place.ReadFile(filepath.Join(dir, manifestName), maxManifest)
	if err != nil {
		return m, err
	}
	err = json.Unmarshal(data, &m)
	return m, err
}

// inside is the outside world of an installation, for tests to replace.
type inside struct {
	sources fs.FS    // of the bridge
	lock    *lock    // of the flavour
	host    *host    // this machine
	environ []string // instead of the process's environment
}

// setup is Options with all defaults resolved.
type setup struct {
	Options
	sources  fs.FS
	abi      int64
	lock     *lock
	host     host
	environ  []string
	fixed    string  // INGOT_ENGINE; if set, flavour, key and cacheDir may be empty
	forced   Flavour // requested by the option or the environment
	flavour  Flavour // chosen
	why      string  // why that flavour was chosen
	platform []string
	cacheDir string
	target   target
	key      string
}

func newSetup(opts Options) (*setup, error) {
	s, err := newSetupEnv(opts)
	if err != nil || s.fixed != "" {
		return s, err
	}
	return s, s.choose()
}

// newSetupEnv is the part of newSetup that does not depend on the machine.
func newSetupEnv(opts Options) (*setup, error) {
	in := opts.inside
	if in == nil {
		in = &inside{}
	}
	s := &setup{Options: opts, sources: in.sources, lock: in.lock, environ: in.environ}
	if s.environ == nil {
		s.environ = os.Environ()
	}
	if in.host != nil {
		s.host = *in.host
	} else {
		s.host = thisHost()
	}
	if s.sources == nil {
		s.sources, s.abi = bridgeSources()
	}
	if s.Log == nil {
		s.Log = func(string, ...any) {}
	}
	if s.forced = opts.Flavour; s.forced == "" {
		s.forced = Flavour(s.getenv(EnvFlavour))
	}
	var err error
	if s.fixed = s.getenv(EnvEngine); s.fixed != "" {
		if s.fixed, err = filepath.Abs(s.fixed); err != nil {
			return nil, fmt.Errorf("%s: %w", EnvEngine, err)
		}
	}
	return s, nil
}

// choose sets flavour, cache folder, target and key.
func (s *setup) choose() error {
	if err := s.chooseFlavour(); err != nil {
		return err
	}
	if err := s.chooseCache(); err != nil {
		return err
	}
	s.target = target{s.host.arch, s.host.arch == "amd64" && (s.host.avx512 || s.Portable)}
	var err error
	s.key, err = s.makeKey(s.target)
	return err
}

func (s *setup) chooseCache() (err error) {
	s.cacheDir, err = s.findCache()
	return err
}

func (s *setup) findCache() (string, error) {
	dir := s.CacheDir
	if dir == "" {
		dir = s.getenv(EnvCache)
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the cache folder of the engine: %w: set %s", err, EnvCache)
		}
		dir = filepath.Join(user, "ingot")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	return dir, nil
}

// getenv reads the environment that child processes get.
func (s *setup) getenv(name string) string { return child.Getenv(s.environ, name) }
