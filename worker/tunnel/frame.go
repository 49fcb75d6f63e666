package tunnel

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

// Conn is a proven connection. Reads and writes may run at the same time; frames may be written concurrently.
type Conn struct {
	net.Conn
	Peer  Versions // of the other end
	write sync.Mutex
}

// WriteFrame sends a frame: its length in four bytes, big-endian, and its bytes.
func (c *Conn) WriteFrame(b []byte) error {
	if len(b) > limits.TunnelFrame {
		return fmt.Errorf("a frame of %d bytes is longer than %d", len(b), limits.TunnelFrame)
	}
	c.write.Lock()
	defer c.write.Unlock()
	return writeFrame(c.Conn, b)
}

// ReadFrame returns the next frame.
func (c *Conn) ReadFrame() ([]byte, error) { return readFrame(c.Conn, limits.TunnelFrame) }

// WriteJSON sends a value as a frame.
func (c *Conn) WriteJSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	return c.WriteFrame(b)
}

// ReadJSON reads a frame into a value.
func (c *Conn) ReadJSON(v any) error {
	b, err := c.ReadFrame()
	if err != nil {
		return err
	}
	return decode(b, v)
}

func writeFrame(w io.Writer, b []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b))), b...))
	return err
}

// readFrame reads a frame of at most most bytes. It allocates as bytes arrive, not as the frame says.
func readFrame(r io.Reader, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > int64(most) {
		return nil, fmt.Errorf("a frame of %d bytes is longer than %d: %w", n, most, ErrPeer)
	}
	b, err := io.ReadAll(io.LimitReader(r, n))
	if err == nil && int64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

func decode(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	return nil
}

// Pipe copies bytes between two connections in both directions until both have ended or one fails, and closes them. It
// returns the numbers of bytes that it wrote to a and to b.
func Pipe(a, b net.Conn) (toA, toB int64) {
	var done sync.WaitGroup
	way := func(to, from net.Conn, n *int64) {
		var err error
		if *n, err = io.Copy(plainWriter{to}, plainReader{from}); err == nil {
			err = closeWrite(to)
		}
		if err != nil {
			a.Close()
			b.Close()
		}
	}
	done.Go(func() { way(b, a, &toB) })
	way(a, b, &toA)
	done.Wait()
	a.Close()
	b.Close()
	return toA, toB
}

// plainWriter and plainReader hide methods that io.Copy would prefer: a connection over TLS has none that help.
type (
	plainWriter struct{ io.Writer }
	plainReader struct{ io.Reader }
)

// closeWrite tells the other end that no more bytes follow.
func closeWrite(c net.Conn) error {
	if tunnel, ok := c.(*Conn); ok {
		c = tunnel.Conn
	}
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// withDeadline runs fn, which uses the connection, with a limit of time for all of it.
func withDeadline(c net.Conn, limit time.Duration, fn func() error) error {
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}
