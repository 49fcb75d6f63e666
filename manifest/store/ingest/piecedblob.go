package ingest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/opencontainers/go-digest"
)

// PiecedBlob writes a blob that is never on the disk as a whole. Its bytes go into files of the size of a piece, each
// of which is handed over when it is full. Write appends from the beginning; WriteAt may write ranges after those of
// Write ahead of it, which stay in a file of their own until Finish. A PiecedBlob must not be used by several
// goroutines at once. End it with Finish or Abort; a deferred Abort after Finish is a no-op.
type PiecedBlob struct {
	in   *Staging
	name string
	full func(path string, bytes int64) error

	piece int64 // bytes of a piece
	hash  hash.Hash
	f     *os.File // the piece that is being written, or nil
	has   int64    // bytes in f
	at    int64    // bytes written by Write

	ahead *os.File // what WriteAt wrote, or nil
	from  int64    // offset in the blob at which ahead begins
	end   int64    // offset at which it ends
}

// NewPieces starts a blob under a name chosen by the caller. Write writes the bytes before the offset from, WriteAt
// those after it. full takes the file of each piece, and removes it when it is needed no more. It may wait until that
// is so for earlier ones.
func (in *Staging) NewPieces(name string, piece, from int64, full func(path string, bytes int64) error) *PiecedBlob {
	return &PiecedBlob{in: in, name: name, full: full, piece: piece, hash: sha256.New(), from: from, end: from}
}

// create creates a file that a later run removes if this one does not.
func (b *PiecedBlob) create() (*os.File, error) {
	return os.CreateTemp(b.in.dir, store.PartialPrefix+"*")
}

// Write appends to the bytes written by Write.
func (b *PiecedBlob) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		if b.f == nil {
			if b.f, err = b.create(); err != nil {
				return written, fmt.Errorf("write blob: %w", err)
			}
		}
		n, err := b.f.Write(p[:min(int64(len(p)), b.piece-b.has)])
		b.hash.Write(p[:n])
		b.has, b.at, written, p = b.has+int64(n), b.at+int64(n), written+n, p[n:]
		if err == nil && b.has == b.piece {
			err = b.hand()
		}
		if err != nil {
			return written, fmt.Errorf("write blob: %w", err)
		}
	}
	return written, nil
}

// hand hands the piece over.
func (b *PiecedBlob) hand() error {
	f, n := b.f, b.has
	b.f, b.has = nil, 0
	if err := f.Close(); err != nil {
		os.Remove(f.Name())
		return err
	}
	return b.full(f.Name(), n)
}

// WriteAt writes ahead of Write. Ranges may come in any order.
func (b *PiecedBlob) WriteAt(p []byte, offset int64) (n int, err error) {
	if offset < b.from {
		return 0, fmt.Errorf("write blob: offset %d is before %d", offset, b.from)
	}
	if b.ahead == nil {
		if b.ahead, err = b.create(); err != nil {
			return 0, fmt.Errorf("write blob: %w", err)
		}
	}
	n, err = b.ahead.WriteAt(p, offset-b.from)
	b.end = max(b.end, offset+int64(n))
	return n, err
}

// Finish writes what WriteAt wrote ahead, hands the last piece over, and returns the blob's digest and size.
func (b *PiecedBlob) Finish(ctx context.Context) (digest.Digest, int64, error) {
	defer b.Abort()
	if b.ahead != nil {
		if b.at > b.from {
			return "", 0, fmt.Errorf("finish blob: %d bytes were written before %d", b.at, b.from)
		}
		gap := io.LimitReader(zeros{}, b.from-b.at)
		rest := io.NewSectionReader(b.ahead, 0, b.end-b.from)
		for _, r := range []io.Reader{gap, rest} {
			if _, err := io.Copy(b, reader{ctx, r}); err != nil {
				return "", 0, err
			}
		}
	}
	if b.f != nil {
		if err := b.hand(); err != nil {
			return "", 0, fmt.Errorf("finish blob: %w", err)
		}
	}
	return digest.NewDigest(digest.SHA256, b.hash), b.at, nil
}

// Abort discards what was not handed over. After Finish or Abort it is a no-op.
func (b *PiecedBlob) Abort() {
	for _, f := range []**os.File{&b.f, &b.ahead} {
		if *f != nil {
			(*f).Close()
			os.Remove((*f).Name())
			*f = nil
		}
	}
}

// zeros reads as zeros without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// reader stops when ctx ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
