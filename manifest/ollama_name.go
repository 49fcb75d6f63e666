package manifest

import (
	"cmp"
	"fmt"
	"strings"
)

// OllamaScheme is the prefix of names in an Ollama store.
const OllamaScheme = "ollama://"

// Ollama's defaults for missing parts of a name.
const (
	ollamaHost      = "registry.ollama.ai"
	ollamaNamespace = "library"
	ollamaTag       = "latest"
)

// OllamaName is the name of a model in Ollama: [host/][namespace/]model[:tag]. It has no digest.
type OllamaName struct {
	Host, Namespace, Model, Tag string
}

// ParseOllamaName parses a name, with or without [OllamaScheme], and adds Ollama's defaults (types/model/name.go).
// Errors match [ErrInvalidName].
func ParseOllamaName(s string) (OllamaName, error) {
	n, reason := parseOllamaName(strings.TrimPrefix(s, OllamaScheme))
	if reason != "" {
		return OllamaName{}, fmt.Errorf("name %q: %s; a name in Ollama's store is %s[host/][namespace/]model[:tag]: %w",
			clip(s), reason, OllamaScheme, ErrInvalidName)
	}
	return n, nil
}

func parseOllamaName(s string) (n OllamaName, reason string) {
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
	n.Host, n.Namespace = cmp.Or(n.Host, ollamaHost), cmp.Or(n.Namespace, ollamaNamespace)
	n.Tag = cmp.Or(n.Tag, ollamaTag)
	for _, p := range []struct {
		what, part, also string
		most             int
	}{
		{"host", n.Host, ".:", 350},
		{"namespace", n.Namespace, "", 80},
		{"model", n.Model, ".", 80},
		{"tag", n.Tag, ".", 80},
	} {
		if reason := checkOllamaPart(p.what, p.part, p.also, p.most); reason != "" {
			return n, reason
		}
	}
	return n, ""
}

func checkOllamaPart(what, part, also string, most int) string {
	if len(part) > most {
		return fmt.Sprintf("the %s is longer than %d bytes", what, most)
	}
	for i := range len(part) {
		c := part[i]
		if !isAlnum(c) && c != '_' && (i == 0 || c != '-' && strings.IndexByte(also, c) < 0) {
			return fmt.Sprintf("the %s %q contains %q, which Ollama does not allow there", what, part, rune(c))
		}
	}
	return ""
}

// String returns the name as Ollama shows it, without the default host and namespace.
func (n OllamaName) String() string {
	s := n.Model + ":" + n.Tag
	if n.Namespace != ollamaNamespace || n.Host != ollamaHost {
		s = n.Namespace + "/" + s
	}
	if n.Host != ollamaHost {
		s = n.Host + "/" + s
	}
	return OllamaScheme + s
}

// parts are the path components of the manifest, relative to the manifests folder.
func (n OllamaName) parts() []string { return []string{n.Host, n.Namespace, n.Model, n.Tag} }
