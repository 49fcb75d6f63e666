package hub

import (
	"net/url"
	"slices"
	"strings"
)

// page is the address of a page below a repository, as browsers show it: ORG/REPO/tree/REVISION, or the page of a file,
// ORG/REPO/blob/REVISION/FILE.
type page struct {
	repository string
	word       string   // of the page: tree, blob, ...
	rest       []string // segments after it, without the escapes of addresses
}

// The words of the pages of a repository. A revision and a path follow those of files.
var (
	fileWords  = []string{"blob", "resolve", "raw", "edit", "blame"}
	treeWords  = []string{"tree", "commit", "commits"}
	otherWords = []string{"discussions", "settings", "community", "summary", "files", "file", "feedback"}
)

// cutPage cuts what follows a repository in the address of a page. file says that any further segments are a file's
// path, as in hf://ORG/REPO/FILE.
func cutPage(s string, file bool) (p page, ok bool) {
	segments := strings.Split(s, "/")
	at := -1
	for _, i := range []int{2, 1} {
		if len(segments) > i && isPageWord(segments[i]) && (i == 2 || len(segments) > 2) {
			at = i
			break
		}
	}
	switch {
	case at > 0:
		p.word = segments[at]
		for _, s := range segments[at+1:] {
			plain, err := url.PathUnescape(s)
			if err != nil {
				plain = s
			}
			p.rest = append(p.rest, plain)
		}
	case file && len(segments) > 2 && !strings.Contains(segments[1], "@") && otherKinds[segments[0]] == "":
		at, p.rest = 2, segments[2:]
	default:
		return p, false
	}
	p.repository = strings.Join(segments[:at], "/")
	return p, !strings.ContainsAny(p.repository, "@:")
}

func isPageWord(s string) bool {
	return slices.Contains(fileWords, s) || slices.Contains(treeWords, s) || slices.Contains(otherWords, s)
}

// parse returns what a page shows. A file that is not GGUF stands for its repository, of which it is a part.
func (p page) parse() (revision, file, reason string) {
	if p.word == "file" && len(p.rest) > 1 && p.rest[0] == "view" { // of ModelScope
		p.word, p.rest = "blob", p.rest[1:]
	}
	rest := p.rest
	switch {
	case p.word == "":
	case slices.Contains([]string{"summary", "files"}, p.word) && len(rest) == 0:
		return "", "", ""
	case slices.Contains(otherWords, p.word) || len(rest) == 0:
		return "", "", "it is the address of a page that shows no files; a pull request is hf.co/ORG/REPO@refs/pr/NUMBER"
	default:
		var short bool
		if revision, rest, short = cutRevision(rest); slices.Contains(treeWords, p.word) {
			switch {
			case len(rest) == 0:
				return revision, "", ""
			case short:
				return strings.Join(p.rest, "/"), "", "" // a branch with slashes that the address does not escape
			}
			return "", "", "it names a folder of a repository, and ingot reads whole repositories"
		}
	}
	switch path := strings.Join(rest, "/"); {
	case strings.HasSuffix(strings.ToLower(path), ".gguf"):
		return revision, path, ""
	case len(rest) == 1 && path != "":
		return revision, "", ""
	}
	return "", "", "it names a file in a folder of a repository, and ingot reads whole repositories"
}

// cutRevision cuts the revision that segments begin with. short says that it may be the beginning of a longer one.
func cutRevision(segments []string) (revision string, rest []string, short bool) {
	if len(segments) > 2 && segments[0] == "refs" {
		return strings.Join(segments[:3], "/"), segments[3:], false
	}
	first := segments[0]
	return first, segments[1:], first != "main" && first != "master" && !isCommit(first) && !strings.Contains(first, "/")
}
