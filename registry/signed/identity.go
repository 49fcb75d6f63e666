// Package signed decides which reference a signature may name for a model that was asked for, so that a registry cannot
// serve a model under the name of another one that the same key signed.
package signed

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/address"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/sigstore"
)

// IdentityEnv is the environment variable with the default rule for signatures. [ParseIdentity] parses it.
const IdentityEnv = "INGOT_SIGNED_IDENTITY"

// Errors of a signature that verifies with the key, but names the wrong reference or none.
var (
	ErrOtherReference = errors.New("signed for another reference")
	ErrNoReference    = errors.New("signed for no reference")
)

// OtherReferenceError is a valid signature for another reference than the expected one. It is an [ErrOtherReference].
type OtherReferenceError struct {
	Signed manifest.Name // the reference in the signature; a repository if it has neither tag nor digest
	Want   string
}

func (e *OtherReferenceError) Error() string {
	return fmt.Sprintf("it names %s, not %s: %v", e.Signed, e.Want, ErrOtherReference)
}

func (e *OtherReferenceError) Is(target error) bool { return target == ErrOtherReference }

// Identity decides which references a signature may name for the requested model. Rules have the names and
// meanings of signedIdentity in containers-policy.json(5).
//
// The zero value applies matchRepoDigestOrExact to signatures that name a reference, and accepts those that name none.
// Every other value rejects signatures that name none.
type Identity struct {
	rule   string
	name   manifest.Name // for exactReference and exactRepository
	remaps []remap       // for remapIdentity
}

// remap replaces a prefix of host and path.
type remap struct{ prefix, signed string }

// Rules of a Identity.
const (
	ruleRepoDigestOrExact = "matchRepoDigestOrExact"
	ruleExact             = "matchExact"
	ruleRepository        = "matchRepository"
	ruleExactReference    = "exactReference"
	ruleExactRepository   = "exactRepository"
	ruleRemap             = "remapIdentity"
)

// ParseIdentity parses a rule:
//
//   - matchExact: the signature names the requested reference.
//   - matchRepoDigestOrExact: the same, but any reference of the repository if a digest was requested.
//   - matchRepository: the signature names any reference of the requested repository.
//   - exactReference=NAME, exactRepository=REPOSITORY: the signature names this one, whatever was requested.
//   - remapIdentity=PREFIX=SIGNED,...: as matchRepoDigestOrExact, after replacing PREFIX by SIGNED in the requested
//     name.
//
// The empty string is the zero value.
func ParseIdentity(s string) (Identity, error) {
	if s == "" {
		return Identity{}, nil
	}
	rule, value, hasValue := strings.Cut(s, "=")
	p := Identity{rule: rule}
	wantValue := true
	var err error
	switch rule {
	case ruleRepoDigestOrExact, ruleExact, ruleRepository:
		wantValue = false
	case ruleExactReference:
		p.name, err = parseReference(value)
		if err == nil && p.name.Tag == "" && p.name.Digest == "" {
			p.name.Tag = manifest.DefaultTag
		}
	case ruleExactRepository:
		p.name, err = parseReference(value)
		if err == nil && (p.name.Tag != "" || p.name.Digest != "") {
			err = errors.New("a repository has neither tag nor digest")
		}
	case ruleRemap:
		p.remaps, err = parseRemaps(value)
	default:
		return Identity{}, fmt.Errorf("%q is not a rule: use %s, %s, %s, %s=NAME, %s=REPOSITORY or %s=PREFIX=SIGNED",
			redact.Clip(s),
			ruleRepoDigestOrExact, ruleExact, ruleRepository, ruleExactReference, ruleExactRepository, ruleRemap)
	}
	switch {
	case wantValue && value == "":
		err = errors.New("it needs a value")
	case !wantValue && hasValue:
		err = errors.New("it takes no value")
	}
	if err != nil {
		return Identity{}, fmt.Errorf("rule %q: %w", redact.Clip(s), err)
	}
	return p, nil
}

