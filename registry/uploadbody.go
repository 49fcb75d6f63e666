package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/sendfile"
)

// Limits on the bytes handed to the kernel at a time. A piece counts as progress when the kernel has taken it, so on a
// slow connection pieces are small, or it would look stalled.
const (
	minPiece  = 16 << 10
	maxPiece  = 256 << 10
	pieceTime = 100 * time.Millisecond // what a piece should take
)

// body is a request body that reads a range of a blob. Without TLS, package sendfile sends it without copying the bytes
// through this process.
type body struct {
	r         io.Reader
	f         *os.File // r, if it is a file
	remaining int64
	onSent    func(n int64)
}

// openBody opens n bytes of the blob from offset on. It calls moved with the number of bytes each time some are sent.
func (u *upload) openBody(ctx context.Context, offset, n int64, moved func(int64)) (*body, error) {
	b := u.blob
	switch {
	case b.data != nil:
		return &body{r: io.NewSectionReader(bytes.NewReader(b.data), offset, n), remaining: n, onSent: moved}, nil
	case u.copied != nil:
		return &body{r: u.copied.Open(ctx, offset, n), remaining: n, onSent: moved}, nil
	}
	size := b.Size
	if u.piece != nil {
		b.path, size, offset = u.piece.path, u.piece.end-u.piece.begin, offset-u.piece.begin
	}
	f, err := openFile(u.push.s, b)
	if err != nil {
		return nil, err
	}
	offset += b.at
	info, err := f.Stat()
	if err == nil && info.Size() != size && u.push.files == nil {
		err = fmt.Errorf("the stored blob has %d bytes, not %d: %w", info.Size(), size, manifest.ErrCorrupt)
	}
	if err == nil {
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &body{r: f, f: f, remaining: n, onSent: moved}, nil
}

// openFile opens the file of a blob.
func openFile(s *store.Store, b blob) (*os.File, error) {
	if b.path != "" {
		return os.Open(b.path)
	}
	return s.OpenBlob(b.Digest)
}

func (b *body) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.remaining)])
	return n, b.advance(int64(n), err)
}

var _ sendfile.Body = (*body)(nil)

// IsFile implements [sendfile.Body].
func (b *body) IsFile() bool { return b.f != nil }

// SendTo implements [sendfile.Body]: it sends at most limit bytes to a connection.
func (b *body) SendTo(c *net.TCPConn, limit int64) (sent int64, err error) {
	piece := int64(4 * minPiece)
	for sent < limit && b.remaining > 0 {
		start := time.Now()
		n, err := c.ReadFrom(&io.LimitedReader{R: b.f, N: min(piece, b.remaining, limit-sent)})
		if took := time.Since(start); took < pieceTime/2 {
			piece = min(2*piece, maxPiece)
		} else if took > pieceTime {
			piece = max(piece/2, minPiece)
		}
		sent += n
		if err := b.advance(n, err); err != nil {
			return sent, err
		}
		if n == 0 {
			return sent, io.ErrUnexpectedEOF
		}
	}
	return sent, nil
}

func (b *body) advance(n int64, err error) error {
	b.remaining -= n
	if n > 0 {
		b.onSent(n)
	}
	if errors.Is(err, io.EOF) && b.remaining > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (b *body) Close() error {
	if c, ok := b.r.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
