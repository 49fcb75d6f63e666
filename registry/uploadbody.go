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
)

// How much of a file is handed to the kernel at a time: so often is progress known, and a stalled peer noticed.
const sendPiece = 1 << 20

// body is a stretch of a blob on its way out. It reads like any request body; a [fileConn] hands it to the kernel
// instead, which copies nothing through this program (sendfile, where there is no TLS).
type body struct {
	r         io.Reader
	f         *os.File // r, when it is a file
	remaining int64
	onSent    func(n int64)
}

// openBody opens n bytes of a blob from an offset on.
func openBody(s *manifest.Store, b blob, offset, n int64, moved func(int64)) (*body, error) {
	if b.data != nil {
		return &body{r: io.NewSectionReader(bytes.NewReader(b.data), offset, n), remaining: n, onSent: moved}, nil
	}
	f, err := s.OpenBlob(b.Digest)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != b.Size {
		err = fmt.Errorf("it has %d bytes in the store, not %d: %w", info.Size(), b.Size, manifest.ErrCorrupt)
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

// sendTo sends at most so many bytes to a connection.
func (b *body) sendTo(c *net.TCPConn, most int64) (sent int64, err error) {
	for sent < most && b.remaining > 0 {
		n, err := c.ReadFrom(&io.LimitedReader{R: b.f, N: min(sendPiece, b.remaining, most-sent)})
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

// fileConn is a TCP connection that sends bodies by way of the kernel. net/http asks a connection to read from a request's
// body where it can (since Go 1.8; golang.org/issue/30377).
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

// dialFiles makes a dialer's connections such.
func sendfileDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			return sendfileConn{tcp}, err
		}
		return c, err
	}
}

// A registry may need this many times as long for its answer as for a byte: it may have a whole blob to hash, and to
// put where it belongs.
const responseStallFactor = 10

// watchdog ends a request that does not move.
type watchdog struct {
	stall  time.Duration
	left   atomic.Int64 // of the body
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

var errStalled = errors.New("nothing has moved")

// watch gives a context that ends when no byte of a body of this length goes out for so long, or no answer comes.
// End it with stop.
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

// cause makes the error of a request that the watchdog has ended one that is worth another attempt.
func (w *watchdog) cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%w: the registry took nothing and said nothing for too long (%v a byte, %v an answer)",
			ErrInterrupted, w.stall, w.stall*responseStallFactor)
	}
	return err
}
