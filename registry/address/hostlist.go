package address

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/redact"
)

// Hosts is an operator's list of registry hosts. An entry without a port matches all ports of the host.
type Hosts []string

// ParseHosts parses a comma-separated list of registry hosts.
func ParseHosts(s string) (Hosts, error) {
	var list Hosts
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		n, err := manifest.ParseName(item + "/name")
		if err != nil || n.Host != item {
			return nil, fmt.Errorf("%q is not a registry host: use host[:port], such as registry.example.com or 10.0.0.5:5000",
				redact.Clip(item))
		}
		list = append(list, HostKey(item))
	}
	return list, nil
}

// Has reports whether the list contains a host, written as host[:port].
func (l Hosts) Has(host string) bool {
	host = HostKey(host)
	if slices.Contains(l, host) {
		return true
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return false
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	return slices.Contains(l, name)
}

// HostKey returns one spelling of a host: in lower case, and docker.io for both names of Docker Hub.
func HostKey(host string) string {
	host = strings.ToLower(host)
	if host == "index.docker.io" {
		return "docker.io"
	}
	return host
}
