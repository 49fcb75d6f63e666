// Package loopback reserves ports of 127.0.0.1 for listeners that other code opens later.
//
// The engine's ring opens its own listener, some time after its address is written down. A port that is merely free
// when it is chosen can be gone by then: the kernel gives it to the next outgoing connection. On Linux a reserved port
// stays bound to a socket that does not listen. The kernel assigns such a port to nobody, and a listener that sets
// SO_REUSEADDR, as the engine does, can still bind it. Elsewhere the port is only free when it is chosen.
package loopback

import (
	"encoding/json"
	"io"
	"net"
	"strconv"
)

// Any is the address to listen on for a port that the kernel chooses.
const Any = "127.0.0.1:0"

// Addr returns the address of a port.
func Addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Hosts returns the content of the file that MLX_HOSTFILE names, for a ring of a rank at each address.
func Hosts(addresses ...string) []byte {
	ranks := make([][]string, len(addresses)) // a rank may have several addresses
	for i, a := range addresses {
		ranks[i] = []string{a}
	}
	b, err := json.Marshal(ranks)
	if err != nil {
		panic(err) // strings are valid JSON
	}
	return b
}

// Port is a reserved port.
type Port struct {
	Number int
	holder io.Closer
}

// Reserve reserves a free port.
func Reserve() (*Port, error) {
	n, holder, err := reserve()
	if err != nil {
		return nil, err
	}
	return &Port{n, holder}, nil
}

// Addr returns the port's address.
func (p *Port) Addr() string { return Addr(p.Number) }

// Close ends the reservation. It does not affect a listener.
func (p *Port) Close() error { return p.holder.Close() }

// Ports are reserved ports that differ.
type Ports []*Port

// ReserveAll reserves n ports.
func ReserveAll(n int) (Ports, error) {
	all := make(Ports, 0, n)
	for range n {
		p, err := Reserve()
		if err != nil {
			all.Close()
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Hosts is [Hosts] for a rank on each port.
func (p Ports) Hosts() []byte {
	addresses := make([]string, len(p))
	for i, port := range p {
		addresses[i] = port.Addr()
	}
	return Hosts(addresses...)
}

// Close ends all reservations.
func (p Ports) Close() {
	for _, port := range p {
		port.Close()
	}
}
