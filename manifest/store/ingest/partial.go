package ingest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/gofrs/flock"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/opencontainers/go-digest"
)

// MismatchError reports that the content of a blob does not match its digest. It matches [manifest.ErrCorrupt].
type MismatchError struct {
	Want, Got digest.Digest
	Size      int64
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("blob %s (%d bytes): its content has digest %s: %v", e.Want, e.Size, e.Got, manifest.ErrCorrupt)
}

func (e *MismatchError) Is(target error) bool { return target == manifest.ErrCorrupt }

// Files of a partial blob in ingest/. Their names are the hex digits of the digest and these suffixes.
const (
	partSuffix     = ".part"   // the content; may have gaps
	rangesSuffix   = ".ranges" // the ranges present, unless they are one range from the start
	partLockSuffix = ".lock"   // lock file, held during the download
)

// preallocateFrom is the size from which a file's space is allocated in advance. This avoids fragmentation and detects
// a full disk early.
const preallocateFrom = 32 << 20

// Partial is a blob of known digest and size that is being downloaded. Goroutines may write its ranges concurrently and
// in any order. Written ranges survive an interruption, also if the process is killed, and the next [OpenPartial]
// resumes from them. They are not trusted: Commit verifies the digest of the whole content before it becomes a blob.
// End a Partial with Commit, Discard or Close; a deferred Close after the others is a no-op.
type Partial struct {
	s      *store.Store
	digest digest.Digest
	size   int64
	lock   *flock.Flock // nil after Commit, Discard or Close
	f      *os.File

	direct   *os.File // the same file, for direct writes (see writeFile); nil if unsupported
	noDirect atomic.Bool

	mu      sync.Mutex
	have    ranges
	journal *rangesJournal // nil while have is a single range from the start, whose length is the file's size

	hashing sync.Mutex // protects hash and hashed
	hash    hash.Hash
	hashed  int64
	grown   chan struct{} // signals that have has grown
}

// OpenPartial opens a blob for download, with the ranges that earlier runs wrote. While another process or goroutine
// has it open, OpenPartial waits, after calling waiting once (may be nil). If the blob is complete, or becomes complete
// meanwhile, the error is a [manifest.ErrHave]. The caller holds the store's lock until it has set the name that
// refers to the blob.
func OpenPartial(ctx context.Context, s *store.Store, d digest.Digest, size int64, waiting func()) (*Partial, error) {
	p, err := openPartial(ctx, s, d, size, waiting)
	if err != nil && !errors.Is(err, manifest.ErrHave) {
		return nil, fmt.Errorf("open partial blob %s: %w", manifest.Clip(string(d)), err)
	}
	return p, err
}

func openPartial(ctx context.Context, s *store.Store, d digest.Digest, size int64, waiting func()) (*Partial, error) {
	if !manifest.ValidDigest(d) {
		return nil, errors.New("not a sha256 digest")
	}
	if size < 0 {
		return nil, fmt.Errorf("its size is %d bytes", size)
	}
	if s.CheckBlob(d, size) == nil {
		return nil, manifest.ErrHave
	}
	p := &Partial{s: s, digest: d, size: size, hash: sha256.New(), grown: make(chan struct{}, 1)}
	if err := os.MkdirAll(s.Path(store.IngestDir), 0o755); err != nil {
		return nil, err
	}
	var err error
	if p.lock, err = lock.Take(ctx, p.path(partLockSuffix), lock.Options{Waiting: waiting}); err != nil {
		return nil, err
	}
	if s.CheckBlob(d, size) == nil {
		p.Discard() // removes what an earlier holder may have left
		return nil, manifest.ErrHave
	}
	if err := p.open(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Partial) path(suffix string) string {
	return p.s.Path(store.IngestDir, p.digest.Encoded()+suffix)
}

func (p *Partial) open() error {
	path := p.path(partSuffix)
	_ = os.Chmod(path, 0o644) // a process killed at the end of Commit leaves it read-only
	f, err := place.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	p.f = f
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > p.size {
		if err := f.Truncate(p.size); err != nil {
			return err
		}
	}
	there := Range{0, min(info.Size(), p.size)}
	listed, err := readRanges(p.path(rangesSuffix))
	switch {
	case err == nil:
		p.have = listed.within(there)
		if p.journal, err = newRangesJournal(p.path(rangesSuffix), p.have); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrNotExist):
		p.have = p.have.add(there)
	default:
		return err
	}
	if p.size >= preallocateFrom {
		if err := disk.Preallocate(f, p.size); err != nil {
			return disk.NoSpace(err)
		}
	}
	p.direct = disk.OpenDirect(path)
	now := p.s.Now()
	return os.Chtimes(path, now, now) // collections use this time
}

// Size returns the size of the complete blob in bytes.
func (p *Partial) Size() int64 { return p.size }

// Have returns the number of bytes that are present.
func (p *Partial) Have() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have.len()
}

// Missing returns the missing ranges in order.
func (p *Partial) Missing() []Range {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have.missing(Range{0, p.size})
}

// WriteAt writes bytes at an offset. It does not overwrite bytes that are present. Concurrent writes must not overlap.
// WriteAt also updates the hash if the bytes continue the hashed prefix, unless [Partial.Follow] is running.
func (p *Partial) WriteAt(b []byte, offset int64) (int, error) {
	if offset < 0 || offset+int64(len(b)) > p.size {
		return 0, fmt.Errorf("write blob %s: bytes %d to %d are beyond its end, %d: %w",
			p.digest, offset, offset+int64(len(b)), p.size, manifest.ErrTooLarge)
	}
	p.mu.Lock()
	todo := p.have.missing(Range{offset, offset + int64(len(b))})
	p.mu.Unlock()
	for _, r := range todo {
		part := b[r.Start-offset : r.End-offset]
		if err := p.write(part, r); err != nil {
			return 0, fmt.Errorf("write blob %s: %w", p.digest, err)
		}
		if p.hashing.TryLock() {
			if p.hashed == r.Start {
				p.hash.Write(part)
				p.hashed = r.End
			}
			p.hashing.Unlock()
		}
	}
	return len(b), nil
}

