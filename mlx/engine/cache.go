package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// The cache folder:
//
//	wheels/FLAVOUR-VERSION-HASH/   the unpacked wheels; the hash covers the lock file and the platform
//	engine/KEY/                    an engine
//	kernels/VERSION/               what MLX compiles at run time on an NVIDIA GPU
//	NAME.lock                      next to each of these: locked by the process that makes it, never removed
//	NAME.tmp-PID/                  next to each of these: under construction

func (s *setup) wheelDir() string {
	return filepath.Join(s.cacheDir, "wheels", fmt.Sprintf("%s-%s-%s", s.flavour, Version, s.wheelHash()))
}

func (s *setup) engineDir() string { return s.engineDirOf(s.key) }

func (s *setup) engineDirOf(key string) string { return filepath.Join(s.cacheDir, "engine", key) }

// kernelDir returns "" if the user has no cache folder, which only an engine of INGOT_ENGINE can do without.
func (s *setup) kernelDir() string {
	dir, err := s.findCache()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "kernels", Version)
}

func (s *setup) wheelHash() string {
	h := newHash()
	h.add("wheels", s.host.platform(), strings.Join(s.platform, " "), s.lock.requirements())
	return h.sum()
}

// makeKey hashes everything that determines the contents of an engine's folder except the compiler: a new compiler does
// not require a new engine.
func (s *setup) makeKey(t target) (string, error) {
	h := newHash()
	h.add("engine", Version, string(s.flavour), s.host.platform(), s.wheelHash())
	h.add(t.flags()...)
	h.add(linkFlags(s.host.os)...)
	list, err := listSources(s.sources, t)
	if err != nil {
		return "", err
	}
	units, err := makeUnits(list)
	if err != nil {
		return "", err
	}
	for _, u := range units {
		h.add("unit", u.name, strings.Join(u.flags, " "), strings.Join(u.files, " "))
	}
	for _, src := range list {
		h.add(src.name, string(src.data))
	}
	return h.sum(), nil
}

// hash computes a digest of a list of strings. Length prefixes separate the strings.
type hash struct{ data []byte }

func newHash() *hash { return &hash{} }

func (h *hash) add(parts ...string) {
	for _, p := range parts {
		h.data = fmt.Appendf(h.data, "%d:%s", len(p), p)
	}
}

func (h *hash) sum() string {
	sum := sha256.Sum256(h.data)
	return hex.EncodeToString(sum[:8])
}

const (
	lockSuffix = ".lock"
	tmpInfix   = ".tmp-"
	outName    = "out" // inside the temporary folder: becomes the target
)

// publish creates the folder target atomically: build fills tmp/out, which is then renamed to target. It holds target's
// lock meanwhile. It calls done after taking the lock, because another process may have created target while it waited.
// tmp is always removed, and so are the temporary folders of killed processes.
func (s *setup) publish(
	ctx context.Context, target string, done func() bool, build func(tmp string) error,
) (err error) {
	parent := filepath.Dir(target)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return s.noSpace(fmt.Errorf("cache folder: %w", err))
	}
	release, err := s.lockFile(ctx, target)
	if err != nil {
		return err
	}
	defer release()
	sweep(parent, filepath.Base(target))
	if done() {
		return nil
	}
	tmp := fmt.Sprintf("%s%s%d", target, tmpInfix, os.Getpid())
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return s.noSpace(fmt.Errorf("cache folder: %w", err))
	}
	defer func() {
		if removed := os.RemoveAll(tmp); err == nil && removed != nil {
			err = fmt.Errorf("cache folder: %w", removed)
		}
	}()
	if err := build(tmp); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("engine installation stopped: %w", ctx.Err())
		}
		return s.noSpace(err)
	}
	// An existing target is incomplete: otherwise done would have returned true.
	if err := os.RemoveAll(target); err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	if err := os.Rename(filepath.Join(tmp, outName), target); err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	return nil
}

func (s *setup) lockFile(ctx context.Context, target string) (release func(), err error) {
	l := flock.New(target + lockSuffix)
	ok, err := l.TryLock()
	if err == nil && !ok {
		s.Log("waiting for another process that is creating %s", target)
		_, err = l.TryLockContext(ctx, 100*time.Millisecond)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("engine installation stopped: %w", ctx.Err())
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s%s: %w", target, lockSuffix, err)
	}
	return func() { _ = l.Close() }, nil
}

// sweep removes the temporary folders of killed processes. A live process holds the lock of its target. The lock is
// more reliable than the process ID in the folder's name, which may belong to another machine or container. The caller
// holds the lock of own.
func sweep(parent, own string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, entry := range entries {
		base, _, ok := strings.Cut(entry.Name(), tmpInfix)
		if !ok {
			continue
		}
		path := filepath.Join(parent, entry.Name())
		if base == own {
			_ = os.RemoveAll(path)
			continue
		}
		l := flock.New(filepath.Join(parent, base+lockSuffix))
		if ok, err := l.TryLock(); ok && err == nil {
			_ = os.RemoveAll(path)
		}
		_ = l.Close()
	}
}

// noSpace turns an error caused by a full disk into ErrNoSpace and adds the remedy.
func (s *setup) noSpace(err error) error {
	if err == nil || !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrNoSpace) {
		return err
	}
	return failf(ErrNoSpace, "%w: free some space, or set %s to a folder on another disk (now %s)",
		err, EnvCache, s.cacheDir)
}
