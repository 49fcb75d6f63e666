package manifest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"github.com/opencontainers/go-digest"
)

// IngestBlob writes a blob of an [Ingest] from its beginning, and perhaps later parts of it ahead of that. It belongs to
// one goroutine. End it with Seal or Abort; a deferred Abort is harmless after Seal.
type IngestBlob struct {
	in   *Ingest
	name string
	note string
	f    *os.File // nil when ended
	hash hash.Hash
	at   int64 // bytes written by Write, and hashed
	end  int64 // bytes of the file
}

// NewBlob starts a blob under a name of the caller's choice, which is not its digest.
func (in *Ingest) NewBlob(name string) (*IngestBlob, error) {
	f, err := os.CreateTemp(in.dir, partialPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("new blob: %w", err)
	}
	return &IngestBlob{in: in, name: name, f: f, hash: sha256.New()}, nil
}

// Write appends to what Write has written before. It overwrites nothing: the caller keeps it apart from WriteAt's ranges.
func (b *IngestBlob) Write(p []byte) (int, error) {
	if b.f == nil {
		return 0, fmt.Errorf("write blob: %w", fs.ErrClosed)
	}
	n, err := b.f.WriteAt(p, b.at)
	b.hash.Write(p[:n])
	b.at += int64(n)
	b.end = max(b.end, b.at)
	return n, err
}

// WriteAt writes ahead of Write: what begins where Write will have ended, in any order. It is hashed when the blob is
// sealed, by reading it back.
func (b *IngestBlob) WriteAt(p []byte, offset int64) (int, error) {
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

// Note keeps a line of text beside the blob until the run is over: what the next run could not tell from the blob alone.
func (b *IngestBlob) Note(text string) { b.note = text }

// Seal completes the blob: it is synced, read-only, and listed in the journal.
func (b *IngestBlob) Seal(ctx context.Context) (digest.Digest, int64, error) {
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

func (b *IngestBlob) finish(ctx context.Context) (digest.Digest, error) {
	if err := b.hashRest(ctx); err != nil {
		return "", err
	}
	d := digest.NewDigest(digest.SHA256, b.hash)
	if err := b.f.Chmod(0o444); err != nil {
		return "", err
	}
	if err := b.f.Sync(); err != nil {
		return "", err
	}
	if err := b.f.Close(); err != nil {
		return "", err
	}
	return d, b.in.seal(b.f.Name(), sealed{Name: b.name, Digest: d, Size: b.end, Note: b.note})
}

// hashRest reads back what WriteAt wrote.
func (b *IngestBlob) hashRest(ctx context.Context) error {
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

// Abort gives the blob up. After Seal or Abort it does nothing.
func (b *IngestBlob) Abort() {
	if b.f == nil {
		return
	}
	f := b.f
	b.f = nil
	f.Close() // may be closed already, by a Seal that failed
	os.Remove(f.Name())
}
