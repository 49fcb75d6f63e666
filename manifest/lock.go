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

// How often a lock that is not free is tried again.
const lockRetry = 10 * time.Millisecond

// Lock takes the store's lock shared with other writers, and waits while a collection runs. Hold it from the first
// blob to the last Put. release may be called more than once. The lock goes with the process when that dies.
func (s *Store) Lock(ctx context.Context) (release func(), err error) {
	release, err = s.lock(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("lock model store: %w", err)
	}
	return release, nil
}

// lockAll takes the store's lock for one holder only. It fails with a *BusyError after collectWait.
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

// lockIndex takes the lock under which index.json changes.
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

// newLock gives a handle of its own, so that goroutines exclude each other as processes do.
func (s *Store) newLock(name string) *flock.Flock {
	return flock.New(s.path(name), flock.SetPermissions(0o644))
}

// announce leaves a note about this process in holders/ for as long as it holds the lock. The note is itself locked
// while it counts: one whose process has died is known by being free, whatever its process number means by then.
// Notes only serve messages, so a failure to write one is not an error. Arguments may be secrets and everybody reads
// the note, so it has the command's name and none of them.
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

// holders lists who holds the store's lock, and clears the notes of processes that have died.
func (s *Store) holders() []Holder {
	dir := s.path(holdersDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var list []Holder
	for _, e := range entries {
		path := s.path(holdersDir, e.Name())
		l := flock.New(path, flock.SetFlag(os.O_RDONLY)) // without O_CREATE: the note may be gone by now
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
