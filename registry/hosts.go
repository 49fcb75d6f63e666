package registry

import "strings"

// hostRule says how a registry differs from the specification.
type hostRule struct {
	host       string // a name, or a suffix that starts with a dot
	monolithic bool   // blobs go up whole, in one PUT
	reason     string // with its source
}

// hostRules are registries that take chunked uploads badly. reference: packaging facts of the project, section 1.3.
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
