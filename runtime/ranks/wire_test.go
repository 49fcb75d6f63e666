package ranks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
)

// every has a command of each kind.
var every = []command{
	&forward{Parts: []part{
		{Seq: 3, At: 70_000, Tokens: []int32{0, 151_000, 7}, All: true, Text: 9, Shift: -400,
			Grid: [3][]int32{{1, 2, 3}, {-1, 0, 1}, {5, 5, 5}}, Vectors: []vectors{{1, 2, 4096, 12}}},
		{Seq: 1 << 40, Tokens: []int32{1}},
	}, Head: []int{0, 3}},
	&begin{1}, &commit{1, 4}, &freeSequence{9}, &forget{}, &clear_{},
	&sessionBegin{2, 3, "alice", []prefix.Key{4, prefix.Picture(1 << 62)}, 1}, &sessionContinue{2, []prefix.Key{5}},
	&sessionSnapshot{2, true}, &sessionStore{2, []prefix.Key{6}}, &sessionLeave{2}, &evict{8},
	&keepHidden{1, 2, 3, 4, true}, &propose{[]text{{1, 2, []int32{-1, 3}}}, []int{4}}, &catchUp{[]text{{4, 0, nil}}},
	&finishRound{3, 2}, &freeText{7}, &check{64}, &head{[]int{2, 0}},
}

// Commands are decoded as they were encoded, and every kind is among them.
func TestCommands(t *testing.T) {
	var b []byte
	for i, c := range every {
		if int(c.op()) != i+1 {
			t.Errorf("command %d has the code %d", i+1, c.op())
		}
		b = encode(b, c)
	}
	if newCommand(byte(len(every)+1)) != nil {
		t.Error("the test lacks a command")
	}
	for _, want := range every {
		var c command
		var err error
		if c, b, err = decode(b); err != nil || !reflect.DeepEqual(c, want) {
			t.Fatalf("%+v, %v; want %+v", c, err, want)
		}
	}
	if len(b) > 0 {
		t.Errorf("%d bytes are left", len(b))
	}
}

// Any bytes are commands that encode to commands with the same meaning, or an error, and take no more memory than a
// multiple of their length.
func FuzzCommands(f *testing.F) {
	for _, c := range every {
		f.Add(encode(nil, c))
	}
	f.Add([]byte{opForward, 255, 255, 255, 255, 15})
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			c, rest, err := decode(b)
			if err != nil {
				return
			}
			again, left, err := decode(encode(nil, c))
			if err != nil || len(left) > 0 || !reflect.DeepEqual(c, again) {
				t.Fatalf("%+v is decoded as %+v, %v", c, again, err)
			}
			if len(rest) >= len(b) {
				t.Fatal("a command of no bytes")
			}
			b = rest
		}
	})
}

func TestBadCommands(t *testing.T) {
	for _, b := range [][]byte{
		{0}, {200}, {opCommit}, {opCommit, 1}, {opSessionSnapshot, 1, 2}, {opForward, 200, 1}, {opForward, 1, 1},
		encode(nil, &sessionBegin{1, 2, "", []prefix.Key{1, 2}, 2})[:5],
	} {
		if c, _, err := decode(b); err == nil {
			t.Errorf("%v is %+v", b, c)
		}
	}
}

func TestBadFrames(t *testing.T) {
	frame := func(n uint32, rest ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, n), rest...) }
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"too long":     {frame(limits.ControlFrame+1, frameCommands), "at most 67108864"},
		"empty":        {frame(0, frameCommands), "0 bytes"},
		"a head alone": {frame(9), io.ErrUnexpectedEOF.Error()},
		"cut":          {frame(9, frameCommands, 1, 2), io.ErrUnexpectedEOF.Error()},
		"long and cut": {frame(limits.ControlFrame, frameCommands, 1, 2), io.ErrUnexpectedEOF.Error()},
		"nothing":      {nil, io.EOF.Error()},
	} {
		if _, _, err := readFrame(bytes.NewReader(c.b)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	a, b := net.Pipe()
	defer a.Close()
	l := newLink(b, time.Hour, time.Second)
	defer l.close()
	if err := l.write(frameCommands, make([]byte, limits.ControlFrame)); err == nil {
		t.Error("a frame beyond the limit was sent")
	}
}

// A link reads frames of all lengths, skips pings, and notices that the other end is silent or gone.
func TestLink(t *testing.T) {
	a, b := net.Pipe()
	from, to := newLink(a, time.Millisecond, time.Second), newLink(b, time.Millisecond, time.Second)
	long := bytes.Repeat([]byte("ranks"), 500_000)
	go func() {
		_ = from.write(frameCommands, nil)
		_ = from.write(frameFailed, long)
	}()
	if kind, content, err := to.read(); kind != frameCommands || len(content) != 0 || err != nil {
		t.Fatal(kind, content, err)
	}
	if kind, content, err := to.read(); kind != frameFailed || !bytes.Equal(content, long) || err != nil {
		t.Fatal(kind, len(content), err)
	}
	from.close()
	if _, _, err := to.read(); !errors.Is(err, io.EOF) {
		t.Errorf("the end of a closed link is %v", err)
	}
	to.close()
	a, b = net.Pipe()
	defer a.Close()
	silent := newLink(b, time.Hour, 20*time.Millisecond)
	defer silent.close()
	_, _, err := silent.read()
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
		t.Errorf("silence is %v", err)
	}
	gone := silent.gone("it", err)
	if !errors.Is(gone, runtime.ErrSilent) || gone.Error() != "it has not answered for 20ms" {
		t.Errorf("silence is reported as %v", gone)
	}
	if silent.write(framePing, nil) == nil {
		t.Error("a write to an end that does not read succeeded")
	}
}
