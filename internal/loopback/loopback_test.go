package loopback

import (
	"encoding/json"
	"net"
	"runtime"
	"testing"
)

// A reserved port refuses connections, takes the listener that it is for, and is nobody else's.
func TestReserve(t *testing.T) {
	p, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if c, err := net.Dial("tcp4", p.Addr()); err == nil {
		c.Close()
		t.Error("a reserved port accepts connections")
	}
	other, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if other.Number == p.Number {
		t.Error("a port is reserved twice")
	}
	if runtime.GOOS == "linux" {
		// The port is the only one that is asked for here, so the local end of the connection must refuse it.
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p.Number}}
		l, err := net.Listen("tcp4", Any)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if c, err := from.Dial("tcp4", l.Addr().String()); err == nil {
			c.Close()
			t.Error("a connection begins at a reserved port")
		}
	}
	l, err := net.Listen("tcp4", p.Addr()) // sets SO_REUSEADDR, as the engine does
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	c, err := net.Dial("tcp4", p.Addr())
	if err != nil {
		t.Errorf("the listener does not outlive the reservation: %v", err)
	} else {
		c.Close()
	}
	l.Close()
}

func TestReserveAll(t *testing.T) {
	all, err := ReserveAll(3)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	var hosts [][]string
	if err := json.Unmarshal(all.Hosts(), &hosts); err != nil || len(hosts) != 3 {
		t.Fatalf("%s, %v", all.Hosts(), err)
	}
	for i, p := range all {
		if len(hosts[i]) != 1 || hosts[i][0] != p.Addr() {
			t.Errorf("hosts of rank %d: %q, want %q", i, hosts[i], p.Addr())
		}
		if i > 0 && p.Number == all[0].Number {
			t.Errorf("rank %d has rank 0's port", i)
		}
	}
}
