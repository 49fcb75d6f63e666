package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/gofrs/flock"
	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/opencontainers/go-digest"
)

// Staging is the staging folder of a run that writes many blobs and can be resumed after it failed or was killed.
// Sealed blobs stay in the folder, listed in its journal, until Publish renames them into the store. Its methods are
// safe for concurrent use.
//
// The caller holds [store.Store.Lock] from Open to the last Put. Collections keep a staging folder, and the blobs
// it published, for [Age] after its last use.
type Staging struct {
	s    *store.Store
	dir  string
	lock *flock.Flock

	mu      sync.Mutex
	journal *os.File
	sealed  map[string]sealed      // by name
	made    map[digest.Digest]bool // blobs that this run has hashed; those of earlier ones may have changed since
	sent    map[string]sealed      // by name: blobs of earlier runs that only another place has; see Release
}

// sealed is a line of the journal.
type sealed struct {
	Name   string        `json:"name"`
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"size"`
	Note   string        `json:"note,omitempty"` // see StagedBlob.Note
	Sent   string        `json:"sent,omitempty"` // the place that has the blob; see Staging.Release
}

const (
	ingestPrefix  = "create-" // followed by the key's hex digits
	ingestLock    = "lock"
	ingestJournal = "journal"
)

// Open opens the staging folder of the run with this key, a hash of all the run's inputs. It waits while another
// process uses the folder. The caller ends with Close, or with Remove once the folder is no longer needed.
func Open(ctx context.Context, s *store.Store, key digest.Digest) (*Staging, error) {
	if !manifest.ValidDigest(key) {
		return nil, fmt.Errorf("open ingest folder: key %q is not a sha256 digest", manifest.Clip(string(key)))
	}
	in := &Staging{
		s: s, dir: s.Path(store.IngestDir, ingestPrefix+key.Encoded()),
		sealed: map[string]sealed{}, made: map[digest.Digest]bool{}, sent: map[string]sealed{},
	}
	if err := in.open(ctx); err != nil {
		return nil, fmt.Errorf("open ingest folder: %w", err)
	}
	return in, nil
}

func (in *Staging) open(ctx context.Context) error {
	if err := in.acquire(ctx); err != nil {
		return err
	}
	err := in.load()
	if err == nil {
		in.journal, err = place.OpenFile(in.path(ingestJournal), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	}
	if err == nil {
		now := in.s.Now()
		err = os.Chtimes(in.path(ingestJournal), now, now) // the folder's age is the journal's
	}
	if err != nil {
		in.Close()
	}
	return err
}

// acquire creates the folder and locks it.
func (in *Staging) acquire(ctx context.Context) (err error) {
	in.lock, err = lock.Take(ctx, in.path(ingestLock), lock.Options{Folder: func() error {
		if err := makeIngest(in.dir); err != nil {
			return err
		}
		return ctx.Err()
	}})
	return err
}

func (in *Staging) path(name string) string { return filepath.Join(in.dir, name) }

// load reads the journal. It ignores lines whose blob no longer exists, and removes files that no line lists.
func (in *Staging) load() error {
	lines, err := readJournal(in.path(ingestJournal))
	if err != nil {
		return err
	}
	keep := map[string]bool{ingestLock: true, ingestJournal: true}
	for _, l := range lines {
		info, err := os.Lstat(in.path(l.Digest.Encoded()))
		staged := err == nil && info.Mode().IsRegular() && info.Size() == l.Size
		if staged || in.s.CheckBlob(l.Digest, l.Size) == nil {
			l.Sent = ""
			in.sealed[l.Name] = l
			keep[l.Digest.Encoded()] = staged
		} else if l.Sent != "" {
			in.sent[l.Name] = l
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

// Lookup returns the blob that this run or an earlier one sealed under a name.
func (in *Staging) Lookup(name string) (d digest.Digest, size int64, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l, ok := in.sealed[name]
	return l.Digest, l.Size, ok
}

// Note returns the note of a sealed blob, or "" if it has none.
func (in *Staging) Note(name string) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.sealed[name].Note
}

// seal adds a complete, synced file to the journal.
func (in *Staging) seal(partial string, l sealed) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := atomicfile.Rename(partial, in.path(l.Digest.Encoded())); err != nil {
		return err
	}
	if err := appendJournal(in.journal, l); err != nil {
		return err
	}
	in.sealed[l.Name] = l
	in.made[l.Digest] = true
	return nil
}

// Publish renames all sealed blobs into the store. If the store already has a blob, the existing file is kept. The
// directory entries become durable with the next [store.Store.Put].
func (in *Staging) Publish() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.s.MakeBlobsDir(); err != nil {
		return fmt.Errorf("publish blobs: %w", err)
	}
	var renamed []digest.Digest
	for _, l := range in.sealed {
		if l.Sent != "" {
			continue
		}
		err := in.s.CheckBlob(l.Digest, l.Size)
		there, made := err == nil, in.made[l.Digest]
		if there && (!made || in.s.IsVerified(l.Digest)) {
			continue
		}
		// One of the wrong size is replaced, and one that may have changed.
		if there || errors.Is(err, manifest.ErrBlobMissing) || errors.Is(err, manifest.ErrCorrupt) {
			err = atomicfile.Rename(in.path(l.Digest.Encoded()), in.s.BlobPath(l.Digest))
		}
		if there && err != nil {
			continue // it was published before, or is in use
		}
		if err != nil {
			return fmt.Errorf("publish blob %s: %w", l.Digest, err)
		}
		if made {
			renamed = append(renamed, l.Digest)
		}
	}
	in.s.NoteWritten(renamed...)
	return nil
}

// Close ends the run and keeps the folder for the next one, unless no blob is sealed or sent. After Close or Remove it
// is a no-op.
func (in *Staging) Close() {
	if in.lock == nil {
		return
	}
	if len(in.sealed) == 0 && len(in.sent) == 0 {
		in.Remove()
		return
	}
	if in.journal != nil {
		in.journal.Close()
	}
	in.lock.Unlock()
	in.lock = nil
}

// Remove ends the run and removes the folder, including all unpublished blobs.
func (in *Staging) Remove() {
	if in.lock == nil {
		return
	}
	if in.journal != nil {
		in.journal.Close()
	}
	removed := removeIngest(in.dir)
	in.lock.Unlock()
	in.lock = nil
	// Windows cannot remove an open lock file. Elsewhere the path may belong to the next holder by now.
	if !removed {
		os.Remove(in.path(ingestLock))
		os.Remove(in.dir)
	}
}

// makeIngest creates a folder that other processes may remove concurrently: os.MkdirAll returns ErrExist if the folder
// disappears between its mkdir and its stat.
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

// removeIngest removes a folder whose lock the caller holds. It removes the lock file last and reports whether that
// succeeded.
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
