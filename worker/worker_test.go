package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/worker/shards"
	"github.com/ingotml/ingot/worker/tunnel"
)

const envRing = "INGOT_TEST_RING"

// The test's program is also the process of a rank.
func TestMain(m *testing.M) {
	text := os.Getenv(envRing)
	if text == "" {
		os.Exit(m.Run())
	}
	var r Ring
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		err = obey(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// obey does what lines of standard input say.
func obey(r Ring) error {
	ring, err := join(r)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case "sum":
			n, err := ring.sum()
			if err != nil {
				return err
			}
			fmt.Println(n)
		case "fail":
			return errors.New("as the test wants it")
		}
	}
	return nil
}

// fakeRing is connected as the engine's ring is: a rank listens, connects to the next one, and is connected to by the
// one before.
type fakeRing struct {
	Ring
	next, before net.Conn
}

func join(r Ring) (f fakeRing, err error) {
	f.Ring = r
	var hosts [][]string
	if err := json.Unmarshal(r.Hosts(), &hosts); err != nil {
		return f, err
	}
	l, err := net.Listen("tcp", hosts[r.Rank][0])
	if err != nil {
		return f, err
	}
	defer l.Close()
	if f.next, err = net.Dial("tcp", hosts[(r.Rank+1)%r.Size][0]); err != nil {
		return f, err
	}
	f.before, err = l.Accept()
	return f, err
}

// sum adds 10 to the power of the rank over all ranks: each sends on what it receives.
func (f fakeRing) sum() (sum int, err error) {
	one := 1
	for range f.Rank {
		one *= 10
	}
	for range f.Size {
		sum += one
		if _, err := fmt.Fprintf(f.next, "%8d", one); err != nil {
			return 0, err
		}
		var b [8]byte
		if _, err := io.ReadFull(f.before, b[:]); err != nil {
			return 0, err
		}
		if _, err := fmt.Sscan(string(b[:]), &one); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

type machine struct {
	address string
	log     *tail
}

// tail keeps a log.
type tail struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *tail) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.b, format+"\n", args...)
}

// has waits until the log has a text.
func (l *tail) has(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		l.mu.Lock()
		found := strings.Contains(l.b.String(), text)
		l.mu.Unlock()
		if found {
			return
		}
	}
	t.Errorf("the log does not have %q:\n%s", text, l.b.String())
}

func machineSelf(t testing.TB) tunnel.Self {
	t.Helper()
	token, err := tunnel.NewToken(strings.Repeat("t", tunnel.MinToken))
	if err != nil {
		t.Fatal(err)
	}
	return tunnel.Self{Token: token, Versions: tunnel.Versions{Program: "1", Engine: "2"}}
}

