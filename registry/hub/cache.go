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

	"github.com/ingotml/ingot/internal/limits/place"
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

// places returns where the cache may have a file, each once: its link in the snapshot, and its blob.
func (c cache) places(e entry) []string {
	if c.dir == "" {
		return nil
	}
	list := []string{c.snapshot(e.path)}
	if e.etag == "" {
		return list
	}
	linked, err := os.Stat(list[0])
	blob, errBlob := os.Stat(c.blob(e.etag))
	if errBlob == nil && (err != nil || !os.SameFile(linked, blob)) {
		list = append(list, c.blob(e.etag))
	}
	return list
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
		text, err := place.ReadFile(filepath.Join(in.dir, "refs", filepath.FromSlash(commit)), 1<<10)
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

// leaves reports whether a link leads out of the cache. One to a file that is named by its hash may: its bytes are
// compared with it.
func (c cache) leaves(link string) bool {
	to, err := filepath.EvalSymlinks(link)
	if err != nil {
		return true
	}
	root, err := filepath.EvalSymlinks(c.root)
	if err != nil {
		return true
	}
	rel, err := filepath.Rel(root, to)
	return err != nil || !filepath.IsLocal(rel)
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
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("it is not a file")
		}
		if err != nil {
			return fmt.Errorf("%s: the cache is damaged: %w; remove it and download it again", p, err)
		}
		name, err := filepath.Rel(base, p)
		if err != nil {
			return err
		}
		e := entry{path: filepath.ToSlash(name), size: info.Size()}
		if to, err := os.Readlink(p); err == nil {
			e.etag = path.Base(filepath.ToSlash(to))
			if newContent(e.etag, e.size) == nil && c.leaves(p) {
				return fmt.Errorf("%s: it is a link that leads out of the cache; remove it and download it again", p)
			}
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
