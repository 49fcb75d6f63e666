package worker

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/ingotml/ingot/worker/shards"
	"github.com/ingotml/ingot/worker/tunnel"
)

// leader is a machine with the token that asks for connections in any order and sends anything over them.
type leader struct {
	*runtest.Choices
	address string
	self    tunnel.Self
	open    []*tunnel.Conn
}

func (l *leader) detail() json.RawMessage {
	group := strings.Repeat(l.Pick("a", "b"), 32)
	if l.Yes(3) {
		return json.RawMessage(l.Pick(`7`, `null`, `{}`, `{"group":7}`, `{"group":"../x"}`, `[]`, `{"rank":1,"size":2}`))
	}
	d := rankDetail{Group: group, Rank: 1 + l.N(2), Size: 2 + l.N(2), Image: storetest.SomeDigest, Name: l.Pick("m",
		"\x1b[31m")}
	if d.Rank < d.Size-1 {
		d.Next = l.Pick("127.0.0.1:1", "", "x", l.address)
	}
	return detail(d)
}

// connect asks for a connection; it may be refused.
func (l *leader) connect(ctx context.Context) {
	purpose := l.Pick(purposeRank, purposeStore, purposeRing, purposeBack, purposeAbout, "", "other")
	c, err := tunnel.Dial(ctx, l.address, l.self, tunnel.Request{Purpose: purpose, Detail: l.detail()})
	if err == nil {
		l.open = append(l.open, c)
	}
}

// send sends something over one of the connections.
func (l *leader) send() {
	c := l.open[l.N(len(l.open))]
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	switch l.N(5) {
	case 0:
		_ = c.WriteJSON(order{Start: l.Yes(2)})
	case 1:
		_ = c.WriteFrame([]byte(l.Pick("null", "7", "{", `{"start":"yes"}`, "")))
	case 2: // what a store answers
		_, _ = c.Write([]byte("HTTP/1.1 " + l.Pick("200 OK", "404 Not Found", "206 Partial Content", "x") +
			"\r\nContent-Length: " + l.Pick("0", "5", "-1", "99999999999") + "\r\n\r\n" + l.Pick("", "{}", "12345")))
	case 3:
		_, _ = c.Write(l.Bytes())
	default:
		c.Close()
	}
}

// FuzzServe: whatever machines with the token ask for and send, a worker goes on, and has no group when their
// connections have ended.
func FuzzServe(f *testing.F) {
	for i := range 16 {
		seed := make([]byte, 40)
		for j := range seed {
			seed[j] = byte(i*31 + j*j*3 + i*j*7)
		}
		f.Add(seed)
	}
	own, err := store.Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	folder, err := shards.Open(own)
	if err != nil {
		f.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	self := machineSelf(f)
	s := &server{groups: map[string]*group{}, ServeOptions: ServeOptions{
		Self: self, Folder: folder, Log: func(string, ...any) {},
		Command: func(Rank) *child.Cmd { return child.Command(context.Background(), nil, "/bin/false") },
	}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tunnel.Serve(ctx, listener, self, s.Log, s.handle) }()
	f.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.Error(err)
		}
	})
	address := listener.Addr().String()
	f.Fuzz(func(t *testing.T, choices []byte) {
		l := &leader{Choices: runtest.NewChoices(choices), address: address, self: self}
		defer func() {
			for _, c := range l.open {
				c.Close()
			}
		}()
		for range 8 {
			if len(l.open) == 0 || l.Yes(3) {
				l.connect(t.Context())
			} else {
				l.send()
			}
		}
		for _, c := range l.open {
			c.Close()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := Ask(ctx, self, address); err != nil {
			t.Fatalf("the worker does not answer any more: %v", err)
		}
		for s.hasGroups() {
			if ctx.Err() != nil {
				t.Fatal("a group remains after its connections have ended")
			}
			time.Sleep(time.Millisecond)
		}
	})
}

func (s *server) hasGroups() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.groups) > 0
}

// A rank that is told to start before it is ready ends. It would not notice that its rank 0 has gone.
func TestStartTooEarly(t *testing.T) {
	a := start(t)
	c, err := tunnel.Dial(t.Context(), a.address, machineSelf(t), tunnel.Request{Purpose: purposeRank, Detail: detail(
		rankDetail{Group: strings.Repeat("a", 32), Rank: 1, Size: 2, Image: storetest.SomeDigest})})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.WriteJSON(order{Start: true}); err != nil {
		t.Fatal(err)
	}
	const want = "before it is ready"
	var r report
	for r.Failed == "" {
		if err := c.ReadJSON(&r); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(r.Failed, want) {
		t.Errorf("the rank failed with %q, want %q", r.Failed, want)
	}
	a.log.has(t, want)
}
