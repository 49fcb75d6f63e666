package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// The cache folder:
//
//	wheels/FLAVOUR-VERSION-HASH/   what pip unpacked, hash over lock file and platform
//	engine/KEY/                    an engine
//	NAME.lock                      beside each of these: held by the process that makes it, never removed
//	NAME.tmp-PID/                  beside each of these: being made

func (s *setup) wheelDir() string {
	return filepath.Join(s.cacheDir, "wheels", fmt.Sprintf("%s-%s-%s", s.flavour, Version, s.wheelHash()))
}

func (s *setup) engineDir() string { return filepath.Join(s.cacheDir, "engine", s.key) }

func (s *setup) wheelHash() string {
	h := newHash()
	h.add("wheels", s.host.platform(), strings.Join(s.platform, " "), s.lock.requirements())
	return h.sum()
}

// makeKey hashes everything that decides what is in an engine's folder, but for the compiler: another one does not
// make another engine.
func (s *setup) makeKey() (string, error) {
	h := newHash()
	h.add("engine", Version, string(s.flavour), s.host.platform(), s.wheelHash())
	h.add(compileFlags...)
	h.add(linkFlags(s.host.os)...)
	units, err := listSources(s.sources, s.host.arch)
	if err != nil {
		return "", err
	}
	for _, u := range units {
		data, err := fs.ReadFile(s.sources, u.name)
		if err != nil {
			return "", fmt.Errorf("bridge sources: %w", err)
		}
		h.add(u.name, strings.Join(u.flags, " "), string(data))
	}
	return h.sum(), nil
}

// hash digests a list of strings; lengths keep neighbours apart.
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
	outName    = "out" // in the temporary folder: what becomes the target
)

// publish makes the folder target: build fills tmp/out, which is then renamed. While it runs it holds target's lock;
// done is asked once the lock is held, since another process may have made target meanwhile. When build fails, tmp is
// removed, as are the temporary folders that killed processes left beside it.
func (s *setup) publish(ctx context.Context, target string, done func() bool, build func(tmp string) error) (err error) {
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
	// What is in the way is incomplete, or done would have been content.
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
		s.Log("waiting for another process that makes %s", target)
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

// sweep removes the temporary folders of processes that were killed. Who works on a folder holds the lock of its
// target, which says more than a process number does: that may be another machine's or container's. The lock of own is
// the caller's.
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

// noSpace gives an error that comes from a full disk its kind and its remedy.
func (s *setup) noSpace(err error) error {
	if err == nil || !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrNoSpace) {
		return err
	}
	return failf(ErrNoSpace, "%w: free some space, or set %s to a folder on another disk (now %s)", err, EnvCache, s.cacheDir)
}
