package address

import (
	"net"
	"net/netip"
	"strings"
)

// Class says from where an address can be reached. Its values are bits, so that it can also hold a set of
// classes.
type Class uint8

const (
	Public           Class = 1 << iota
	Private                // of an organization's network: RFC 1918, RFC 4193, RFC 6598
	Loopback               // of this machine
	linkLocalAddress       // of this network segment; clouds serve instance metadata and credentials there
	Reserved               // not a host: unspecified, multicast, reserved
)

func (c Class) String() string {
	switch c {
	case Public:
		return "public"
	case Private:
		return "private"
	case Loopback:
		return "loopback"
	case linkLocalAddress:
		return "link-local"
	}
	return "reserved"
}

// MayName reports whether hosts of all classes in c may direct a client to an address of class to, such as by a
// redirect: to must be at least as public as each of them. This prevents server-side request forgery (SSRF). Loopback
// and link-local addresses may not name each other. The empty set may name any address.
func (c Class) MayName(to Class) bool {
	switch to {
	case Public:
		return true
	case Private:
		return c&Public == 0
	}
	return c&^to == 0
}

// specialNetworks are networks that net/netip has no predicate for. The first match wins.
var specialNetworks = []struct {
	prefix netip.Prefix
	class  Class
}{
	{netip.MustParsePrefix("168.63.129.16/32"), linkLocalAddress}, // Azure's platform services for a virtual machine
	{netip.MustParsePrefix("0.0.0.0/8"), Reserved},
	{netip.MustParsePrefix("240.0.0.0/4"), Reserved},
	{netip.MustParsePrefix("100.64.0.0/10"), Private},
	{netip.MustParsePrefix("192.0.0.0/24"), Private},
	{netip.MustParsePrefix("198.18.0.0/15"), Private},
	{netip.MustParsePrefix("fec0::/10"), Private},
	{netip.MustParsePrefix("64:ff9b:1::/48"), Private}, // local-use NAT64 (RFC 8215)
}

// embeddingNetworks are networks whose addresses contain an IPv4 address, starting at byte at. Teredo stores it
// inverted.
var embeddingNetworks = []struct {
	prefix netip.Prefix
	at     int
	invert byte
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12, 0}, // NAT64
	{netip.MustParsePrefix("2002::/16"), 2, 0},     // 6to4
	{netip.MustParsePrefix("2001::/32"), 12, 0xff}, // Teredo
	{netip.MustParsePrefix("::/96"), 12, 0},        // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, 0},
}

// ClassOf returns the class of an address. An address that embeds an IPv4 address has the class of that.
func ClassOf(addr netip.Addr) Class {
	addr = addr.Unmap().WithZone("")
	switch {
	case !addr.IsValid(), addr.IsUnspecified(), addr.IsMulticast():
		return Reserved
	case addr.IsLoopback():
		return Loopback
	case addr.IsLinkLocalUnicast():
		return linkLocalAddress
	case addr.IsPrivate():
		return Private
	}
	for _, n := range specialNetworks {
		if n.prefix.Contains(addr) {
			return n.class
		}
	}
	for _, n := range embeddingNetworks {
		if n.prefix.Contains(addr) {
			b := addr.As16()
			var v4 [4]byte
			for i := range v4 {
				v4[i] = b[n.at+i] ^ n.invert
			}
			return ClassOf(netip.AddrFrom4(v4))
		}
	}
	return Public
}

// RemoteAddr returns the remote address of a connection. It is invalid if the connection has none, such as a pipe.
func RemoteAddr(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	return netip.AddrPort{}
}

// IsLoopback reports whether a host, with or without a port, is a loopback address or localhost. It does not resolve
// names.
func IsLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}
