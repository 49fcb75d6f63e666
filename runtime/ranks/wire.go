package ranks

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/opencontainers/go-digest"
)

// A frame is a length of four bytes, big-endian, which counts what follows; a kind of one byte; and the content.
const (
	frameStart    byte = iota + 1 // a Start, as JSON; the first one of the leader
	frameReady                    // a Ready, as JSON; the first one of a follower, after it has loaded its part
	frameCommands                 // commands, see command.go
	frameChecked                  // a state, as JSON: a follower's reply to the command check
	frameFailed                   // a text: the sender has failed, and the group with it
	frameEnd                      // the leader ends the group in good order
	framePing                     // nothing; both ends send it all the time
)

// pingInterval is the time between the pings of each end. An end that hears nothing for runtime.Silence, or cannot
// write for so long, has lost the other one.
const pingInterval = 2 * time.Second

// Start says what a group runs.
type Start struct {
	Program string        `json:"program"` // version of the program
	Engine  string        `json:"engine"`  // version of MLX
	Rank    int           `json:"rank"`    // of the follower that receives it
	Size    int           `json:"size"`
	Name    string        `json:"name"`  // of the model
	Image   digest.Digest `json:"image"` // of its manifest
	Options Options       `json:"options"`
}

// Options are the options of loading that must be equal on all ranks.
type Options struct {
	Float32  bool           `json:"float32,omitempty"`
	KV       runtime.KVType `json:"kv,omitempty"`
	DraftOff bool           `json:"draft_off,omitempty"`
	FastMath bool           `json:"fast_math,omitempty"`
	// Stages are the layers of the ranks of a pipeline; nil: the ranks have parts of tensors.
	Stages []int `json:"stages,omitempty"`
}

// Load returns the options that a rank loads its part with.
func (o Options) Load() runtime.Options {
	return runtime.Options{
		Float32: o.Float32, KV: o.KV, Draft: runtime.DraftOptions{Off: o.DraftOff}, Stages: o.Stages,
	}
}

// Ready is what a rank reports when it has loaded its part.
type Ready struct {
	Host    string     `json:"host"`    // ranks with equal hosts share its memory
	Weights int64      `json:"weights"` // bytes
	Memory  mlx.Memory `json:"memory"`
}

// link is one end of a control connection. Its methods are safe for concurrent use, except for read.
type link struct {
	conn net.Conn
	mu   sync.Mutex // held while writing
	done chan struct{}
	once sync.Once

	silence time.Duration
	sent    atomic.Int64 // bytes
}

// newLink starts to send pings, until close.
func newLink(conn net.Conn, interval, silence time.Duration) *link {
	l := &link{conn: conn, done: make(chan struct{}), silence: silence}
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if l.write(framePing, nil) != nil {
					return // read fails too, or close was called
				}
			case <-l.done:
				return
			}
		}
	}()
	return l
}

func (l *link) close() {
	l.once.Do(func() { close(l.done) })
	_ = l.conn.Close()
}

// write sends a frame.
func (l *link) write(kind byte, content []byte) error {
	if len(content)+1 > limits.ControlFrame {
		return fmt.Errorf("a message to another rank has %d bytes, at most %d are allowed", len(content), limits.ControlFrame)
	}
	frame := make([]byte, 0, len(content)+5)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(content)+1))
	frame = append(append(frame, kind), content...)
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(l.silence))
	n, err := l.conn.Write(frame)
	l.sent.Add(int64(n))
	return err
}

func (l *link) writeJSON(kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return l.write(kind, b)
}

// read receives the next frame that is no ping.
func (l *link) read() (kind byte, content []byte, err error) {
	for {
		_ = l.conn.SetReadDeadline(time.Now().Add(l.silence))
		if kind, content, err = readFrame(l.conn); err != nil || kind != framePing {
			return kind, content, err
		}
	}
}

// readStep is how much of a frame is read at once, so that a frame takes no more memory than has arrived.
const readStep = 1 << 20

// readFrame reads a frame.
func readFrame(r io.Reader) (kind byte, content []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[:4]))
	if n < 1 || n > limits.ControlFrame {
		return 0, nil, fmt.Errorf("a message of %d bytes, at most %d are allowed", n, limits.ControlFrame)
	}
	for left := int(n) - 1; left > 0; {
		at := len(content)
		content = append(content, make([]byte, min(left, readStep))...)
		if _, err := io.ReadFull(r, content[at:]); err != nil {
			return 0, nil, err
		}
		left -= len(content) - at
	}
	return head[4], content, nil
}

// gone returns what err, a failure to read or write, says of the peer at the other end: it is silent or has ended. It
// returns nil for other failures.
func (l *link) gone(peer string, err error) error {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s %w for %v", peer, runtime.ErrSilent, l.silence)
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%s has ended", peer)
	}
	return nil
}
