package conns_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/conns"
	"github.com/ingotml/ingot/internal/limits/conns/connstest"
)

// table accepts connections by name.
type table struct {
	*conns.Listener
	at     *connstest.Listener
	conns  map[string]*conns.Conn
	order  []string
	closed []net.Addr
	fewer  []int
}

func limit(o conns.Options) *table {
	t := &table{at: connstest.Listen(), conns: map[string]*conns.Conn{}}
	o.Closed = func(from net.Addr) { t.closed = append(t.closed, from) }
	o.Fewer = func(most int) { t.fewer = append(t.fewer, most) }
	t.Listener = conns.Limit(t.at, o)
	return t
}

// open accepts a connection from an address. It is nil if the listener closes it at once.
func (l *table) open(t *testing.T, name, from string) *conns.Conn {
	t.Helper()
	before := len(l.closed)
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			accepted <- c
		}
		close(accepted)
	}()
	l.at.Dial(t, from)
	if open, held, most := l.Counts(); held == most && open == most { // Accept waits for another one
		l.Close()
		<-accepted
		if len(l.closed) != before+1 {
			t.Errorf("%s: %d connections were closed", name, len(l.closed)-before)
		}
		return nil
	}
	c := (<-accepted).(*conns.Conn)
	look(c)
	l.conns[name] = c
	l.order = append(l.order, name)
	return c
}

