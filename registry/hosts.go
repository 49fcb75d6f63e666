package registry

import "strings"

// hostRule describes how a registry deviates from the specification.
type hostRule struct {
	host       string // a host name, or a suffix that starts with a dot
	monolithic bool   // each blob must be uploaded in a single PUT
	reason     string // what fails otherwise
}

// hostRules lists registries whose support for chunked uploads is missing or broken.
var hostRules = []hostRule{
	{"ghcr.io", true, "answers 416 to chunks of more than 4 MiB"},
	{".pkg.dev", true, "has no chunked uploads"},
	{"gcr.io", true, "has no chunked uploads"},
	{".gcr.io", true, "has no chunked uploads"},
	{".amazonaws.com", true, "answers 201 to the first chunk"},
}

func ruleOf(host string) hostRule {
	name, _, _ := strings.Cut(strings.ToLower(host), ":")
	for _, r := range hostRules {
		if name == r.host || strings.HasPrefix(r.host, ".") && strings.HasSuffix(name, r.host) {
			return r
		}
	}
	return hostRule{host: host}
}
