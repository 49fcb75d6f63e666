package hub

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/ingotml/ingot/limits"
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
	{"hf.co/", HuggingFace}, {"huggingface.co/", HuggingFace}, {"hf://", HuggingFace},
	{"https://hf.co/", HuggingFace}, {"https://huggingface.co/", HuggingFace},
	{"modelscope.cn/", ModelScope}, {"www.modelscope.cn/", ModelScope},
	{"https://modelscope.cn/models/", ModelScope}, {"https://www.modelscope.cn/models/", ModelScope},
}

// IsName reports whether a text is meant as a name of a hub. It may be invalid.
func IsName(s string) bool {
	_, _, ok := cutHost(s)
	return ok
}

func cutHost(s string) (host, rest string, ok bool) {
	for _, p := range prefixes {
		if len(s) > len(p.prefix) && strings.EqualFold(s[:len(p.prefix)], p.prefix) {
			return p.host, s[len(p.prefix):], true
		}
	}
	return "", "", false
}

// ParseName parses a name. hf:// and huggingface.co/ mean hf.co/, and the address of a repository's page is a name too.
// Errors are [ErrName].
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
	repository, revision, pinned := strings.Cut(strings.TrimSuffix(rest, "/"), "@")
	if pinned {
		revision, n.File, ok = strings.Cut(revision, ":")
	} else {
		repository, n.File, ok = strings.Cut(repository, ":")
	}
	if ok && n.File == "" {
		return n, "nothing follows the colon"
	}
	if page, tree, isPage := strings.Cut(repository, "/tree/"); isPage && !pinned {
		repository, revision, pinned = page, tree, true
	}
	n.Repository, n.Revision = repository, revision
	parts := strings.Split(repository, "/")
	if len(parts) > 2 || host == ModelScope && len(parts) != 2 {
		return n, "the repository is not ORG/REPO"
	}
	for _, part := range parts {
		if reason := checkPart(part); reason != "" {
			return n, reason
		}
	}
	if pinned && !validRevision(revision) {
		return n, "what follows @ is not a branch, tag or commit"
	}
	if !validFile(n.File) {
		return n, "what follows the colon is not a file or a type"
	}
	return n, ""
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
