package registry

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
)

// Hosts is a list of registries that an operator names: host, which stands for all of its ports, or host:port.
type Hosts []string

// ParseHosts reads a list of registries, separated by commas.
func ParseHosts(s string) (Hosts, error) {
	var list Hosts
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		n, err := manifest.ParseName(item + "/name")
		if err != nil || n.Host != item {
			return nil, fmt.Errorf("%q is no registry: give host[:port], such as registry.example.com or 10.0.0.5:5000",
				clip(item))
		}
		list = append(list, hostKey(item))
	}
	return list, nil
}

// Has reports whether the list names a host that is spelled host[:port].
func (l Hosts) Has(host string) bool {
	host = hostKey(host)
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
