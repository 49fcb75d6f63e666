package lock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/disk"
)

// Names in the store's folder.
const (
	StoreFile  = "lock"
	IndexFile  = "index.lock"
	HoldersDir = "holders"
)

// How long to wait for a lock before returning a BusyError. A collection can be postponed, so its wait is short. The
// index lock is held for milliseconds, so a longer wait means that its holder is suspended.
const (
	defaultCollectWait = 5 * time.Second
	defaultIndexWait   = 30 * time.Second
)

// Retry is the interval at which a lock that is held by another process is tried again.
const Retry = 10 * time.Millisecond

// Locks are the locks of one store. Its methods are safe for concurrent use.
type Locks struct {
	Root        string        // the store's folder
	Command     string        // shown in the messages of processes that wait for this one
	CollectWait time.Duration // how long Exclusive waits
	IndexWait   time.Duration // how long Index waits
}

// New returns the locks of the store in a folder, with the default waits.
func New(root, command string) Locks {
	return Locks{Root: root, Command: command, CollectWait: defaultCollectWait, IndexWait: defaultIndexWait}
}

// Shared acquires the store's lock, shared with other writers. It waits while a collection holds the lock exclusively.
// release may be called more than once.
func (s Locks) Shared(ctx context.Context) (release func(), err error) {
	release, err = s.lock(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("lock model store: %w", err)
	}
	return release, nil
}

// Exclusive acquires the store's lock exclusively. It returns a [*BusyError] after CollectWait.
func (s Locks) Exclusive(ctx context.Context) (release func(), err error) {
	wait, cancel := context.WithTimeout(ctx, s.CollectWait)
	defer cancel()
	release, err = s.lock(wait, true)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, &BusyError{Path: s.path(StoreFile), Holders: s.Holders()}
	}
	return release, err
}

func (s Locks) path(elem ...string) string {
	return filepath.Join(append([]string{s.Root}, elem...)...)
}

func (s Locks) lock(ctx context.Context, exclusive bool) (func(), error) {
	l, err := open(s.path(StoreFile))
	if err != nil {
		return nil, err
	}
	try := l.TryRLockContext
	if exclusive {
		try = l.TryLockContext
	}
	if ok, err := try(ctx, Retry); !ok {
		return nil, err
	}
	retract := s.announce()
	return sync.OnceFunc(func() {
		retract()
		l.Unlock()
	}), nil
}

// Index acquires the lock that protects changes of index.json.
func (s Locks) Index(ctx context.Context) (unlock func(), err error) {
	wait, cancel := context.WithTimeout(ctx, s.IndexWait)
	defer cancel()
	l, err := open(s.path(IndexFile))
	if err != nil {
		return nil, fmt.Errorf("lock model index: %w", err)
	}
	if ok, err := l.TryLockContext(wait, Retry); !ok {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = &BusyError{Path: s.path(IndexFile)}
		}
		return nil, fmt.Errorf("lock model index: %w", err)
	}
	return func() { l.Unlock() }, nil
}

// announce writes a note about this process to holders/ while the process holds the store's lock. The process also
// locks the note, so that a note left by a dead process is recognized by its free lock, even if its PID was reused.
// Notes are used only in messages, so announce ignores errors. A note contains the command's name but not its
// arguments: every user can read it, and arguments may be secrets.
func (s Locks) announce() (retract func()) {
	nothing := func() {}
	dir := s.path(HoldersDir)
	if os.MkdirAll(dir, 0o755) != nil {
		return nothing
	}
	f, err := os.CreateTemp(dir, strconv.Itoa(os.Getpid())+"-*")
	if err != nil {
		return nothing
	}
	remove := func() { os.Remove(f.Name()) }
	b, err := manifest.Marshal(Holder{PID: os.Getpid(), Command: manifest.Clip(s.Command)})
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

// Holders lists the processes that hold the store's lock, and removes the notes of dead processes.
func (s Locks) Holders() []Holder {
	dir := s.path(HoldersDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var list []Holder
	for _, e := range entries {
		path := s.path(HoldersDir, e.Name())
		// Without O_CREATE: the note may have been removed.
		l := flock.New(path, flock.SetFlag(os.O_RDONLY|place.NonBlocking))
		if free, err := l.TryLock(); err != nil {
			continue
		} else if free {
			l.Unlock()
			os.Remove(path)
			continue
		}
		var h Holder
		if b, err := disk.ReadLimited(path, 4<<10); err == nil && json.Unmarshal(b, &h) == nil && !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list
}
