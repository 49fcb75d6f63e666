package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/gofrs/flock"
	"github.com/opencontainers/go-digest"
)

// Ingest is the folder of a run that writes many blobs and can be taken up again after it failed or was killed. Sealed
// blobs stay in it, listed in its journal, until Publish gives them their names. Its methods may be called by
// several goroutines at once.
//
// Contract: the caller holds [Store.Lock] from OpenIngest to the last Put. What a folder holds is kept by collections
// for [IngestAge] after its last use, and so are the blobs that it published.
type Ingest struct {
	s    *Store
	dir  string
	lock *flock.Flock

	mu      sync.Mutex
	journal *os.File
	sealed  map[string]sealed // by name
}

// sealed is one line of the journal.
type sealed struct {
	Name   string        `json:"name"`
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"size"`
	Note   string        `json:"note,omitempty"` // see IngestBlob.Note
}

const (
	ingestPrefix  = "create-" // and the key's hex digits
	ingestLock    = "lock"
	ingestJournal = "journal"
	partialPrefix = "blob-"
)

// OpenIngest opens the folder of the run that has this key, a hash of all that decides what the run writes. It waits while
// another process works in that folder. End with Close, or with Remove when all is done.
func (s *Store) OpenIngest(ctx context.Context, key digest.Digest) (*Ingest, error) {
	if !validDigest(key) {
		return nil, fmt.Errorf("open ingest folder: key %q is not a sha256 digest", clip(string(key)))
	}
	in := &Ingest{s: s, dir: s.path(ingestDir, ingestPrefix+key.Encoded()), sealed: map[string]sealed{}}
	if err := in.open(ctx); err != nil {
		return nil, fmt.Errorf("open ingest folder: %w", err)
	}
	return in, nil
}

func (in *Ingest) open(ctx context.Context) error {
	if err := in.take(ctx); err != nil {
		return err
	}
	err := in.load()
	if err == nil {
		in.journal, err = os.OpenFile(in.path(ingestJournal), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	}
	if err == nil {
		now := in.s.now()
		err = os.Chtimes(in.path(ingestJournal), now, now) // its age is that of the folder
	}
	if err != nil {
		in.Close()
	}
	return err
}

// take makes the folder and locks it. A lock file that its last holder removed does not count.
func (in *Ingest) take(ctx context.Context) error {
	for {
		if err := makeIngest(in.dir); err != nil {
			return err
		}
		l := flock.New(in.path(ingestLock), flock.SetPermissions(0o644))
		ok, err := l.TryLockContext(ctx, lockRetry)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if !ok {
			return err
		}
		held, err := l.Stat()
		there, errThere := os.Stat(in.path(ingestLock))
		if err == nil && errThere == nil && os.SameFile(held, there) {
			in.lock = l
			return nil
		}
		l.Unlock()
	}
}

func (in *Ingest) path(name string) string { return filepath.Join(in.dir, name) }

// load reads the journal, forgets blobs that are gone, and removes what no line names.
func (in *Ingest) load() error {
	lines, err := readJournal(in.path(ingestJournal))
	if err != nil {
		return err
	}
	keep := map[string]bool{ingestLock: true, ingestJournal: true}
	for _, l := range lines {
		info, err := os.Lstat(in.path(l.Digest.Encoded()))
		staged := err == nil && info.Mode().IsRegular() && info.Size() == l.Size
		if staged || in.s.checkBlob(l.Digest, l.Size) == nil {
			in.sealed[l.Name] = l
			keep[l.Digest.Encoded()] = staged
		}
	}
	entries, err := os.ReadDir(in.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !keep[e.Name()] {
			if err := os.Remove(in.path(e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Lookup finds a blob that this run or an earlier one has sealed under that name.
func (in *Ingest) Lookup(name string) (d digest.Digest, size int64, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l, ok := in.sealed[name]
	return l.Digest, l.Size, ok
}

// Note is what was noted about a sealed blob; "" = nothing.
func (in *Ingest) Note(name string) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.sealed[name].Note
}

// seal records a complete, synced file under its name.
func (in *Ingest) seal(partial string, l sealed) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := rename(partial, in.path(l.Digest.Encoded())); err != nil {
		return err
	}
	if err := appendJournal(in.journal, l); err != nil {
		return err
	}
	in.sealed[l.Name] = l
	return nil
}

// Publish gives all sealed blobs their names in the store. Blobs that the store has already are kept as they are. The
// names become durable with the next [Store.Put].
func (in *Ingest) Publish() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.s.makeBlobsDir(); err != nil {
		return fmt.Errorf("publish blobs: %w", err)
	}
	for _, l := range in.sealed {
		err := in.s.checkBlob(l.Digest, l.Size)
		switch {
		case err == nil:
			continue
		case errors.Is(err, ErrBlobMissing) || errors.Is(err, ErrCorrupt): // one of the wrong size is replaced
			err = rename(in.path(l.Digest.Encoded()), in.s.BlobPath(l.Digest))
		}
		if err != nil {
			return fmt.Errorf("publish blob %s: %w", l.Digest, err)
		}
	}
	return nil
}

// Close ends the run and leaves the folder to the next one, unless it holds no sealed blob. A second Close, and one after
// Remove, does nothing.
func (in *Ingest) Close() {
	if in.lock == nil {
		return
	}
	if len(in.sealed) == 0 {
		in.Remove()
		return
	}
	if in.journal != nil {
		in.journal.Close()
	}
	in.lock.Unlock()
	in.lock = nil
}

// Remove ends the run and removes the folder with all that was not published.
func (in *Ingest) Remove() {
	if in.lock == nil {
		return
	}
	if in.journal != nil {
		in.journal.Close()
	}
	gone := removeIngest(in.dir)
	in.lock.Unlock()
	in.lock = nil
	if !gone { // on systems that keep an open file; else what is there now is of the next holder
		os.Remove(in.path(ingestLock))
		os.Remove(in.dir)
	}
}

// makeIngest makes a folder that others make and remove at the same time: os.MkdirAll fails when it goes between its two looks.
func makeIngest(dir string) error {
	for {
		err := os.MkdirAll(dir, 0o755)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if info, errNow := os.Lstat(dir); errNow == nil && !info.IsDir() {
			return err
		}
	}
}

// removeIngest removes a folder whose lock the caller holds; the lock file goes last. It reports whether that went.
func removeIngest(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		if e.Name() != ingestLock {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	err = os.Remove(filepath.Join(dir, ingestLock))
	os.Remove(dir)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}
