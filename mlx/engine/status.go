package engine

import (
	"context"
	"fmt"
	"strings"
)

// Report is the result of Status. The fields after a problem may be unset; Problems lists what prevents using an
// engine.
type Report struct {
	Installed     bool     `json:"installed"`
	Source        string   `json:"source"` // how the folder was found: "INGOT_ENGINE" or "cache"
	Dir           string   `json:"dir,omitempty"`
	Lib           string   `json:"lib,omitempty"`
	Bridge        string   `json:"bridge,omitempty"`
	Version       string   `json:"version"` // of MLX: the engine's if there is one, otherwise the required one
	Flavour       Flavour  `json:"flavour,omitempty"`
	FlavourReason string   `json:"flavour_reason,omitempty"`
	Key           string   `json:"key,omitempty"`
	ABI           int64    `json:"abi,omitempty"`        // of the installed bridge
	BuiltWith     string   `json:"built_with,omitempty"` // the compiler of the installed bridge
	CacheDir      string   `json:"cache_dir,omitempty"`  // empty with INGOT_ENGINE
	WheelDir      string   `json:"wheel_dir,omitempty"`  // empty with INGOT_ENGINE
	Downloaded    bool     `json:"downloaded"`           // WheelDir holds the wheels
	Wheels        []string `json:"wheels,omitempty"`     // "mlx-cpu 0.32.4", ...
	Python        *Tool    `json:"python,omitempty"`     // that an installation would use
	Compiler      *Tool    `json:"compiler,omitempty"`   // that an installation would use
	Problems      []string `json:"problems"`             // each with its remedy; empty if there are none
	Hint          string   `json:"hint,omitempty"`       // what would make the installed engine faster
}

// AVX512Hint says what Engine.LacksAVX512 means and how to mend it.
const AVX512Hint = "the engine was compiled on a processor without AVX-512, which this one has: " +
	"run 'ingot engine install' for its kernels"

// Tool is a program that an installation needs.
type Tool struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// Status reports which engine would be used and why, and which tools an installation would use or lack. It downloads
// and changes nothing. It looks for Python and a compiler even if an engine is installed, but then their absence is not
// a problem.
func Status(ctx context.Context, opts Options) Report {
	r := Report{Version: Version, Problems: []string{}}
	s, err := newSetupEnv(opts)
	if err != nil {
		r.problem(err)
		return r
	}
	r.Source = SourceCache
	if s.fixed != "" {
		r.Source, r.Dir = SourceEnv, s.fixed
	} else {
		err := s.choose()
		r.Flavour, r.FlavourReason, r.CacheDir, r.Key = s.flavour, s.why, s.cacheDir, s.key
		if err != nil {
			r.problem(err)
			return r
		}
		r.Dir, r.WheelDir = s.engineDir(), s.wheelDir()
		r.Downloaded = s.haveWheel(r.WheelDir)
		for _, p := range s.lock.packages {
			r.Wheels = append(r.Wheels, p.String())
		}
	}
	e, err := s.find()
	if err != nil {
		r.problem(err)
	} else {
		r.Installed = true
		r.Dir, r.Lib, r.Bridge, r.Version, r.Flavour, r.Key = e.Dir, e.Lib, e.Bridge, e.Version, e.Flavour, e.Key
		if e.LacksAVX512 {
			r.Hint = AVX512Hint
		}
		if m, err := readManifest(e.Dir); err == nil {
			r.ABI, r.BuiltWith = m.ABI, m.Compiler
		}
	}
	if s.fixed == "" {
		r.tools(ctx, s)
	}
	return r
}

func (r *Report) tools(ctx context.Context, s *setup) {
	if err := s.checkHost(ctx); err != nil && !r.Installed {
		r.problem(err)
	}
	if py, err := s.findPython(ctx); err == nil {
		r.Python = &Tool{Path: py.path, Version: "pip " + py.pip}
	} else if !r.Installed && !r.Downloaded {
		r.problem(err)
	}
	if list, err := s.findCompilers(ctx); err == nil {
		r.Compiler = &Tool{Path: strings.Join(list[0].command, " "), Version: list[0].version}
	} else if !r.Installed {
		r.problem(err)
	}
}

func (r *Report) problem(err error) { r.Problems = append(r.Problems, err.Error()) }

// String formats the report as text, one fact per line.
func (r Report) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	state := "not installed"
	if r.Installed {
		state = "installed"
	}
	line("engine", "MLX %s, %s", r.Version, state)
	if r.Flavour != "" {
		if r.FlavourReason != "" {
			line("flavour", "%s (%s)", r.Flavour, r.FlavourReason)
		} else {
			line("flavour", "%s", r.Flavour)
		}
	}
	if r.Dir != "" {
		line("folder", "%s (from %s)", r.Dir, r.Source)
	}
	if r.Key != "" {
		line("key", "%s", r.Key)
	}
	if r.BuiltWith != "" {
		line("bridge", "interface %#x, compiled with %s", r.ABI, r.BuiltWith)
	}
	if r.WheelDir != "" {
		have := "to be downloaded"
		if r.Downloaded {
			have = "downloaded, " + r.WheelDir
		}
		line("wheels", "%s: %s", strings.Join(r.Wheels, ", "), have)
	}
	for _, t := range []struct {
		name string
		tool *Tool
	}{{"python", r.Python}, {"compiler", r.Compiler}} {
		if t.tool != nil {
			line(t.name, "%s (%s)", t.tool.Path, t.tool.Version)
		}
	}
	for _, p := range r.Problems {
		line("problem", "%s", p)
	}
	if r.Hint != "" {
		line("hint", "%s", r.Hint)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
