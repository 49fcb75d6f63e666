package hub

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/registry/redact"
)

// ErrName reports a name that looks like one of a hub and is invalid.
var ErrName = errors.New("invalid name of a hub's repository")

// Hosts of names.
const (
	HuggingFace = "hf.co"
	ModelScope  = "modelscope.cn"
)

// Name names a repository of a hub, or a file in it: hf.co/ORG/REPO[@REVISION][:FILE-OR-TYPE].
type Name struct {
	Host       string // HuggingFace or ModelScope
	Repository string // ORG/REPO; some old repositories of Hugging Face have no ORG
	Revision   string // branch, tag or commit; "" = the default branch
	File       string // file, or type of a GGUF file; usually ""
}

// prefixes are the ways to write a host.
var prefixes = []struct{ prefix, host string }{
	{"hf.co/", HuggingFace}, {"huggingface.co/", HuggingFace}, {hfScheme, HuggingFace},
	{"www.huggingface.co/", HuggingFace}, {"modelscope.cn/", ModelScope}, {"www.modelscope.cn/", ModelScope},
}

// hfScheme begins the names of huggingface_hub's file system: hf://ORG/REPO/FILE.
const hfScheme = "hf://"

// IsName reports whether a text is meant as a name of a hub. It may be invalid.
func IsName(s string) bool {
	_, _, ok := cutHost(s)
	return ok
}

// cutHost cuts what begins a name: a hub, with or without http:// or https://, or the address of the mirror that
// HF_ENDPOINT or MODELSCOPE_ENDPOINT name.
func cutHost(s string) (host, rest string, ok bool) {
	for _, mirror := range []struct{ variable, host string }{
		{"HF_ENDPOINT", HuggingFace}, {"MODELSCOPE_ENDPOINT", ModelScope},
	} {
		endpoint := trimEndpoint(os.Getenv(mirror.variable))
		if rest, ok := cutPrefix(s, endpoint+"/"); ok && strings.Contains(endpoint, "://") {
			return mirror.host, rest, true
		}
	}
	name, isAddress := cutPrefix(s, "https://")
	if !isAddress {
		name, isAddress = cutPrefix(s, "http://")
	}
	if !isAddress {
		name = s
	}
	for _, p := range prefixes {
		if rest, ok := cutPrefix(name, p.prefix); ok && !(isAddress && p.prefix == hfScheme) {
			return p.host, rest, true
		}
	}
	return "", "", false
}

// cutPrefix cuts a prefix in any case, if something follows it.
func cutPrefix(s, prefix string) (rest string, ok bool) {
	if len(s) > len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}

// ParseName parses a name. hf:// and huggingface.co/ mean hf.co/, and the address of a repository's page, or of a file
// there, is a name too. Errors are [ErrName].
func ParseName(s string) (Name, error) {
	n, reason := parseName(s)
	if reason != "" {
		return Name{}, fmt.Errorf("%w: %q: %s; a name is hf.co/ORG/REPO[@REVISION]", ErrName, redact.Clip(s), reason)
	}
	return n, nil
}

func parseName(s string) (n Name, reason string) {
	host, rest, ok := cutHost(s)
	if !ok {
		return n, "it starts with no hub"
	}
	// Without the host, because hf:// is shorter than the hf.co/ of String.
	if len(rest) > limits.HubName {
		return n, fmt.Sprintf("it is longer than %d bytes after its hub", limits.HubName)
	}
	n.Host = host
	if i := strings.IndexAny(rest, "?#@:"); i >= 0 && (rest[i] == '?' || rest[i] == '#') {
		rest = rest[:i] // of an address; a revision and a file may contain them
	}
	rest = strings.TrimSuffix(rest, "/")
	if after, ok := strings.CutPrefix(rest, "models/"); ok && strings.Contains(after, "/") {
		rest = after // as in modelscope.cn/models/ORG/REPO
	}
	pinned := false
	if page, is := cutPage(rest, strings.HasPrefix(strings.ToLower(s), hfScheme)); is {
		n.Repository = page.repository
		if n.Revision, n.File, reason = page.parse(); reason != "" {
			return n, reason
		}
		pinned = n.Revision != ""
	} else {
		n.Repository, n.Revision, pinned = strings.Cut(rest, "@")
		if pinned {
			n.Revision, n.File, ok = strings.Cut(n.Revision, ":")
		} else {
			n.Repository, n.File, ok = strings.Cut(n.Repository, ":")
		}
		if ok && n.File == "" {
			return n, "nothing follows the colon"
		}
	}
	n.Repository = strings.TrimSuffix(n.Repository, ".git")
	n.Revision = strings.NewReplacer("%2F", "/", "%2f", "/").Replace(n.Revision) // as addresses have it
	return n, n.check(pinned)
}

