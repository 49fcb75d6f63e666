package registry

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/sigstore"
)

// SignedIdentityEnv is the rule for signatures where a command gives none; [ParseSignedIdentity] reads it.
const SignedIdentityEnv = "INGOT_SIGNED_IDENTITY"

// Errors of a signature that verifies with the key but does not fit the name that was asked for.
var (
	ErrOtherReference = errors.New("signed for another reference")
	ErrNoReference    = errors.New("signed for no reference")
)

// OtherReferenceError is a good signature for another reference than the one that is wanted. It is an [ErrOtherReference].
type OtherReferenceError struct {
	Signed manifest.Name // the signature's; without tag and digest it is a repository
	Want   string
}

func (e *OtherReferenceError) Error() string {
	return fmt.Sprintf("it names %s, not %s: %v", e.Signed, e.Want, ErrOtherReference)
}

func (e *OtherReferenceError) Is(target error) bool { return target == ErrOtherReference }

// SignedIdentity decides which references a signature may name for the model that was asked for. Rules have the names
// and the meanings of signedIdentity in containers-policy.json(5).
//
// The zero value is matchRepoDigestOrExact for signatures that name a reference, and accepts those that name none. Every
// other value refuses signatures that name none.
type SignedIdentity struct {
	rule   string
	name   manifest.Name // of exactReference and exactRepository
	remaps []remap       // of remapIdentity
}

// remap replaces a prefix of a repository, host and path.
type remap struct{ prefix, signed string }

// Rules of a SignedIdentity.
const (
	ruleRepoDigestOrExact = "matchRepoDigestOrExact"
	ruleExact             = "matchExact"
	ruleRepository        = "matchRepository"
	ruleExactReference    = "exactReference"
	ruleExactRepository   = "exactRepository"
	ruleRemap             = "remapIdentity"
)

// ParseSignedIdentity reads a rule:
//
//   - matchExact: the signature names the reference that was asked for.
//   - matchRepoDigestOrExact: the same, but any reference of the repository where a digest was asked for.
//   - matchRepository: the signature names any reference of the repository that was asked for.
//   - exactReference=NAME, exactRepository=REPOSITORY: it names this one, whatever was asked for.
//   - remapIdentity=PREFIX=SIGNED,...: as matchRepoDigestOrExact, after SIGNED has replaced PREFIX in what was asked for.
//
// The empty string is the zero value.
func ParseSignedIdentity(s string) (SignedIdentity, error) {
	if s == "" {
		return SignedIdentity{}, nil
	}
	rule, value, hasValue := strings.Cut(s, "=")
	p := SignedIdentity{rule: rule}
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
		return SignedIdentity{}, fmt.Errorf("%q is no rule: give %s, %s, %s, %s=NAME, %s=REPOSITORY or %s=PREFIX=SIGNED", clip(s),
			ruleRepoDigestOrExact, ruleExact, ruleRepository, ruleExactReference, ruleExactRepository, ruleRemap)
	}
	switch {
	case wantValue && value == "":
		err = errors.New("it needs a value")
	case !wantValue && hasValue:
		err = errors.New("it takes no value")
	}
	if err != nil {
		return SignedIdentity{}, fmt.Errorf("rule %q: %w", clip(s), err)
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
			return nil, fmt.Errorf("%q is not host[/path]=host[/path], such as mirror.example.com/hub=docker.io", clip(item))
		}
		list = append(list, remap{from, to})
	}
	return list, nil
}

// parsePrefix reads a host with or without a path.
func parsePrefix(s string) (string, bool) {
	if _, err := manifest.ParseName(s + "/name"); err != nil {
		return "", false
	}
	host, path, deep := strings.Cut(s, "/")
	n, err := manifest.ParseName(host + "/name")
	if err != nil || n.IsLocal() {
		return "", false
	}
	if host = hostKey(host); deep {
		return host + "/" + path, true
	}
	return host, true
}

// parseReference reads host/path with a tag, a digest, or neither, and replaces other spellings of the host.
func parseReference(s string) (manifest.Name, error) {
	n, err := manifest.ParseName(s)
	if err != nil {
		return manifest.Name{}, err
	}
	if n.IsLocal() {
		return manifest.Name{}, fmt.Errorf("%s: %w", clip(s), ErrNoHost)
	}
	if n.Digest == "" && !strings.HasSuffix(s, ":"+n.Tag) { // ParseName has added the tag
		n.Tag = ""
	}
	return canonical(n), nil
}

// canonical gives names of one repository one spelling.
func canonical(n manifest.Name) manifest.Name {
	n.Host = hostKey(n.Host)
	if n.Host == "docker.io" && !strings.Contains(n.Path, "/") {
		n.Path = "library/" + n.Path
	}
	return n
}

// SignedReference returns what a signature of a name records: the tag, or without one the digest. A local name says
// nothing to others: it is "".
func SignedReference(n manifest.Name) string {
	if n.IsLocal() {
		return ""
	}
	if n = canonical(n); n.Tag != "" {
		n.Digest = ""
	}
	return n.String()
}

// check decides whether a signature that names a reference, "" for none, is good for the name that was asked for.
func (p SignedIdentity) check(reference string, asked manifest.Name) error {
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
	if p.rule == "" && asked.IsLocal() {
		return nil // whoever owns the store has chosen the name
	}
	if want := p.expected(asked); !p.matches(signed, want) {
		return &OtherReferenceError{Signed: signed, Want: p.describe(want)}
	}
	return nil
}

// expected returns the name that a signature is compared with.
func (p SignedIdentity) expected(asked manifest.Name) manifest.Name {
	switch p.rule {
	case ruleExactReference, ruleExactRepository:
		return p.name
	}
	asked = canonical(asked)
	for _, r := range p.remaps {
		repository := asked.Host + "/" + asked.Path
		if rest, ok := strings.CutPrefix(repository, r.prefix); ok && (rest == "" || rest[0] == '/') {
			asked.Host, asked.Path, _ = strings.Cut(r.signed+rest, "/")
			return canonical(asked)
		}
	}
	return asked
}

func (p SignedIdentity) matches(signed, want manifest.Name) bool {
	if signed.Host != want.Host || signed.Path != want.Path {
		return false
	}
	switch p.rule {
	case ruleRepository, ruleExactRepository:
		return true
	case ruleExact, ruleExactReference:
		return SignedReference(signed) == SignedReference(want) && (signed.Tag != "" || signed.Digest != "")
	}
	// A digest pins the contents: no tag can mislead.
	return want.Digest != "" || signed.Tag != "" && signed.Tag == want.Tag
}

// describe names what a signature is compared with, as an error says it.
func (p SignedIdentity) describe(want manifest.Name) string {
	if p.rule == ruleRepository || p.rule == ruleExactRepository {
		return "the repository " + want.Host + "/" + want.Path
	}
	return want.String()
}
