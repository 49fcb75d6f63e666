package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
)

// sendPiece is the number of bytes handed to the kernel at a time. It bounds how late progress is reported and a stall
// is detected.
const sendPiece = 1 << 20

// body is a request body that reads a range of a blob. Without TLS, a [sendfileConn] sends it with sendfile(2), which
// does not copy the bytes through this process.
type body struct {
	r         io.Reader
	f         *os.File // r, if it is a file
	remaining int64
	onSent    func(n int64)
}

// openBody opens n bytes of a blob from offset on. It calls moved with the number of bytes each time some are sent.
func openBody(s *store.Store, b blob, offset, n int64, moved func(int64)) (*body, error) {
	if b.data != nil {
		return &body{r: io.NewSectionReader(bytes.NewReader(b.data), offset, n), remaining: n, onSent: moved}, nil
	}
	f, err := s.OpenBlob(b.Digest)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != b.Size {
		err = fmt.Errorf("the stored blob has %d bytes, not %d: %w", info.Size(), b.Size, manifest.ErrCorrupt)
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

func (b *body) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.remaining)])
	return n, b.advance(int64(n), err)
}

// sendTo sends at most limit bytes to a connection.
func (b *body) sendTo(c *net.TCPConn, limit int64) (sent int64, err error) {
	for sent < limit && b.remaining > 0 {
		n, err := c.ReadFrom(&io.LimitedReader{R: b.f, N: min(sendPiece, b.remaining, limit-sent)})
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
	if b.f == nil {
		return nil
	}
	return b.f.Close()
}

// sendfileConn is a TCP connection that sends a [body] with sendfile(2). net/http calls the connection's ReadFrom with
// the request body if it can (since Go 1.8; golang.org/issue/30377).
type sendfileConn struct{ *net.TCPConn }

// ReadFrom implements [io.ReaderFrom].
func (c sendfileConn) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		if b, ok := limited.R.(*body); ok && b.f != nil {
			n, err := b.sendTo(c.TCPConn, limited.N)
			limited.N -= n
			return n, err
		}
	}
	return c.TCPConn.ReadFrom(r)
}

// sendfileDialer wraps a dial function so that its TCP connections are sendfileConns.
func sendfileDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context,
	string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			return sendfileConn{tcp}, err
		}
		return c, err
	}
}

// responseStallFactor multiplies the stall timeout while waiting for a response: the registry may have to hash a whole
// blob and move it to its final place.
const responseStallFactor = 10

// watchdog cancels a request that makes no progress.
type watchdog struct {
	stall  time.Duration
	left   atomic.Int64 // bytes of the body that are not sent yet
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

var errStalled = errors.New("no progress")

// startWatchdog returns a context that is canceled if no byte of a body of this length is sent for stall, or if no
// response arrives within stall*responseStallFactor after the last byte. The caller must call stop.
func startWatchdog(ctx context.Context, length int64, stall time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{stall: stall, cancel: cancel}
	w.left.Store(length)
	if length == 0 {
		stall *= responseStallFactor
	}
	w.timer = time.AfterFunc(stall, func() { cancel(errStalled) })
	return ctx, w
}

func (w *watchdog) moved(n int64) {
	if w.left.Add(-n) > 0 {
		w.timer.Reset(w.stall)
	} else {
		w.timer.Reset(w.stall * responseStallFactor)
	}
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// cause turns the error of a request that the watchdog canceled into an [ErrInterrupted], which is temporary.
func (w *watchdog) cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%w: the registry stalled (timeouts: %v for a byte, %v for a response)",
			ErrInterrupted, w.stall, w.stall*responseStallFactor)
	}
	return err
}