// start starts a worker with an empty store.
func start(t *testing.T) machine {
	t.Helper()
	own, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder, err := shards.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := machine{l.Addr().String(), new(tail)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- Serve(ctx, l, ServeOptions{
			Self: machineSelf(t), Folder: folder, About: About{Host: "a", Memory: 5}, Log: m.log.printf,
			Command: func(r Rank) *child.Cmd {
				b, _ := json.Marshal(r.Ring)
				c := child.Command(context.Background(), append(os.Environ(), envRing+"="+string(b)), os.Args[0])
				c.Stderr = os.Stderr
				return c
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return m
}

// lead is rank 0 of a group.
type lead struct {
	*Group
	ring    fakeRing
	replies []*bufio.Scanner
}

func form(t *testing.T, s *store.Store, entry *store.Entry, workers ...machine) (*lead, error) {
	t.Helper()
	o := FormOptions{Self: machineSelf(t), Store: s, Name: "demo", Image: entry.Digest, Log: t.Logf}
	for _, m := range workers {
		o.Workers = append(o.Workers, m.address)
	}
	g, err := Form(t.Context(), o)
	if err != nil {
		return nil, err
	}
	l := &lead{Group: g}
	for _, c := range g.Conns {
		l.replies = append(l.replies, bufio.NewScanner(c))
	}
	l.ring, err = join(g.Ring)
	return l, err
}

// sum makes all ranks add.
func (l *lead) sum(t *testing.T) {
	t.Helper()
	for _, c := range l.Conns {
		if _, err := io.WriteString(c, "sum\n"); err != nil {
			t.Fatal(err)
		}
	}
	n, err := l.ring.sum()
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range l.replies {
		if !r.Scan() || r.Text() != fmt.Sprint(n) {
			t.Errorf("rank %d says %q, rank 0 %d: %v", i+1, r.Text(), n, r.Err())
		}
	}
	if want := strings.Repeat("1", len(l.Conns)+1); fmt.Sprint(n) != want {
		t.Errorf("the sum is %d, want %s", n, want)
	}
}

func (l *lead) end() {
	for _, c := range l.Conns {
		c.Close()
	}
	l.ring.next.Close()
	l.ring.before.Close()
	l.Close()
}

// Ranks on two and three machines compute over the tunnelled ring; a group ends with its process or its commands, and
// the next one forms.
func TestGroups(t *testing.T) {
	s, entry := converttest.PackAs(t, modeltest.Dir("demo"), "demo", recipe.Precision{})
	a, b := start(t), start(t)
	for _, workers := range [][]machine{{a}, {a, b}, {b}} {
		l, err := form(t, s, entry, workers...)
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Workers) != len(workers) || l.Workers[0].Memory != 5 {
			t.Errorf("workers %+v", l.Workers)
		}
		l.sum(t)
		l.sum(t)
		if n := int64(16 * len(l.replies)); l.Traffic.Sent() < n || l.Traffic.Received() < n {
			t.Errorf("counted %d bytes sent and %d received", l.Traffic.Sent(), l.Traffic.Received())
		}
		l.end()
		workers[0].log.has(t, "rank 1 of "+fmt.Sprint(len(workers)+1)+" of demo: ended")
	}
	a.log.has(t, "fetched")

	l, err := form(t, s, entry, a, b)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(l.Conns[0], "fail\n")
	if l.replies[0].Scan() {
		t.Errorf("a process that has ended says %q", l.replies[0].Text())
	}
	a.log.has(t, "rank 1 of 3 of demo: the rank's process: exit status 1")
	l.end()
	if l, err = form(t, s, entry, a, b); err != nil {
		t.Fatal(err)
	}
	l.sum(t)
	l.end()
}

// A worker that is not there, or has another version, is named.
func TestFormFails(t *testing.T) {
	s, entry := converttest.PackAs(t, modeltest.Dir("demo"), "demo", recipe.Precision{})
	a := start(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	_, err = form(t, s, entry, a, machine{address: closed.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "rank 2 on "+closed.Addr().String()) {
		t.Errorf("a worker that is not there: %v", err)
	}
	old := machineSelf(t)
	old.Versions.Program = "0"
	_, err = Form(t.Context(), FormOptions{Self: old, Store: s, Image: entry.Digest, Workers: []string{a.address}})
	if !errors.Is(err, tunnel.ErrVersions) || !strings.Contains(err.Error(), a.address) {
		t.Errorf("an old program: %v", err)
	}
	if _, err := Ask(t.Context(), old, a.address); !errors.Is(err, tunnel.ErrVersions) {
		t.Errorf("an old program asks: %v", err)
	}
	if about, err := Ask(t.Context(), machineSelf(t), a.address); err != nil || about.Host != "a" {
		t.Errorf("%+v, %v", about, err)
	}
}

// Requests that make no sense are refused and logged.
func TestRefusedRanks(t *testing.T) {
	a := start(t)
	_, entry := converttest.PackAs(t, modeltest.Dir("demo"), "demo", recipe.Precision{})
	good := rankDetail{Group: strings.Repeat("a", 32), Rank: 1, Size: 2, Image: entry.Digest}
	change := func(f func(d *rankDetail)) json.RawMessage {
		d := good
		f(&d)
		return detail(d)
	}
	for _, c := range []struct {
		purpose string
		detail  json.RawMessage
		want    string
	}{
		{purposeRank, change(func(d *rankDetail) { d.Group = "../x" }), "the group has no name"},
		{purposeRank, change(func(d *rankDetail) { d.Rank = 2 }), "rank 2 of 2"},
		{purposeRank, change(func(d *rankDetail) { d.Rank = 0 }), "rank 0 of 2"},
		{purposeRank, change(func(d *rankDetail) { d.Size, d.Next = limits.Ranks+1, "a:1" }), "at most"},
		{purposeRank, change(func(d *rankDetail) { d.Next = "a:1" }), "the ring of the group is not closed"},
		{purposeRank, change(func(d *rankDetail) { d.Image = "sha256:x" }), "digest is invalid"},
		{purposeRank, change(func(d *rankDetail) { d.Stages = shard.Stages{1, 2, 3} }), "layers for 3 ranks of 2"},
		{purposeRank, json.RawMessage(`{"rank":"one"}`), "the detail of a rank"},
		{purposeRing, detail(groupDetail{good.Group}), "there is no such group"},
		{purposeStore, json.RawMessage(`7`), `the detail of "store"`},
		{"format", nil, "the detail of"},
	} {
		_, err := tunnel.Dial(t.Context(), a.address, machineSelf(t), tunnel.Request{Purpose: c.purpose, Detail: c.detail})
		if !errors.Is(err, tunnel.ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.purpose, c.detail, err, c.want)
		}
		a.log.has(t, c.want)
	}
	// A connection that a group has, or that its rank does not have.
	rank, err := tunnel.Dial(t.Context(), a.address, machineSelf(t), tunnel.Request{Purpose: purposeRank,
		Detail: detail(good)})
	if err != nil {
		t.Fatal(err)
	}
	defer rank.Close()
	ask := func(purpose string) error {
		r := tunnel.Request{Purpose: purpose, Detail: detail(groupDetail{good.Group})}
		c, err := tunnel.Dial(t.Context(), a.address, machineSelf(t), r)
		if err == nil {
			t.Cleanup(func() { c.Close() })
		}
		return err
	}
	if err := ask(purposeBack); err != nil {
		t.Error(err)
	}
	for purpose, want := range map[string]string{purposeBack: "already", "other": `no connection "other"`} {
		if err := ask(purpose); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", purpose, err, want)
		}
	}
	_, err = tunnel.Dial(t.Context(), a.address, machineSelf(t), tunnel.Request{Purpose: purposeRank,
		Detail: detail(good)})
	if err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("the same rank again: %v", err)
	}
	rank.WriteFrame([]byte(`{"start":"now"}`)) // a command that is not one
	a.log.has(t, tunnel.ErrPeer.Error())
}
