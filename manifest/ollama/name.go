package ollama

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/manifest"
)

// Scheme is the prefix of names in an Ollama store.
const Scheme = "ollama://"

// Ollama's defaults for missing parts of a name.
const (
	DefaultHost      = "registry.ollama.ai"
	defaultNamespace = "library"
	defaultTag       = "latest"
)

// Name is the name of a model in Ollama: [host/][namespace/]model[:tag]. It has no digest.
type Name struct {
	Host, Namespace, Model, Tag string
}

// ParseName parses a name, with or without [Scheme], and adds Ollama's defaults (types/model/name.go).
// Errors match [manifest.ErrInvalidName].
func ParseName(s string) (Name, error) {
	n, reason := parseName(strings.TrimPrefix(s, Scheme))
	if reason != "" {
		return Name{}, fmt.Errorf("name %q: %s; a name in Ollama's store is %s[host/][namespace/]model[:tag]: %w",
			manifest.Clip(s), reason, Scheme, manifest.ErrInvalidName)
	}
	return n, nil
}

func parseName(s string) (n Name, reason string) {
	if strings.Contains(s, "@") {
		return n, "names in Ollama's store have no digest"
	}
	if colon := strings.LastIndexByte(s, ':'); colon > strings.LastIndexByte(s, '/') {
		s, n.Tag = s[:colon], s[colon+1:]
		if n.Tag == "" {
			return n, "the tag is empty"
		}
	}
	parts := strings.Split(s, "/")
	switch len(parts) {
	case 3:
		n.Host, n.Namespace, n.Model = parts[0], parts[1], parts[2]
	case 2:
		n.Namespace, n.Model = parts[0], parts[1]
	case 1:
		n.Model = parts[0]
	default:
		return n, "it has more components than host, namespace and model"
	}
	for i, p := range parts {
		if p == "" {
			return n, fmt.Sprintf("component %d is empty", i+1)
		}
	}
	n.Host, n.Namespace = cmp.Or(n.Host, DefaultHost), cmp.Or(n.Namespace, defaultNamespace)
	n.Tag = cmp.Or(n.Tag, defaultTag)
	for _, p := range []struct {
		what, part, also string
		most             int
	}{
		{"host", n.Host, ".:", 350},
		{"namespace", n.Namespace, "", 80},
		{"model", n.Model, ".", 80},
		{"tag", n.Tag, ".", 80},
	} {
		if reason := checkPart(p.what, p.part, p.also, p.most); reason != "" {
			return n, reason
		}
	}
	return n, ""
}

func checkPart(what, part, also string, most int) string {
	if len(part) > most {
		return fmt.Sprintf("the %s is longer than %d bytes", what, most)
	}
	for i := range len(part) {
		c := part[i]
		if !manifest.IsAlnum(c) && c != '_' && (i == 0 || c != '-' && strings.IndexByte(also, c) < 0) {
			return fmt.Sprintf("the %s %q contains %q, which Ollama does not allow there", what, part, rune(c))
		}
	}
	return ""
}

// String returns the name as Ollama shows it, without the default host and namespace.
func (n Name) String() string {
	s := n.Model + ":" + n.Tag
	if n.Namespace != defaultNamespace || n.Host != DefaultHost {
		s = n.Namespace + "/" + s
	}
	if n.Host != DefaultHost {
		s = n.Host + "/" + s
	}
	return Scheme + s
}

// Parts are the path components of the manifest, relative to the manifests folder.
func (n Name) Parts() []string { return []string{n.Host, n.Namespace, n.Model, n.Tag} }
