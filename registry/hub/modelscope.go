package hub

import (
	"context"
	"crypto/sha1" //nolint:gosec // a name, not a signature
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// modelScope is the protocol of ModelScope, as its Python package modelscope-hub (0.5.1) speaks it: a list of files
// with sizes and SHA-256, and files by path, with ranges.
//
// Its files are read by branch or tag, since the list names no commit of the repository. What stands for the commit is
// a hash of the list, which is asked for again at the end: a repository that changed is an error.
type modelScope struct{}

// maxModelScope is the number of entries at which ModelScope silently cuts a list.
const maxModelScope = 3000

func (modelScope) revision(n Name) string {
	if n.Revision == "" {
		return "master"
	}
	return n.Revision
}

func (m modelScope) commit(ctx context.Context, c *Client, n Name) (string, error) {
	list, err := m.list(ctx, c, n, "")
	if err != nil {
		return "", err
	}
	h := sha1.New() //nolint:gosec // as above
	for _, e := range list {
		fmt.Fprintf(h, "%q %d %s\n", e.path, e.size, e.etag)
	}
	return "list:" + hex.EncodeToString(h.Sum(nil)), nil
}

// scopeList is the list of files.
type scopeList struct {
	Code    int
	Success bool
	Message string
	Data    struct {
		Files bounded[scopeFile]
	}
}

// scopeFile is a file or a folder of it.
type scopeFile struct {
	Path, Type, Sha256 string
	Size               int64
}

// failed takes a code that is a status for one. Others, such as 10010205001, are for what is not there.
func (l *scopeList) failed() (int, string) {
	switch {
	case l.Success:
		return 0, ""
	case 400 <= l.Code && l.Code < 600:
		return l.Code, l.Message
	}
	return http.StatusNotFound, l.Message
}

func (m modelScope) list(ctx context.Context, c *Client, n Name, commit string) ([]entry, error) {
	u, err := url.Parse(c.opts.ModelScope + "/api/v1/models/" + n.Repository + "/repo/files?" + url.Values{
		"Revision": {m.revision(n)}, "Recursive": {"True"},
	}.Encode())
	if err != nil {
		return nil, err
	}
	var list scopeList
	if _, _, err := c.document(ctx, call{what: n.String(), url: u, host: n.Host}, &list); err != nil {
		return nil, err
	}
	if len(list.Data.Files) >= maxModelScope {
		return nil, fmt.Errorf("%s: the repository has %d files or more, which ModelScope does not list completely",
			n, maxModelScope)
	}
	var out []entry
	for _, f := range list.Data.Files {
		if f.Type != "tree" {
			sum, size := strings.ToLower(f.Sha256), f.Size
			if size < 0 {
				size = invalidSize // not unknownSize, which nothing would measure
			}
			out = append(out, entry{path: f.Path, size: size, etag: sum, sha256: sum})
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return out, checkEntries(n, out)
}

func (m modelScope) file(endpoint string, n Name, _, path string) string {
	return endpoint + "/api/v1/models/" + n.Repository + "/repo?" +
		url.Values{"Revision": {m.revision(n)}, "FilePath": {path}}.Encode()
}

// again returns the check that a repository is still what it was when it was opened.
func (m modelScope) again(c *Client, n Name, commit string) func(context.Context) error {
	return func(ctx context.Context) error {
		now, err := m.commit(ctx, c, n)
		if err == nil && now != commit {
			err = fmt.Errorf("%s: %w while it was read; run this again", n, ErrChanged)
		}
		return err
	}
}
