package engine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ingotml/ingot/internal/limits/place"
)

// Install returns the engine that Find returns. If it is not installed, Install downloads the wheels (unless they are
// cached), compiles the bridge and assembles the engine. It never installs if INGOT_ENGINE is set.
func Install(ctx context.Context, opts Options) (*Engine, error) {
	s, err := newSetup(opts)
	if err != nil {
		return nil, err
	}
	e, err := s.find()
	if errors.Is(err, ErrNotInstalled) || err == nil && e.LacksAVX512 {
		e, err = s.install(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.Log("engine ready in %s", e.Dir)
	return e, nil
}

func (s *setup) install(ctx context.Context) (*Engine, error) {
	// Fail before the download if possible.
	if err := s.checkHost(ctx); err != nil {
		return nil, err
	}
	compilers, err := s.findCompilers(ctx)
	if err != nil {
		return nil, err
	}
	wheel := s.wheelDir()
	if !s.haveWheel(wheel) {
		py, err := s.findPython(ctx)
		if err != nil {
			return nil, err
		}
		err = s.publish(ctx, wheel, func() bool { return s.haveWheel(wheel) }, func(tmp string) error {
			if err := s.download(ctx, py, tmp); err != nil {
				return err
			}
			if !s.haveWheel(filepath.Join(tmp, outName)) {
				return failf(ErrDownload, "pip unpacked no library and headers of MLX for %s: "+
					"%s has pip %s; set %s to another Python", s.flavour, py.path, py.pip, EnvPython)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if err := place.TrustedTree(wheel); err != nil {
		return nil, failf(ErrInvalid, "the wheel in %s is not used: %w", wheel, err)
	}
	done := func() bool { return s.cached(s.engineDir()) != nil }
	err = s.publish(ctx, s.engineDir(), done, func(tmp string) error { return s.assemble(ctx, compilers, wheel, tmp) })
	if err != nil {
		return nil, err
	}
	return s.find()
}

// haveWheel reports whether a folder holds an unpacked MLX wheel. Checking one library and one header is enough: the
// folder gets its name by a rename once it is complete.
func (s *setup) haveWheel(dir string) bool {
	for _, name := range []string{"lib/libmlx" + s.host.libExt(), "include/mlx/mlx.h"} {
		if info, err := os.Stat(filepath.Join(dir, "mlx", name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// assemble builds a complete engine in tmp/out and checks that it loads.
func (s *setup) assemble(ctx context.Context, compilers []compiler, wheel, tmp string) error {
	out := filepath.Join(tmp, outName)
	if err := os.MkdirAll(filepath.Join(out, "bridge"), 0o755); err != nil {
		return err
	}
	start := time.Now()
	c, err := s.buildBridge(ctx, compilers, wheel, tmp, filepath.Join(out, "bridge", "libingot_mlx"+s.host.libExt()))
	if err != nil {
		return err
	}
	s.Log("compiled in %.1f s", time.Since(start).Seconds())
	if err := linkTree(wheel, out, s.flavour); err != nil {
		return err
	}
	sum, err := sumOf(filepath.Join(out, "bridge", "libingot_mlx"+s.host.libExt()))
	if err != nil {
		return err
	}
	manifest, err := json.MarshalIndent(Manifest{
		Version:  Version,
		Flavour:  s.flavour,
		Key:      s.key,
		ABI:      s.abi,
		Compiler: c.version,
		Flags:    slices.Concat(s.target.flags(), linkFlags(s.host.os)),
		Bridge:   sum,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, manifestName), append(manifest, '\n'), 0o644); err != nil {
		return err
	}
	if s.Check == nil {
		return nil
	}
	e, missing := open(out, s.host.libExt())
	if len(missing) > 0 {
		return failf(ErrLoad, "the new engine lacks %s", missing[0])
	}
	e.Source = SourceCache
	s.Log("checking that it loads")
	if err := s.Check(ctx, e); err != nil {
		return failf(ErrLoad, "the new engine (%s, compiled with %s) does not load, nothing was installed: %w%s",
			s.flavour, c.version, err, s.loadRemedy())
	}
	return nil
}

// loadRemedy returns the most likely remedy if an engine does not load.
func (s *setup) loadRemedy() string {
	switch s.flavour {
	case CUDA12, CUDA13:
		return ": check that nvidia-smi works, or use flavour cpu (--flavour, " + EnvFlavour + ")"
	case CPU:
		return ": MLX needs glibc 2.35 and the libstdc++ of GCC 12 or newer"
	}
	return ""
}