// check returns what is wrong with a name.
func (n Name) check(pinned bool) string {
	parts := strings.Split(n.Repository, "/")
	if n.Host == HuggingFace {
		if what := otherKinds[strings.ToLower(parts[0])]; what != "" && len(parts) > 1 {
			return fmt.Sprintf("it names a %s of the hub, and ingot reads models", what)
		}
	}
	if len(parts) > 2 || n.Host == ModelScope && len(parts) != 2 {
		return "the repository is not ORG/REPO"
	}
	for _, part := range parts {
		if reason := checkPart(part); reason != "" {
			return reason
		}
	}
	if pinned && !validRevision(n.Revision) {
		return "what follows @ is not a branch, tag or commit"
	}
	if !validFile(n.File) {
		return "what follows the colon is not a file or a type"
	}
	return ""
}

// otherKinds are the first parts of addresses that are no models.
var otherKinds = map[string]string{
	"datasets": "dataset", "spaces": "space", "collections": "collection", "papers": "paper", "buckets": "bucket",
}

// checkPart checks ORG or REPO, by the rules of huggingface_hub's validate_repo_id.
func checkPart(part string) string {
	switch {
	case part == "":
		return "ORG or REPO is empty"
	case len(part) > 96:
		return "ORG or REPO is longer than 96 bytes"
	case strings.ContainsFunc(part, func(r rune) bool { return !isWord(r) && r != '.' && r != '-' }):
		return "ORG and REPO have letters, digits, '.', '_' and '-' only"
	case strings.Contains(part, "--") || strings.Contains(part, ".."):
		return "ORG and REPO contain neither -- nor .."
	case strings.ContainsAny(part[:1]+part[len(part)-1:], ".-"):
		return "ORG and REPO neither start nor end with '.' or '-'"
	}
	return ""
}

func isWord(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// validRevision checks a branch, tag or commit, as far as `git check-ref-format` matters to addresses and paths.
func validRevision(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) &&
		!strings.ContainsAny(s, `\~^:?*[`) && !strings.Contains(s, "..") && !strings.Contains(s, "//") &&
		!strings.HasPrefix(s, "/") && !strings.HasSuffix(s, "/")
}

// validFile checks the path of a file in a repository, a type or "".
func validFile(s string) bool {
	return !strings.ContainsFunc(s, isControl) && !strings.Contains(s, "..") &&
		!strings.HasPrefix(s, "/") && !strings.HasSuffix(s, "/")
}

// String returns the name as hf.co/ORG/REPO[@REVISION][:FILE].
func (n Name) String() string {
	s := n.Host + "/" + n.Repository
	if n.Revision != "" {
		s += "@" + n.Revision
	}
	if n.File != "" {
		s += ":" + n.File
	}
	return s
}

// Page returns the address of the repository's page, for people.
func (n Name) Page() string {
	if n.Host == ModelScope {
		return "https://www.modelscope.cn/models/" + n.Repository
	}
	return "https://huggingface.co/" + n.Repository
}

// isCommit reports whether a revision is a full commit.
func isCommit(revision string) bool {
	return len(revision) == 40 && !strings.ContainsFunc(revision, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f')
	})
}

// escape escapes a text as one segment of an address's path, slashes too.
func escape(s string) string { return strings.ReplaceAll(url.PathEscape(s), "/", "%2F") }
