package manifest

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
	"github.com/opencontainers/go-digest"
)

// MismatchError says that the bytes of a blob are not those that its digest names. It is an [ErrCorrupt].
type MismatchError struct {
	Want, Got digest.Digest
	Size      int64
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("blob %s (%d bytes): its bytes have digest %s: %v", e.Want, e.Size, e.Got, ErrCorrupt)
}

func (e *MismatchError) Is(target error) bool { return target == ErrCorrupt }

// Files of a blob that is being fetched, in ingest/: its digits and these.
const (
	partSuffix     = ".part"   // the bytes, at their places
	rangesSuffix   = ".ranges" // which of them are there, where they are not just the first ones
	partLockSuffix = ".lock"   // held by who fetches it
)

// Files of at least this size get their space at once, so that they lie in one piece and a full disk shows early.
const preallocateFrom = 32 << 20

// Partial is the file of a blob of known digest and size that is being fetched, in any order and by several goroutines.
// What arrived stays for the next [Store.OpenPartial], also when the process is killed, and counts only after it was
// read again: nothing but Commit's comparison of the whole makes it a blob. End it with Commit, Discard or Close; a
// deferred Close is harmless after the others.
type Partial struct {
	s      *Store
	digest digest.Digest
	size   int64
	lock   *flock.Flock // nil when ended
	f      *os.File

	direct   *os.File // the same file, see writeFile; nil when there is no such thing
	noDirect atomic.Bool

	mu      sync.Mutex
	have    ranges
	journal *rangesJournal // nil while have is one range from the start, which the file's size tells

	hashing sync.Mutex // of hash and hashed
	hash    hash.Hash
	hashed  int64
	grown   chan struct{} // holds a token when have has grown
}

// OpenPartial opens the file of a blob that the caller fetches now, with what earlier runs have left of it. While another
// process or goroutine has it, OpenPartial waits, and calls waiting, which may be nil, once. A blob that is or has
// become whole is an [ErrHave]. The caller holds the store's lock until the name is set that refers to the blob.
func (s *Store) OpenPartial(ctx context.Context, d digest.Digest, size int64, waiting func()) (*Partial, error) {
	p, err := s.openPartial(ctx, d, size, waiting)
	if err != nil && !errors.Is(err, ErrHave) {
		return nil, fmt.Errorf("open partial blob %s: %w", clip(string(d)), err)
	}
	return p, err
}

func (s *Store) openPartial(ctx context.Context, d digest.Digest, size int64, waiting func()) (*Partial, error) {
	if !validDigest(d) {
		return nil, errors.New("not a sha256 digest")
	}
	if size < 0 {
		return nil, fmt.Errorf("its size is %d bytes", size)
	}
	if s.checkBlob(d, size) == nil {
		return nil, ErrHave
	}
	p := &Partial{s: s, digest: d, size: size, hash: sha256.New(), grown: make(chan struct{}, 1)}
	if err := os.MkdirAll(s.path(ingestDir), 0o755); err != nil {
		return nil, err
	}
	var err error
	if p.lock, err = takeLock(ctx, p.path(partLockSuffix), waiting); err != nil {
		return nil, err
	}
	if s.checkBlob(d, size) == nil {
		p.Discard() // of nothing, or of what the other one left before it started over
		return nil, ErrHave
	}
	if err := p.open(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Partial) path(suffix string) string { return p.s.path(ingestDir, p.digest.Encoded()+suffix) }

func (p *Partial) open() error {
	path := p.path(partSuffix)
	_ = os.Chmod(path, 0o644) // a run that was killed at the end of its Commit leaves it read-only
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
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
		if err := preallocate(f, p.size); err != nil {
			return noSpace(err)
		}
	}
	p.direct = openDirect(path)
	now := p.s.now()
	return os.Chtimes(path, now, now) // the age that collections look at
}

// Size is that of the whole blob, in bytes.
func (p *Partial) Size() int64 { return p.size }

// Have is how many of its bytes are there.
func (p *Partial) Have() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have.len()
}

// Missing are the ranges that are not there, in order.
func (p *Partial) Missing() []Range {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have.missing(Range{0, p.size})
}

// WriteAt puts bytes at their place. What is there already stays as it is. Ranges that are written at the same time must
// not overlap. Bytes that the hash waits for are hashed on the way, unless [Partial.Follow] does that.
func (p *Partial) WriteAt(b []byte, offset int64) (int, error) {
	if offset < 0 || offset+int64(len(b)) > p.size {
		return 0, fmt.Errorf("write blob %s: bytes %d to %d are beyond its end, %d: %w", p.digest, offset, offset+int64(len(b)), p.size, ErrTooLarge)
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

// write writes and notes what is not there. Before the first bytes that do not follow those from the start, which make the
// file's size say nothing, the journal begins.
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
		return noSpace(err)
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
	return noSpace(p.journal.add(r))
}

// writeFile writes past the page cache what it can. These bytes have to be on the disk before the blob gets its name, and
// nobody may read them soon, unless [Partial.Follow] does: copying them into the cache, and out of it when they are synced, was half of the processor time of
// a pull on a fast connection. Where the disk or the file system does not take such a write, the cache does.
func (p *Partial) writeFile(b []byte, offset int64) error {
	if n := directPart(b, offset); n > 0 && p.direct != nil && !p.noDirect.Load() {
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

// Follow hashes the blob from its start as it grows, by reading back what was written, until all of it is hashed or ctx
// ends. It runs beside the goroutines that write.
func (p *Partial) Follow(ctx context.Context) error {
	p.noDirect.Store(true)
	p.hashing.Lock()
	defer p.hashing.Unlock()
	for {
		if err := p.hashThere(ctx); err != nil {
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

// hashThere hashes what is there without a gap. The caller holds hashing.
func (p *Partial) hashThere(ctx context.Context) error {
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

// Commit compares the digest and makes the bytes a blob of the store: synced, read-only, under its name. Bytes that do not
// match are removed, and the error is a [*MismatchError]; after any other error they stay for another time.
func (p *Partial) Commit(ctx context.Context) error {
	if p.lock == nil {
		return fmt.Errorf("commit blob %s: %w", p.digest, fs.ErrClosed)
	}
	defer p.Close()
	if missing := p.Missing(); len(missing) > 0 {
		return fmt.Errorf("commit blob %s: bytes from %d on: %w", p.digest, missing[0].Start, ErrBlobMissing)
	}
	p.hashing.Lock()
	defer p.hashing.Unlock()
	if err := p.hashThere(ctx); err != nil {
		return fmt.Errorf("commit blob %s: %w", p.digest, err)
	}
	if got := digest.NewDigest(digest.SHA256, p.hash); got != p.digest {
		p.Discard()
		return &MismatchError{Want: p.digest, Got: got, Size: p.size}
	}
	if err := p.s.makeBlobsDir(); err != nil {
		return fmt.Errorf("commit blob %s: %w", p.digest, err)
	}
	if err := publish(p.f, 0o444, p.s.BlobPath(p.digest)); err != nil {
		return fmt.Errorf("commit blob %s: %w", p.digest, noSpace(err))
	}
	p.Discard()
	return nil
}

// Discard throws away what is there. A second call, and one after Close, does nothing.
func (p *Partial) Discard() { p.end(false) }

// Close leaves what is there to the next OpenPartial.
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
		p.f.Close() // may be closed already, by Commit
	}
	if !keep || len(p.have) == 0 {
		os.Remove(p.path(partSuffix))
		os.Remove(p.path(rangesSuffix))
	}
	dropLock(p.lock)
	p.lock = nil
}
