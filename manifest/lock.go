package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// lockRetry is the interval at which a lock that is held by another process is tried again.
const lockRetry = 10 * time.Millisecond

// Lock acquires the store's lock, shared with other writers. It waits while a collection holds the lock exclusively.
// The caller holds it from its first blob to its last Put. release may be called more than once. The operating system
// releases the lock if the process dies.
func (s *Store) Lock(ctx context.Context) (release func(), err error) {
	release, err = s.lock(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("lock model store: %w", err)
	}
	return release, nil
}

// lockAll acquires the store's lock exclusively. It returns a *BusyError after collectWait.
func (s *Store) lockAll(ctx context.Context) (release func(), err error) {
	wait, cancel := context.WithTimeout(ctx, s.collectWait)
	defer cancel()
	release, err = s.lock(wait, true)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, &BusyError{Path: s.path(lockFile), Holders: s.holders()}
	}
	return release, err
}

func (s *Store) lock(ctx context.Context, exclusive bool) (func(), error) {
	l := s.newLock(lockFile)
	try := l.TryRLockContext
	if exclusive {
		try = l.TryLockContext
	}
	if ok, err := try(ctx, lockRetry); !ok {
		return nil, err
	}
	retract := s.announce()
	return sync.OnceFunc(func() {
		retract()
		l.Unlock()
	}), nil
}

// lockIndex acquires the lock that protects changes of index.json.
func (s *Store) lockIndex(ctx context.Context) (unlock func(), err error) {
	wait, cancel := context.WithTimeout(ctx, s.indexWait)
	defer cancel()
	l := s.newLock(indexLockFile)
	if ok, err := l.TryLockContext(wait, lockRetry); !ok {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = &BusyError{Path: s.path(indexLockFile)}
		}
		return nil, fmt.Errorf("lock model index: %w", err)
	}
	return func() { l.Unlock() }, nil
}

// newLock returns a handle with its own file descriptor, so that goroutines exclude each other like processes.
func (s *Store) newLock(name string) *flock.Flock {
	return flock.New(s.path(name), flock.SetPermissions(0o644))
}

// announce writes a note about this process to holders/ while the process holds the store's lock. The process also
// locks the note, so that a note left by a dead process is recognized by its free lock, even if its PID was reused.
// Notes are used only in messages, so announce ignores errors. A note contains the command's name but not its
// arguments: every user can read it, and arguments may be secrets.
func (s *Store) announce() (retract func()) {
	nothing := func() {}
	dir := s.path(holdersDir)
	if os.MkdirAll(dir, 0o755) != nil {
		return nothing
	}
	f, err := os.CreateTemp(dir, strconv.Itoa(os.Getpid())+"-*")
	if err != nil {
		return nothing
	}
	remove := func() { os.Remove(f.Name()) }
	b, err := marshal(Holder{PID: os.Getpid(), Command: clip(s.command)})
	if err == nil {
		_, err = f.Write(b)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return remove
	}
	l := flock.New(f.Name())
	if ok, err := l.TryRLock(); !ok || err != nil {
		return remove
	}
	return func() {
		l.Unlock()
		remove()
	}
}

// holders lists the processes that hold the store's lock, and removes the notes of dead processes.
func (s *Store) holders() []Holder {
	dir := s.path(holdersDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var list []Holder
	for _, e := range entries {
		path := s.path(holdersDir, e.Name())
		l := flock.New(path, flock.SetFlag(os.O_RDONLY)) // without O_CREATE: the note may have been removed
		if free, err := l.TryLock(); err != nil {
			continue
		} else if free {
			l.Unlock()
			os.Remove(path)
			continue
		}
		var h Holder
		if b, err := readLimited(path, 4<<10); err == nil && json.Unmarshal(b, &h) == nil && !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list
}
