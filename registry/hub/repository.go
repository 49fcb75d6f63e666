package hub

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/registry/redact"
)

// entry is a file of a repository.
type entry struct {
	path   string
	size   int64
	etag   string // names the contents: sha256 of a large file, git's sha1 of others
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

func (huggingFace) commit(ctx context.Context, c *Client, n Name) (string, error) {
	revision := n.Revision
	if revision == "" {
		revision = "main"
	}
	u, err := url.Parse(c.opts.Endpoint + "/api/models/" + n.Repository + "/revision/" + escape(revision))
	if err != nil {
		return "", err
	}
	var info struct {
		SHA string `json:"sha"`
	}
	if _, err := c.document(ctx, call{what: n.String(), url: u, host: n.Host}, &info); err != nil {
		return "", err
	}
	if !isCommit(info.SHA) || isCommit(revision) && info.SHA != revision {
		return "", fmt.Errorf("%s: the hub named no commit of the revision", n)
	}
	return info.SHA, nil
}

func (huggingFace) list(ctx context.Context, c *Client, n Name, commit string) ([]entry, error) {
	u, err := url.Parse(c.opts.Endpoint + "/api/models/" + n.Repository + "/tree/" + commit +
		"?recursive=true&expand=false")
	if err != nil {
		return nil, err
	}
	var out []entry
	for u != nil {
		var page []struct {
			Type, Path, OID string
			Size            int64
			LFS             *struct {
				OID  string
				Size int64
			}
		}
		h, err := c.document(ctx, call{what: n.String(), url: u, host: n.Host}, &page)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if e.Type != "file" {
				continue
			}
			f := entry{path: e.Path, size: e.Size, etag: e.OID}
			if e.LFS != nil {
				f.etag, f.sha256, f.size = e.LFS.OID, e.LFS.OID, e.LFS.Size
			}
			out = append(out, f)
		}
		if len(out) > limits.HubFiles {
			return nil, fmt.Errorf("%s: the repository has more than %d files", n, limits.HubFiles)
		}
		if len(page) == 0 {
			break
		}
		u = nextPage(h, u)
	}
	return out, checkEntries(n, out)
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
		case e.size < 0 || e.etag != "" && !isHex(e.etag) || e.sha256 != "" && (len(e.sha256) != 64 || !isHex(e.sha256)):
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