func parseRemaps(s string) ([]remap, error) {
	var list []remap
	for item := range strings.SplitSeq(s, ",") {
		prefix, signed, ok := strings.Cut(strings.TrimSpace(item), "=")
		from, fromOK := parsePrefix(prefix)
		to, toOK := parsePrefix(signed)
		if !ok || !fromOK || !toOK {
			return nil, fmt.Errorf("%q is not host[/path]=host[/path], such as mirror.example.com/hub=docker.io",
				redact.Clip(item))
		}
		list = append(list, remap{from, to})
	}
	return list, nil
}

// parsePrefix parses a host with an optional path.
func parsePrefix(s string) (string, bool) {
	if _, err := manifest.ParseName(s + "/name"); err != nil {
		return "", false
	}
	host, path, deep := strings.Cut(s, "/")
	n, err := manifest.ParseName(host + "/name")
	if err != nil || n.IsLocal() {
		return "", false
	}
	if host = address.HostKey(host); deep {
		return host + "/" + path, true
	}
	return host, true
}

// parseReference parses host/path with a tag, a digest, or neither, and normalizes the host.
func parseReference(s string) (manifest.Name, error) {
	n, err := manifest.ParseName(s)
	if err != nil {
		return manifest.Name{}, err
	}
	if n.IsLocal() {
		return manifest.Name{}, fmt.Errorf("%s: %w", redact.Clip(s), remote.ErrNoHost)
	}
	if n.Digest == "" && !strings.HasSuffix(s, ":"+n.Tag) { // ParseName added the tag
		n.Tag = ""
	}
	return canonical(n), nil
}

// canonical normalizes the host, and adds the library/ prefix of Docker Hub.
func canonical(n manifest.Name) manifest.Name {
	n.Host = address.HostKey(n.Host)
	if n.Host == "docker.io" && !strings.Contains(n.Path, "/") {
		n.Path = "library/" + n.Path
	}
	return n
}

// Reference returns the reference that a signature of a name records: with the tag, or the digest if there is no
// tag. For a local name it is "", since that name means nothing elsewhere.
func Reference(n manifest.Name) string {
	if n.IsLocal() {
		return ""
	}
	if n = canonical(n); n.Tag != "" {
		n.Digest = ""
	}
	return n.String()
}

// Check returns nil if a signature that names this reference, "" for none, is acceptable for the requested name.
func (p Identity) Check(reference string, requested manifest.Name) error {
	if reference == "" {
		if p.rule == "" {
			return nil
		}
		return fmt.Errorf("rule %s: %w", p.rule, ErrNoReference)
	}
	signed, err := parseReference(reference)
	if err != nil {
		return fmt.Errorf("its reference: %w: %w", err, sigstore.ErrBundle)
	}
	if p.rule == "" && requested.IsLocal() {
		return nil // the store's owner chose the name
	}
	if want := p.expected(requested); !p.matches(signed, want) {
		return &OtherReferenceError{Signed: signed, Want: p.describe(want)}
	}
	return nil
}

// expected returns the name that the signature's reference is compared with.
func (p Identity) expected(requested manifest.Name) manifest.Name {
	switch p.rule {
	case ruleExactReference, ruleExactRepository:
		return p.name
	}
	requested = canonical(requested)
	for _, r := range p.remaps {
		repository := requested.Host + "/" + requested.Path
		if rest, ok := strings.CutPrefix(repository, r.prefix); ok && (rest == "" || rest[0] == '/') {
			requested.Host, requested.Path, _ = strings.Cut(r.signed+rest, "/")
			return canonical(requested)
		}
	}
	return requested
}

func (p Identity) matches(signed, want manifest.Name) bool {
	if signed.Host != want.Host || signed.Path != want.Path {
		return false
	}
	switch p.rule {
	case ruleRepository, ruleExactRepository:
		return true
	case ruleExact, ruleExactReference:
		return Reference(signed) == Reference(want) && (signed.Tag != "" || signed.Digest != "")
	}
	// A digest pins the contents: no tag can mislead.
	return want.Digest != "" || signed.Tag != "" && signed.Tag == want.Tag
}

// describe returns what a signature is compared with, for error messages.
func (p Identity) describe(want manifest.Name) string {
	if p.rule == ruleRepository || p.rule == ruleExactRepository {
		return "the repository " + want.Host + "/" + want.Path
	}
	return want.String()
}
