package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/registry/redact"
)

// cache is a repository's folder in huggingface_hub's cache: models--ORG--REPO with blobs/ETAG, refs/REVISION (the
// commit) and snapshots/COMMIT/PATH, links to blobs. The zero value is no cache. See
// https://huggingface.co/docs/huggingface_hub/guides/manage-cache.
type cache struct {
	root   string // the cache
	dir    string // of the repository
	commit string
}

// openCache returns a repository's folder, which need not exist. ModelScope has another layout, which is not read.
func openCache(root string, n Name) cache {
	if root == "" || n.Host != HuggingFace {
		return cache{}
	}
	return cache{root: root, dir: filepath.Join(root, "models--"+strings.ReplaceAll(n.Repository, "/", "--"))}
}

func (c cache) at(commit string) cache {
	c.commit = commit
	return c
}

func (c cache) snapshot(name string) string {
	return filepath.Join(c.dir, "snapshots", c.commit, filepath.FromSlash(name))
}

func (c cache) blob(etag string) string { return filepath.Join(c.dir, "blobs", etag) }

// find returns the path of a file that is in the cache, or "". Its size decides: a blob gets its name when complete.
func (c cache) find(e entry) string {
	if c.dir == "" {
		return ""
	}
	list := []string{c.snapshot(e.path)}
	if e.etag != "" {
		list = append(list, c.blob(e.etag))
	}
	for _, p := range list {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Size() == e.size {
			return p
		}
	}
	return ""
}

func (c cache) has(e entry) bool { return c.find(e) != "" }

// open opens a file that is in the cache, or returns nil.
func (c cache) open(e entry) (*os.File, error) {
	p := c.find(e)
	if p == "" {
		return nil, nil
	}
	return os.Open(p)
}

// openOffline opens a repository from the cache alone.
func (c *Client) openOffline(ctx context.Context, n Name, in cache) (*Folder, error) {
	if in.dir == "" {
		return nil, fmt.Errorf("%s: %w, and HF_HUB_OFFLINE is set", n, ErrOffline)
	}
	commit := n.Revision
	if !isCommit(commit) {
		if commit == "" {
			commit = "main"
		}
		text, err := os.ReadFile(filepath.Join(in.dir, "refs", filepath.FromSlash(commit)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: revision %s: %w %s, and HF_HUB_OFFLINE is set; unset it, or download it with "+
				"`hf download` elsewhere", n, redact.Clip(commit), ErrOffline, in.root)
		}
		if err != nil {
			return nil, err
		}
		if commit = strings.TrimSpace(string(text)); !isCommit(commit) {
			return nil, fmt.Errorf("%s: %s: it does not name a commit", n, filepath.Join(in.dir, "refs"))
		}
	}
	list, err := in.at(commit).list()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: commit %s: %w %s, and HF_HUB_OFFLINE is set", n, commit, ErrOffline, in.root)
	}
	if err != nil {
		return nil, err
	}
	return newFolder(ctx, c, n, commit, list, in)
}

// list lists the files of a snapshot. An etag is the name of the blob that a file links to.
func (c cache) list() ([]entry, error) {
	base := c.snapshot("")
	var out []entry
	err := filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(p) // of what it links to
		if err != nil {
			return fmt.Errorf("%s: the cache is damaged: %w; remove the file and download it again", p, err)
		}
		name, err := filepath.Rel(base, p)
		if err != nil {
			return err
		}
		e := entry{path: filepath.ToSlash(name), size: info.Size()}
		if to, err := os.Readlink(p); err == nil {
			e.etag = path.Base(filepath.ToSlash(to))
		} else {
			e.etag = fmt.Sprintf("%x", info.ModTime().UnixNano())
		}
		if len(e.etag) == 64 && isHex(e.etag) {
			e.sha256 = e.etag
		}
		out = append(out, e)
		return nil
	})
	return out, err
}
