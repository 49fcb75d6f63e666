package manifest

import (
	_ "crypto/sha256" // go-digest validates only algorithms that are linked in
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
)

// DefaultTag is the tag of a name without tag and digest.
const DefaultTag = "latest"

// Limits of a name. Registry clients commonly accept 255 bytes for host and path together; the distribution
// specification allows 128 for the tag (v1.1.1, "Pulling manifests").
const (
	maxPathLen = 255
	maxTagLen  = 128
	maxNameLen = maxPathLen + len(":") + maxTagLen + len("@sha256:") + 64
)

// Name is the name of a model: [host[:port]/]path/.../name[:tag][@sha256:...].
//
// Names are case-sensitive. A name without a host is local.
type Name struct {
	Host   string        // registry, with the port if given; empty for a local name
	Path   string        // one or more components, slash-separated
	Tag    string        // empty only if Digest is set
	Digest digest.Digest // of the manifest; empty unless given
}

// NameError reports why a name is invalid. It matches [ErrInvalidName].
type NameError struct {
	Name   string // as given
	Reason string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("model name %q: %s; a name is [host[:port]/]path/.../name[:tag][@sha256:...], with parts made of "+
		"letters, digits, '.', '_' and '-'", Clip(e.Name), e.Reason)
}

func (e *NameError) Is(target error) bool { return target == ErrInvalidName }

// ParseName parses a name. The first of several components is a host if it contains '.' or ':' or is "localhost". The
// tag is [DefaultTag] if the name has neither tag nor digest. Errors are of type [*NameError].
func ParseName(s string) (Name, error) {
	n, reason := parseName(s)
	if reason != "" {
		return Name{}, &NameError{Name: s, Reason: reason}
	}
	return n, nil
}

func parseName(s string) (n Name, reason string) {
	if s == "" {
		return n, "it is empty"
	}
	if len(s) > maxNameLen {
		return n, fmt.Sprintf("it is longer than %d bytes", maxNameLen)
	}
	rest, sum, hasDigest := strings.Cut(s, "@")
	if hasDigest {
		n.Digest = digest.Digest(sum)
		if !ValidDigest(n.Digest) {
			return n, "what follows '@' is not sha256: and 64 lower-case hexadecimal digits"
		}
	}
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, '/') {
		n.Tag = rest[colon+1:]
		rest = rest[:colon]
		if reason := checkTag(n.Tag); reason != "" {
			return n, reason
		}
	} else if !hasDigest {
		n.Tag = DefaultTag
	}
	n.Path = rest
	first, more, several := strings.Cut(rest, "/")
	if several && (strings.ContainsAny(first, ".:") || first == "localhost") {
		n.Host, n.Path = first, more
		if reason := checkHost(n.Host); reason != "" {
			return n, reason
		}
	}
	if len(rest) > maxPathLen {
		return n, fmt.Sprintf("host and path are longer than %d bytes", maxPathLen)
	}
	for component := range strings.SplitSeq(n.Path, "/") {
		if reason := checkComponent(component); reason != "" {
			return n, reason
		}
	}
	return n, ""
}

// String returns the canonical form, which includes the tag. [ParseName] parses it back.
func (n Name) String() string {
	var b strings.Builder
	if n.Host != "" {
		b.WriteString(n.Host)
		b.WriteByte('/')
	}
	b.WriteString(n.Path)
	if n.Tag != "" {
		b.WriteByte(':')
		b.WriteString(n.Tag)
	}
	if n.Digest != "" {
		b.WriteByte('@')
		b.WriteString(string(n.Digest))
	}
	return b.String()
}

// IsLocal reports whether the name has no host.
func (n Name) IsLocal() bool { return n.Host == "" }

// ValidTag reports whether a text can be a tag.
func ValidTag(s string) bool { return checkTag(s) == "" }

func checkTag(tag string) string {
	switch {
	case tag == "":
		return "the tag is empty"
	case len(tag) > maxTagLen:
		return fmt.Sprintf("the tag is longer than %d bytes", maxTagLen)
	case tag[0] == '.' || tag[0] == '-':
		return "the tag starts with " + strconv.QuoteRune(rune(tag[0]))
	}
	return checkRunes("tag", tag)
}

func checkComponent(c string) string {
	if c == "" {
		return "a component of the path is empty"
	}
	if reason := checkRunes("path", c); reason != "" {
		return reason
	}
	if !IsAlnum(c[0]) || !IsAlnum(c[len(c)-1]) {
		return fmt.Sprintf("path component %q does not start and end with a letter or digit", c)
	}
	return ""
}

func checkHost(host string) string {
	name, port, hasPort := host, "", false
	if strings.HasPrefix(host, "[") {
		addr, after, ok := strings.Cut(host[1:], "]")
		if ip, err := netip.ParseAddr(addr); !ok || err != nil || !ip.Is6() || ip.Zone() != "" {
			return fmt.Sprintf("host %q is not an IPv6 address in brackets", host)
		}
		if after == "" {
			return ""
		}
		if after[0] != ':' {
			return fmt.Sprintf("host %q has text after its address", host)
		}
		name, port, hasPort = "", after[1:], true
	} else if name, port, hasPort = strings.Cut(host, ":"); name == "" {
		return "the host is empty"
	}
	if hasPort {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Sprintf("port %q is not a number from 1 to 65535", port)
		}
	}
	if name == "" {
		return ""
	}
	if reason := checkRunes("host", name); reason != "" {
		return reason
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || !IsAlnum(label[0]) || !IsAlnum(label[len(label)-1]) {
			return fmt.Sprintf("host %q is not a host name", name)
		}
	}
	return ""
}

func checkRunes(what, s string) string {
	for _, r := range s {
		if r >= 0x80 || !IsAlnum(byte(r)) && r != '.' && r != '_' && r != '-' {
			return fmt.Sprintf("%s %q contains %q", what, s, r)
		}
	}
	return ""
}

// IsAlnum reports whether c is an ASCII letter or digit.
func IsAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// ValidDigest reports whether d is a SHA-256 digest. The store supports no other algorithm.
func ValidDigest(d digest.Digest) bool {
	return strings.HasPrefix(string(d), "sha256:") && d.Validate() == nil
}