// left names the connections that are open, in the order of their coming.
func (l *table) left() string {
	var names []string
	for _, name := range l.order {
		if isOpen(l.conns[name]) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

var longAgo = time.Unix(1, 0)

func isOpen(c *conns.Conn) bool {
	end := c.Use(conns.Waiting)
	defer end()
	return !strings.Contains(look(c).Error(), "closed")
}

// look reads from a connection, as its owner does, and does not wait.
func look(c *conns.Conn) error {
	_ = c.SetReadDeadline(longAgo)
	_, err := c.Read(make([]byte, 1))
	return err
}

// TestUnread checks that a connection that its owner has not read from is not closed for those that it has, and that
// few of them are accepted.
func TestUnread(t *testing.T) {
	l := limit(conns.Options{Most: 1000})
	accepted := make(chan net.Conn, 1000)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	const most = 64
	for range most {
		l.at.Dial(t, "192.0.2.1")
	}
	var more sync.WaitGroup
	more.Go(func() { l.at.Dial(t, "192.0.2.1") })
	first := (<-accepted).(*conns.Conn)
	for range most - 1 {
		<-accepted
	}
	if open, _, _ := l.Counts(); open != most {
		t.Errorf("%d are open", open)
	}
	look(first)
	more.Wait()
	<-accepted
	l.Close()
	if _, ok := <-accepted; ok {
		t.Error("another one")
	}

	l = limit(conns.Options{Most: 32})
	go l.at.Dial(t, "192.0.2.1")
	unread, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		l.open(t, fmt.Sprint(i), "192.0.2.1")
	}
	if n := len(strings.Fields(l.left())); n != 31 || !isOpen(unread.(*conns.Conn)) {
		t.Errorf("left are %s", l.left())
	}
}

// TestVictims checks which connection is closed for a new one. Steps are NAME=ADDRESS or what to do with a connection.
func TestVictims(t *testing.T) {
	do := map[string]func(*conns.Conn){
		"use":   func(c *conns.Conn) { c.Use(conns.Waiting)() },
		"begin": func(c *conns.Conn) { c.Use(conns.Begun) },
		"know":  func(c *conns.Conn) { c.Know() },
		"hold":  func(c *conns.Conn) { c.Hold() },
		"serve": func(c *conns.Conn) { end, _ := c.Hold(); end(); end() },
	}
	short := map[string]string{"a": "192.0.2.1", "b": "192.0.2.2"}
	for name, c := range map[string]struct{ steps, want string }{
		"the longest idle":           {"1=a 2=a 3=a 4=a", "2 3 4"},
		"used again":                 {"1=a 2=a use=1 3=a 4=a", "1 3 4"},
		"after a request":            {"1=a 2=a serve=1 3=a 4=a", "1 3 4"},
		"of the address with most":   {"1=b 2=a 3=a 4=b", "1 3 4"},
		"for any other":              {"1=b 2=a 3=a 4=a", "1 3 4"},
		"idle before begun":          {"1=a 2=a begin=1 begin=2 3=b 4=a", "1 2 4"},
		"begun before known":         {"1=a 2=a know=1 know=2 3=b begin=3 4=b", "1 2 4"},
		"known before held":          {"1=a 2=a hold=1 hold=2 3=b know=3 4=a", "1 2 4"},
		"the longest known":          {"1=a 2=a 3=a know=1 know=2 know=3 use=1 4=a", "1 3 4"},
		"the new one, if all are":    {"1=a 2=a 3=a hold=1 hold=2 hold=3 4=a", "1 2 3"},
		"one network of IPv6":        {"1=b 2=2001:db8::1 3=2001:db8::ffff:2 4=b", "1 3 4"},
		"two networks of IPv6":       {"1=2001:db8::1 2=b 3=2001:db8:0:1::2 4=a", "2 3 4"},
		"IPv4 within IPv6":           {"1=b 2=::ffff:192.0.2.1 3=a 4=b", "1 3 4"},
		"all addresses of a machine": {"1=b 2=127.0.0.9 3=::1 4=b", "1 3 4"},
	} {
		t.Run(name, func(t *testing.T) {
			l := limit(conns.Options{Most: 3})
			for _, step := range strings.Fields(c.steps) {
				left, right, _ := strings.Cut(step, "=")
				if f := do[left]; f != nil {
					f(l.conns[right])
				} else {
					l.open(t, left, cmp.Or(short[right], right))
				}
			}
			if got := l.left(); got != c.want {
				t.Errorf("open are %s, want %s", got, c.want)
			}
			if len(l.closed) != 1 {
				t.Errorf("%d were reported", len(l.closed))
			}
		})
	}
}

// TestRoom checks that connections of higher levels leave places to new ones, however many they are.
func TestRoom(t *testing.T) {
	for name, c := range map[string]struct {
		rise func(*conns.Conn)
		o    conns.Options
		want int // new connections that stay
	}{
		"begun":               {func(c *conns.Conn) { c.Use(conns.Begun) }, conns.Options{Most: 32}, 8},
		"begun of an address": {func(c *conns.Conn) { c.Use(conns.Begun) }, conns.Options{Most: 99, PerAddress: 32}, 8},
		"known":               {func(c *conns.Conn) { c.Know() }, conns.Options{Most: 32}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := limit(c.o)
			for i := range 32 {
				c.rise(l.open(t, fmt.Sprint("old", i), "192.0.2.1"))
			}
			for i := range 100 {
				l.open(t, fmt.Sprint("new", i), "192.0.2.1")
			}
			old := 32 - c.want - 1 // the last new one comes when one too many is Waiting
			left := strings.Fields(l.left())
			if n := len(left); n != 32 || left[old-1] != "old31" || left[old] != fmt.Sprint("new", 100-c.want-1) {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// TestRandom checks that each connection may be the one, but none of a higher level.
func TestRandom(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		l := limit(conns.Options{Most: 4, Random: true})
		for i := range 4 {
			l.open(t, fmt.Sprint(i), "192.0.2.1")
		}
		l.conns["0"].Use(conns.Begun)
		l.open(t, "4", "192.0.2.1")
		seen[l.left()] = true
	}
	if len(seen) != 3 || !seen["0 2 3 4"] || !seen["0 1 3 4"] || !seen["0 1 2 4"] {
		t.Errorf("left are %v", seen)
	}
}

// TestPerAddress checks that an address loses its own connections, but not the Known ones.
func TestPerAddress(t *testing.T) {
	const a, b = "192.0.2.1", "192.0.2.2"
	l := limit(conns.Options{Most: 100, PerAddress: 2})
	l.open(t, "other", b)
	l.open(t, "known", a).Know()
	l.open(t, "1", a)
	l.open(t, "2", a)
	l.open(t, "3", a)
	if got := l.left(); got != "other known 2 3" {
		t.Errorf("open are %s", got)
	}
	hold := func(name string, want bool) {
		t.Helper()
		if _, ok := l.conns[name].Hold(); ok != want {
			t.Errorf("%s is held: %v", name, ok)
		}
	}
	hold("2", true)
	hold("3", true)
	l.open(t, "4", a)
	hold("4", false)
	hold("known", true)
	hold("other", true)
	l.conns["2"].Close()
	hold("4", true)
}

// TestReserve checks that requests leave connections for others, and that a closed connection is not held.
func TestReserve(t *testing.T) {
	l := limit(conns.Options{Most: 4, Reserve: 2})
	for i := range 4 {
		l.open(t, fmt.Sprint(i), "192.0.2.1")
	}
	for i, want := range []bool{true, true, false} {
		if _, ok := l.conns[fmt.Sprint(i)].Hold(); ok != want {
			t.Errorf("%d is held: %v", i, ok)
		}
	}
	if _, ok := l.conns["1"].Hold(); !ok {
		t.Error("a connection with a request has no second one")
	}
	l.open(t, "4", "192.0.2.1")
	l.conns["3"].Know()
	if _, ok := l.conns["3"].Hold(); !ok || l.left() != "0 1 3 4" {
		t.Errorf("open are %s", l.left())
	}
	if _, ok := l.conns["2"].Hold(); ok || l.conns["2"].Leave() {
		t.Error("a closed connection is held")
	}
}

// TestFiles checks that connections leave files to the process.
func TestFiles(t *testing.T) {
	l := limit(conns.Options{Most: 100, Reserve: 50})
	for i := range 64 {
		l.open(t, fmt.Sprint(i), "192.0.2.1")
	}
	counts := func(when string, open, held, most int) {
		t.Helper()
		if o, h, m := l.Counts(); o != open || h != held || m != most {
			t.Errorf("%s: %d are open, %d held, at most %d", when, o, h, m)
		}
	}
	counts("before", 64, 0, 100)
	failed := make(chan error)
	go func() { _, err := l.Accept(); failed <- err }()
	l.at.Fail(&net.OpError{Op: "accept", Err: syscall.EMFILE})
	l.at.Fail(errors.New("another"))
	if err := <-failed; err == nil || err.Error() != "another" {
		t.Errorf("error %v", err)
	}
	counts("without files", 56, 0, 56)
	if !slices.Equal(l.fewer, []int{56}) {
		t.Errorf("reported %v", l.fewer)
	}
	for _, c := range l.conns {
		if isOpen(c) {
			c.Hold()
		}
	}
	counts("with requests", 56, 28, 56)
	go func() { _, err := l.Accept(); failed <- err }()
	var err error
	for err == nil { // until only those with requests are left
		select {
		case l.at.Errors() <- syscall.EMFILE:
		case err = <-failed:
		}
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("error %v", err)
	}
	counts("without any files", 28, 28, 25)
	for _, c := range l.conns {
		c.Close()
	}
	for i := range 2000 {
		l.open(t, fmt.Sprint("new", i), "192.0.2.1")
	}
	counts("at last", 100, 0, 100)
}

// TestAny checks what holds after any steps: counts are right, and none is lost.
func TestAny(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l := limit(conns.Options{Most: 20, PerAddress: 8, Reserve: 4})
	var ends []func()
	for i := range 4000 {
		name := fmt.Sprint(i)
		c := l.open(t, name, fmt.Sprintf("192.0.2.%d", random.IntN(6)))
		switch random.IntN(6) {
		case 0:
			c.Know()
		case 1:
			ends = append(ends, c.Use(conns.Begun))
		case 2:
			if end, ok := c.Hold(); ok {
				ends = append(ends, end)
			}
		case 3:
			c.Close()
		}
		for len(ends) > 5 {
			ends[0]()
			ends = ends[1:]
		}
		if open, held, _ := l.Counts(); open > 20 || held > 18 || open < held {
			t.Fatalf("%d are open, %d held", open, held)
		}
	}
	for _, c := range l.conns {
		c.Close()
		c.Close()
	}
	if open, held, _ := l.Counts(); open != 0 || held != 0 {
		t.Errorf("%d are open, %d held", open, held)
	}
}

// TestOf checks that a connection is found beneath others, and that none needs no care.
func TestOf(t *testing.T) {
	l := limit(conns.Options{Most: 1})
	c := l.open(t, "1", "192.0.2.1")
	if conns.Of(c) != c || conns.Of(over{c}) != c || conns.Of(c.Conn) != nil {
		t.Error("not the connection")
	}
	var none *conns.Conn
	none.Know()
	none.Use(conns.Begun)()
	if end, ok := none.Hold(); !ok || !none.Leave() {
		t.Error("none is not held")
	} else {
		end()
	}
	if err := c.CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("half of a pipe: %v", err)
	}
}

type over struct{ net.Conn }

func (o over) NetConn() net.Conn { return o.Conn }
