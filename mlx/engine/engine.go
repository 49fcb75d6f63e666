// Package engine finds the MLX engine, installs it, and tells what would be used and why.
//
// An engine is one folder, which can be moved as a whole:
//
//	mlx/lib/libmlx.so                the library of the official MLX wheel (.dylib on macOS), with its helpers beside it
//	mlx_cpu.libs/, nvidia/, ...      what that library loads by relative path, where the wheel put it
//	bridge/libingot_mlx.so           package bridge's sources, compiled against that wheel's headers
//	engine.json                      what it is: see Manifest
//
// The engine is the folder that INGOT_ENGINE names, as it is, or else the folder of this program's key in the user's
// cache; nothing else is searched, since another libmlx under the headers of this one corrupts memory. The key is a
// hash of the bridge's sources, the compiler's flags, the MLX version, the flavour, the locked wheels and the platform.
//
// Install fetches the wheels with the user's own pip, which knows their index, proxy and certificates, and accepts
// only the hashes of the embedded lock files. Whatever fails or is interrupted leaves no half of an engine behind, and
// of two processes that install the same engine the second waits and uses the first one's.
//
// This package needs no cgo and loads nothing: package mlx does.
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

	"github.com/ingotml/ingot/child"
)

// Version is the MLX release that everything here is made for.
const Version = "0.32.4"

// Flavour is a build of MLX: which devices it can use.
type Flavour string

// The flavours. Each has a lock file in lock/, which says on which platforms it exists.
const (
	CPU    Flavour = "cpu"    // Linux
	Metal  Flavour = "metal"  // macOS on Apple silicon
	CUDA12 Flavour = "cuda12" // Linux, NVIDIA driver 525 or newer
	CUDA13 Flavour = "cuda13" // Linux, NVIDIA driver 580 or newer
)

// Environment variables that this package reads. An option wins over its variable.
const (
	EnvEngine  = "INGOT_ENGINE"         // a folder that holds an engine, used as it is
	EnvCache   = "INGOT_CACHE"          // the cache folder, in place of ingot/ in the user's
	EnvFlavour = "INGOT_ENGINE_FLAVOUR" // the flavour, in place of what the machine suggests; without effect on INGOT_ENGINE
	EnvPython  = "INGOT_PYTHON"         // the Python whose pip downloads
	EnvCXX     = "CXX"                  // the C++ compiler, with arguments if need be
)

// Options say how to find or install an engine. The zero value is what most callers want.
type Options struct {
	Flavour  Flavour                                    // "" is INGOT_ENGINE_FLAVOUR, else what the machine suggests
	CacheDir string                                     // "" is INGOT_CACHE, else ingot/ in the user's cache folder
	Python   string                                     // "" is INGOT_PYTHON, else python3 or python, whichever has pip
	CXX      string                                     // "" is CXX, else c++, g++ or clang++
	Log      func(format string, args ...any)           // progress, one line a call, never two calls at once; nil for none
	Check    func(ctx context.Context, e *Engine) error // loads a new engine before Install keeps it; nil for no check

	inside *inside // what tests replace
}

// An Engine is an installed engine. Paths are absolute.
type Engine struct {
	Dir     string
	Lib     string // libmlx: to be loaded first, by this path
	Bridge  string // libingot_mlx
	Flavour Flavour
	Version string // of MLX, as engine.json says; the library itself is asked when it is loaded
	Key     string
	Source  string // why this one: "INGOT_ENGINE" or "cache"
}

// The values of Engine.Source and Report.Source.
const (
	SourceEnv   = EnvEngine
	SourceCache = "cache"
)

// Manifest is engine.json: what an engine's folder holds and how its bridge was made.
type Manifest struct {
	Version  string   `json:"version"` // of MLX
	Flavour  Flavour  `json:"flavour"`
	Key      string   `json:"key"`
	ABI      int64    `json:"abi"`      // of the bridge
	Compiler string   `json:"compiler"` // name and version
	Flags    []string `json:"flags"`    // without paths
}

const manifestName = "engine.json"

// What can go wrong; messages that wrap these say what happened and what to do.
var (
	ErrNotInstalled = errors.New("engine not installed")
	ErrInvalid      = errors.New(EnvEngine + " does not hold an engine")
	ErrUnsupported  = errors.New("unsupported machine")
	ErrNoPython     = errors.New("no Python with pip")
	ErrDownload     = errors.New("download failed")
	ErrHash         = errors.New("downloaded file has the wrong hash")
	ErrNoCompiler   = errors.New("no C++20 compiler")
	ErrCompile      = errors.New("bridge does not compile")
	ErrNoSpace      = errors.New("no space left")
	ErrLoad         = errors.New("engine does not load")
)

// failure is an error that says its own words and still is one of the sentinels above.
type failure struct {
	kind error
	error
}

func (f failure) Unwrap() []error { return []error{f.kind, f.error} }

func failf(kind error, format string, args ...any) error {
	return failure{kind, fmt.Errorf(format, args...)}
}

// Find is the engine that this program would use. It downloads and builds nothing: without an engine the error is
// ErrNotInstalled, or ErrInvalid where INGOT_ENGINE names something else, or ErrUnsupported.
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
			return nil, failf(ErrInvalid, "%s is %s, which lacks %s: point it at a complete engine folder, or unset it", EnvEngine, s.fixed, strings.Join(missing, " and "))
		}
		if s.Flavour != "" && s.Flavour != e.Flavour {
			return nil, failf(ErrInvalid, "%s is %s, an engine of flavour %s, but flavour %s was asked for: give up one of the two", EnvEngine, s.fixed, e.Flavour, s.Flavour)
		}
		e.Source = SourceEnv
		return e, nil
	}
	e, missing := open(s.engineDir(), s.host.libExt())
	if len(missing) > 0 {
		return nil, failf(ErrNotInstalled, "the MLX engine (%s, %s) is not installed in %s: run 'ingot engine install'", s.flavour, Version, s.engineDir())
	}
	e.Source = SourceCache
	return e, nil
}

// open reads an engine's folder and names what is missing there.
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
	e.Flavour, e.Version, e.Key = m.Flavour, m.Version, m.Key
	return e, nil
}

func readManifest(dir string) (Manifest, error) {
	var m Manifest
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return m, err
	}
	err = json.Unmarshal(data, &m)
	return m, err
}

// inside is what tests replace: the outside world of an installation.
type inside struct {
	sources fs.FS    // the bridge's
	lock    *lock    // of the flavour
	host    *host    // this machine
	environ []string // in place of the process's
}

// setup is Options with every default filled in.
type setup struct {
	Options
	sources  fs.FS
	abi      int64
	lock     *lock
	host     host
	environ  []string
	fixed    string  // INGOT_ENGINE; then flavour, key and cacheDir may be empty
	forced   Flavour // asked for
	flavour  Flavour // used
	why      string  // why that flavour
	platform []string
	cacheDir string
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

// choose settles flavour, cache folder and key.
func (s *setup) choose() error {
	if err := s.chooseFlavour(); err != nil {
		return err
	}
	if err := s.chooseCache(); err != nil {
		return err
	}
	var err error
	s.key, err = s.makeKey()
	return err
}

func (s *setup) chooseCache() error {
	dir := s.CacheDir
	if dir == "" {
		dir = s.getenv(EnvCache)
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("no folder for the engine: %w: set %s", err, EnvCache)
		}
		dir = filepath.Join(user, "ingot")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	s.cacheDir = dir
	return nil
}

// getenv reads the environment that child processes get.
func (s *setup) getenv(name string) string { return child.Getenv(s.environ, name) }
