package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/verdict"
)

// entry is a file of a repository.
type entry struct {
	path   string
	size   int64
	etag   string // names the contents: sha256 of a large file, git's sha1 of others; "" = nothing is published
	sha256 string // of a large file; "" = not published
}

// service is the protocol of one hub.
type service interface {
	// commit resolves a revision.
	commit(ctx context.Context, c *Client, n Name) (string, error)
	// list lists the files of a commit.
	list(ctx context.Context, c *Client, n Name, commit string) ([]entry, error)
	// file returns the address of a file.
	file(endpoint string, n Name, commit, path string) string
}

func serviceOf(host string) service {
	if host == ModelScope {
		return modelScope{}
	}
	return huggingFace{}
}

// Open opens a repository at the commit of its revision, and lists its files. ctx is that of all reads, too. The caller
// must close the folder.
func (c *Client) Open(ctx context.Context, n Name) (*Folder, error) {
	if err := c.opts.tokenProblem; err != nil && n.Host == HuggingFace {
		var failed error
		c.tokenNoted.Do(func() { failed = c.skipped(fmt.Sprintf("%v; reading without a token", err)) })
		if failed != nil {
			return nil, failed
		}
	}
	f, err := c.open(ctx, n)
	if err != nil {
		return nil, c.explain(n, err)
	}
	return f, nil
}

func (c *Client) open(ctx context.Context, n Name) (*Folder, error) {
	cache := openCache(c.opts.Cache, n)
	if c.opts.Offline {
		return c.openOffline(ctx, n, cache)
	}
	s := serviceOf(n.Host)
	commit, err := s.commit(ctx, c, n)
	if err != nil {
		return nil, err
	}
	list, err := s.list(ctx, c, n, commit)
	if err != nil {
		return nil, err
	}
	f, err := newFolder(ctx, c, n, commit, list, cache)
	if err == nil && n.Host == ModelScope {
		f.again = modelScope{}.again(c, n, commit)
	}
	return f, err
}

// huggingFace is the protocol of the Hugging Face hub. See https://huggingface.co/docs/hub/api.
type huggingFace struct{}

// revisionInfo is what the hub says of a repository at a revision.
type revisionInfo struct {
	SHA            string
	Error, Message string
	Siblings       bounded[sibling]
}

func (i *revisionInfo) failed() (int, string) {
	if text := i.Error + i.Message; i.SHA == "" && text != "" {
		return http.StatusNotFound, text
	}
	return 0, ""
}

func (huggingFace) commit(ctx context.Context, c *Client, n Name) (string, error) {
	var about revisionInfo
	err := c.about(ctx, n, cmp.Or(n.Revision, "main"), "", &about)
	if n.Revision == "" && fallBack(err) { // a hub that knows the default branch only
		if c.about(ctx, n, "", "", &about) == nil {
			err = nil
		}
	}
	if err != nil {
		return "", err
	}
	if !isCommit(about.SHA) || isCommit(n.Revision) && about.SHA != n.Revision {
		return "", fmt.Errorf("%s: the hub named no commit of the revision", n)
	}
	return about.SHA, nil
}

// about asks for what the hub says of a revision; "" is the default branch.
func (c *Client) about(ctx context.Context, n Name, revision, query string, into *revisionInfo) error {
	address := c.opts.Endpoint + "/api/models/" + n.Repository
	if revision != "" {
		address += "/revision/" + escape(revision)
	}
	u, err := url.Parse(address + query)
	if err == nil {
		_, _, err = c.document(ctx, call{what: n.String(), url: u, host: n.Host}, into)
	}
	return err
}

// list lists the files of a commit: with /tree/, or else from what the hub says of the commit.
func (s huggingFace) list(ctx context.Context, c *Client, n Name, commit string) ([]entry, error) {
	out, err := s.tree(ctx, c, n, commit)
	if fallBack(err) {
		var other error
		if out, other = s.siblings(ctx, c, n, commit); other != nil {
			return nil, fmt.Errorf("%w; and without /tree/: %w", err, other)
		}
		err = nil
	}
	if err == nil {
		err = checkEntries(n, out)
	}
	if err != nil {
		return nil, err
	}
	return out, c.measure(ctx, n, commit, out)
}

// fallBack reports whether a hub refuses a request because it does not know this part of the API. What it says of a
// repository or revision by a code is no such refusal, and neither is a page that is missing in the middle of a list.
func fallBack(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == "" && !errors.Is(err, errPages) &&
		verdict.Of(status.step, status.Status) == verdict.FallBack
}

// listed is a file or a folder in an answer of /tree/.
type listed struct {
	Type, Path, OID string
	Size            *int64
	LFS             *lfs
}

func (huggingFace) tree(ctx context.Context, c *Client, n Name, commit string) ([]entry, error) {
	u, err := url.Parse(c.opts.Endpoint + "/api/models/" + n.Repository + "/tree/" + commit +
		"?recursive=true&expand=false")
	if err != nil {
		return nil, err
	}
	var out []entry
	walk, seen := pages{first: u}, map[string]bool{}
	if err := walk.begin(); err != nil {
		return nil, err
	}
	for u != nil {
		var page bounded[listed]
		h, at, err := c.document(ctx, call{what: n.String(), url: u, host: n.Host}, &page)
		if err != nil && u != walk.first {
			return nil, fmt.Errorf("%w: a page is missing: %w", errPages, err)
		}
		if err != nil {
			return nil, err
		}
		before := len(seen)
		for _, e := range page {
			if seen[e.Path] = true; e.Type == "file" {
				out = append(out, newEntry(e.Path, e.OID, e.Size, e.LFS))
			}
		}
		if len(seen) > limits.HubFiles || len(out) > limits.HubFiles {
			return nil, fmt.Errorf("%s: the repository has more than %d files", n, limits.HubFiles)
		}
		if u, err = walk.next(h, at, len(seen)-before); err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		if u != nil && len(page) == 0 {
			return nil, fmt.Errorf("%s: %w: a page in the middle is empty", n, errPages)
		}
	}
	return out, nil
}

func (huggingFace) file(endpoint string, n Name, commit, path string) string {
	return endpoint + "/" + n.Repository + "/resolve/" + commit + "/" + escapePath(path)
}

// escapePath escapes a path of an address, except its slashes.
func escapePath(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// checkEntries refuses names that could leave a folder, and sizes and hashes that are none.
func checkEntries(n Name, list []entry) error {
	for _, e := range list {
		switch {
		case !fs.ValidPath(e.path) || strings.ContainsAny(e.path, "\\\x00") || strings.ContainsFunc(e.path, isControl):
			return fmt.Errorf("%s: the hub lists a file with an invalid name: %q", n, redact.Clip(e.path))
		case e.size < unknownSize || !isHex(e.etag) || e.sha256 != "" && len(e.sha256) != 64: // which is the etag then
			return fmt.Errorf("%s: the hub lists %s with an invalid size or hash", n, redact.Clip(e.path))
		}
	}
	return nil
}

func isHex(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f')
	})
}

// errMissing is a file that the repository lacks.
func errMissing(path string) error {
	return &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}
