package ingest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/opencontainers/go-digest"
)

// StagedBlob writes a blob of an [Staging]. Write appends from the beginning; WriteAt may write later ranges ahead of
// it. A StagedBlob must not be used by several goroutines at once. End it with Seal or Abort; a deferred Abort after
// Seal is a no-op.
type StagedBlob struct {
	in   *Staging
	name string
	note string
	f    *os.File // nil after Seal or Abort
	hash hash.Hash
	at   int64 // bytes written by Write and hashed
	end  int64 // size of the file
}

// allocateFrom is the size from which Allocate has an effect: smaller blobs are often a single extent anyway.
const allocateFrom = 1 << 20

// NewBlob starts a blob under a name chosen by the caller. The name is the key for Lookup, not the digest.
func (in *Staging) NewBlob(name string) (*StagedBlob, error) {
	f, err := os.CreateTemp(in.dir, store.PartialPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("new blob: %w", err)
	}
	return &StagedBlob{in: in, name: name, f: f, hash: sha256.New()}, nil
}

// Allocate allocates disk space for a blob of a known size. The file then has few extents, so it is written and synced
// in less time. It fails if the disk is full.
func (b *StagedBlob) Allocate(size int64) error {
	if b.f == nil {
		return fmt.Errorf("allocate blob: %w", fs.ErrClosed)
	}
	if size < allocateFrom {
		return nil
	}
	if err := disk.Preallocate(b.f, size); err != nil {
		return fmt.Errorf("allocate blob: %w", err)
	}
	return nil
}

// Write appends to the bytes written by Write. The caller keeps these apart from the ranges written by WriteAt.
func (b *StagedBlob) Write(p []byte) (int, error) {
	if b.f == nil {
		return 0, fmt.Errorf("write blob: %w", fs.ErrClosed)
	}
	n, err := b.f.WriteAt(p, b.at)
	b.hash.Write(p[:n])
	b.at += int64(n)
	b.end = max(b.end, b.at)
	return n, err
}

// WriteAt writes ahead of Write, at or after the offset where Write will end. Ranges may come in any order. Seal reads
// them back to hash them.
func (b *StagedBlob) WriteAt(p []byte, offset int64) (int, error) {
	if b.f == nil {
		return 0, fmt.Errorf("write blob: %w", fs.ErrClosed)
	}
	if offset < b.at {
		return 0, fmt.Errorf("write blob: offset %d is before %d, which is hashed already", offset, b.at)
	}
	n, err := b.f.WriteAt(p, offset)
	b.end = max(b.end, offset+int64(n))
	return n, err
}

// Note stores text with the blob in the journal, for what a resumed run cannot derive from the blob itself.
func (b *StagedBlob) Note(text string) { b.note = text }

// Seal completes the blob: it syncs the file, makes it read-only and adds it to the journal.
func (b *StagedBlob) Seal(ctx context.Context) (digest.Digest, int64, error) {
	if b.f == nil {
		return "", 0, fmt.Errorf("seal blob: %w", fs.ErrClosed)
	}
	defer b.Abort()
	d, err := b.finish(ctx)
	if err != nil {
		return "", 0, fmt.Errorf("seal blob: %w", err)
	}
	b.f = nil
	return d, b.end, nil
}

func (b *StagedBlob) finish(ctx context.Context) (digest.Digest, error) {
	if err := b.hashRest(ctx); err != nil {
		return "", err
	}
	d := digest.NewDigest(digest.SHA256, b.hash)
	if err := b.f.Chmod(0o444); err != nil {
		return "", err
	}
	if err := disk.Sync(b.f); err != nil {
		return "", err
	}
	if err := b.f.Close(); err != nil {
		return "", err
	}
	return d, b.in.seal(b.f.Name(), sealed{Name: b.name, Digest: d, Size: b.end, Note: b.note})
}

// hashRest reads back and hashes what WriteAt wrote.
func (b *StagedBlob) hashRest(ctx context.Context) error {
	if b.at == b.end {
		return nil
	}
	buf := make([]byte, min(b.end-b.at, 64<<10))
	for b.at < b.end {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := buf[:min(int64(len(buf)), b.end-b.at)]
		if _, err := b.f.ReadAt(p, b.at); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		b.hash.Write(p)
		b.at += int64(len(p))
	}
	return nil
}

// Abort discards the blob. After Seal or Abort it is a no-op.
func (b *StagedBlob) Abort() {
	if b.f == nil {
		return
	}
	f := b.f
	b.f = nil
	f.Close() // may already be closed by a failed Seal
	os.Remove(f.Name())
}
