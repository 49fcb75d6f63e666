package address

import (
	"net/netip"
	"strings"
	"testing"
)

func TestClassOf(t *testing.T) {
	for addr, want := range map[string]Class{
		"8.8.8.8": Public, "2606:4700::1111": Public, "172.32.0.1": Public, "100.128.0.1": Public,
		"10.1.2.3": Private, "172.16.0.1": Private, "192.168.1.1": Private,
		"fd00:ec2::254": Private,
		"100.64.0.1":    Private, "100.100.100.200": Private, "fec0::1": Private,
		"192.0.0.192": Private,
		"127.0.0.1":   Loopback, "127.255.0.9": Loopback, "::1": Loopback,
		"169.254.169.254": linkLocalAddress, "fe80::1": linkLocalAddress, "fe80::1%eth0": linkLocalAddress,
		"168.63.129.16": linkLocalAddress,
		"0.0.0.0":       Reserved, "::": Reserved, "0.1.2.3": Reserved, "224.0.0.1": Reserved,
		"ff02::1":         Reserved,
		"255.255.255.255": Reserved, "240.0.0.1": Reserved,
		// Addresses that embed IPv4 addresses: mapped, NAT64, 6to4, Teredo, IPv4-compatible, IPv4-translated.
		"::ffff:169.254.169.254": linkLocalAddress, "::ffff:10.0.0.1": Private, "::ffff:8.8.8.8": Public,
		"64:ff9b::a9fe:a9fe": linkLocalAddress, "64:ff9b::808:808": Public, "64:ff9b:1::808:808": Private,
		"2002:7f00:1::1": Loopback, "2002:808:808::1": Public, "2001:0:1::80ff:fffe": Loopback,
		"::10.0.0.1": Private, "::ffff:0:7f00:1": Loopback,
	} {
		if got := ClassOf(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is %s, want %s", addr, got, want)
		}
	}
	if got := ClassOf(netip.Addr{}); got != Reserved {
		t.Errorf("no address is %s", got)
	}
}

func TestMayName(t *testing.T) {
	all := []Class{Public, Private, Loopback, linkLocalAddress, Reserved}
	may := map[Class]string{
		Public: "public", Private: "public private", Loopback: "public private loopback",
		linkLocalAddress: "public private link-local", Reserved: "public private reserved",
		0:                "public private loopback link-local reserved",
		Private | Public: "public", Loopback | linkLocalAddress: "public private",
	}
	for by, want := range may {
		var got []string
		for _, to := range all {
			if by.MayName(to) {
				got = append(got, to.String())
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%b may name %q, want %q", by, got, want)
		}
	}
}