// write writes a missing range and records it. It starts the journal before the first range that does not extend the
// prefix, because from then on the file's size no longer describes what is present.
func (p *Partial) write(b []byte, r Range) error {
	p.mu.Lock()
	if p.journal == nil && r.Start != p.have.prefix() {
		j, err := newRangesJournal(p.path(rangesSuffix), p.have)
		if err != nil {
			p.mu.Unlock()
			return err
		}
		p.journal = j
	}
	p.mu.Unlock()
	if err := p.writeFile(b, r.Start); err != nil {
		return disk.NoSpace(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.have = p.have.add(r)
	select {
	case p.grown <- struct{}{}:
	default:
	}
	if p.journal == nil {
		return nil
	}
	return disk.NoSpace(p.journal.add(r))
}

// writeFile bypasses the page cache if it can. The bytes must be on disk before the blob is renamed, and are not read
// soon, except by [Partial.Follow]. Copying them to the page cache, and from there to the disk on fsync, took half of
// the CPU time of a pull over a fast connection. If the disk or the file system rejects direct writes, writeFile uses
// the page cache.
func (p *Partial) writeFile(b []byte, offset int64) error {
	if n := disk.DirectPart(b, offset); n > 0 && p.direct != nil && !p.noDirect.Load() {
		if _, err := p.direct.WriteAt(b[:n], offset); err == nil {
			b, offset = b[n:], offset+int64(n)
		} else if errors.Is(err, syscall.EINVAL) {
			p.noDirect.Store(true)
		} else {
			return err
		}
	}
	if len(b) == 0 {
		return nil
	}
	_, err := p.f.WriteAt(b, offset)
	return err
}

// Follow hashes the blob from its start while other goroutines write it, by reading back what they wrote. It returns
// when the whole blob is hashed or ctx is done.
func (p *Partial) Follow(ctx context.Context) error {
	p.noDirect.Store(true)
	p.hashing.Lock()
	defer p.hashing.Unlock()
	for {
		if err := p.hashPrefix(ctx); err != nil {
			return err
		}
		if p.hashed == p.size {
			return nil
		}
		select {
		case <-p.grown:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hashPrefix hashes the contiguous prefix that is present. The caller holds hashing.
func (p *Partial) hashPrefix(ctx context.Context) error {
	var buf []byte
	for {
		p.mu.Lock()
		end := p.have.prefix()
		p.mu.Unlock()
		if p.hashed >= end {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if buf == nil {
			buf = make([]byte, min(end-p.hashed, 256<<10))
		}
		b := buf[:min(int64(len(buf)), end-p.hashed)]
		if _, err := p.f.ReadAt(b, p.hashed); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("read back blob %s: %w", p.digest, err)
		}
		p.hash.Write(b)
		p.hashed += int64(len(b))
	}
}

// Commit verifies the digest, syncs the file, makes it read-only and renames it to its digest in the store. If the
// digest does not match, it removes the file and returns a [*MismatchError]. After any other error the written ranges
// are kept.
func (p *Partial) Commit(ctx context.Context) error {
	if p.lock == nil {
		return fmt.Errorf("commit blob %s: %w", p.digest, fs.ErrClosed)
	}
	defer p.Close()
	if missing := p.Missing(); len(missing) > 0 {
		return fmt.Errorf("commit blob %s: no bytes from offset %d on: %w", p.digest, missing[0].Start,
			manifest.ErrBlobMissing)
	}
	p.hashing.Lock()
	defer p.hashing.Unlock()
	if err := p.hashPrefix(ctx); err != nil {
		return fmt.Errorf("commit blob %s: %w", p.digest, err)
	}
	if got := digest.NewDigest(digest.SHA256, p.hash); got != p.digest {
		p.Discard()
		return &MismatchError{Want: p.digest, Got: got, Size: p.size}
	}
	if err := p.s.MakeBlobsDir(); err != nil {
		return fmt.Errorf("commit blob %s: %w", p.digest, err)
	}
	if err := disk.Publish(p.f, 0o444, p.s.BlobPath(p.digest)); err != nil {
		return fmt.Errorf("commit blob %s: %w", p.digest, disk.NoSpace(err))
	}
	p.s.NoteWritten(p.digest)
	p.Discard()
	return nil
}

// Discard removes the written ranges. After Commit, Discard or Close it is a no-op.
func (p *Partial) Discard() { p.end(false) }

// Close keeps the written ranges for the next OpenPartial.
func (p *Partial) Close() { p.end(true) }

func (p *Partial) end(keep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock == nil {
		return
	}
	if p.journal != nil {
		p.journal.close()
	}
	if p.direct != nil {
		p.direct.Close()
	}
	if p.f != nil {
		p.f.Close() // may already be closed by Commit
	}
	if !keep || len(p.have) == 0 {
		os.Remove(p.path(partSuffix))
		os.Remove(p.path(rangesSuffix))
	}
	lock.Drop(p.lock)
	p.lock = nil
}

// PartialSpace returns the disk space that an unfinished download of a blob already uses.
func PartialSpace(s *store.Store, d digest.Digest) int64 {
	if !manifest.ValidDigest(d) {
		return 0
	}
	info, err := os.Lstat(s.Path(store.IngestDir, d.Encoded()+partSuffix))
	if err != nil {
		return 0
	}
	return disk.Allocated(info)
}
