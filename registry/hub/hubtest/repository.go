package hubtest

import (
	"crypto/sha1" //nolint:gosec // git's names, not signatures
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Content is a file's bytes.
type Content interface {
	io.ReaderAt
	Size() int64
}

// Bytes is a content in memory.
type Bytes []byte

// ReadAt reads bytes at an offset.
func (b Bytes) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[offset:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Size returns the number of bytes.
func (b Bytes) Size() int64 { return int64(len(b)) }

// Sparse is a head, and zeros after it up to a size.
type Sparse struct {
	Head  []byte
	Total int64
}

// ReadAt reads bytes at an offset.
func (s Sparse) ReadAt(p []byte, offset int64) (int, error) {
	n := int(max(min(int64(len(p)), s.Total-offset), 0))
	clear(p[:n])
	if offset < int64(len(s.Head)) {
		copy(p[:n], s.Head[offset:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Size returns the size.
func (s Sparse) Size() int64 { return s.Total }

// local is a file on disk.
type local struct {
	path string
	size int64
}

func (l local) Size() int64 { return l.size }

func (l local) ReadAt(p []byte, offset int64) (int, error) {
	f, err := os.Open(l.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.ReadAt(p, offset)
}

// Repository is a repository of the fake. Its methods are safe for concurrent use.
type Repository struct {
	Name string // ORG/REPO

	mu         sync.Mutex
	gated      bool
	parameters map[string]int64
	refs       map[string]string                // commit by branch
	commits    map[string]map[string]*published // files by commit
}

// Gate restricts a repository: only [Hub.Token] has access.
//
// It is a method: a field set after [Hub.Add] has no order with the handlers of requests by another process.
func (r *Repository) Gate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gated = true
}

// Count sets the numbers of elements by type that a search returns.
func (r *Repository) Count(parameters map[string]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parameters = parameters
}

// restricted reports whether only [Hub.Token] has access.
func (r *Repository) restricted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gated
}

// counts returns the numbers of elements by type.
func (r *Repository) counts() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parameters
}

// published is a file of a commit.
type published struct {
	Content
	lfs bool
	oid string // git's name: of the contents, or of the pointer
	sum string // SHA-256; of a large file
}

// Add makes a repository with files, at one commit of the branch main.
func (h *Hub) Add(name string, files map[string]Content) *Repository {
	r := &Repository{Name: name, refs: map[string]string{}, commits: map[string]map[string]*published{}}
	r.Commit(files)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repositories[name] = r
	return r
}

// AddFolder makes a repository with the files of a folder.
func (h *Hub) AddFolder(name, dir string) (*Repository, error) {
	files := map[string]Content{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(rel)] = local{path, info.Size()}
		return err
	})
	if err != nil {
		return nil, err
	}
	return h.Add(name, files), nil
}

// Commit adds a commit to the branch main and returns it. Earlier commits remain.
func (r *Repository) Commit(files map[string]Content) string {
	list := map[string]*published{}
	h := sha1.New() //nolint:gosec // as above
	for _, path := range sorted(files) {
		f := publish(path, files[path])
		list[path] = f
		fmt.Fprintf(h, "%s %s %s\n", f.oid, f.sum, path)
	}
	commit := hex.EncodeToString(h.Sum(nil))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commits[commit], r.refs["main"], r.refs["master"] = list, commit, commit
	return commit
}

// Replace replaces a file's bytes within a commit, which no hub does: a mirror that is out of step, or an attack. If
// quiet, everything that is published of the file stays.
func (r *Repository) Replace(path string, c Content, quiet bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, files := range r.commits {
		old := files[path]
		if old == nil {
			continue
		}
		if quiet {
			files[path] = &published{Content: c, lfs: old.lfs, oid: old.oid, sum: old.sum}
		} else {
			files[path] = publish(path, c)
		}
	}
}

// Head returns the commit of the branch main.
func (r *Repository) Head() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refs["main"]
}

// at returns the files of a revision and its commit.
func (r *Repository) at(revision string) (map[string]*published, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if commit, ok := r.refs[revision]; ok {
		revision = commit
	}
	if files, ok := r.commits[revision]; ok {
		out := make(map[string]*published, len(files))
		for path, f := range files {
			out[path] = f
		}
		return out, revision
	}
	return nil, ""
}

// publish computes a file's hashes. Weights are large files whatever their size, as .gitattributes has it on the hub.
// Those of a sparse file are made up.
func publish(path string, c Content) *published {
	f := &published{Content: c, lfs: strings.HasSuffix(path, ".safetensors") || strings.HasSuffix(path, ".gguf")}
	if s, ok := c.(Sparse); ok {
		sum := sha256.Sum256(s.Head)
		f.sum = hex.EncodeToString(sum[:])
	} else if f.lfs {
		f.sum = sumOf(c)
	}
	h := sha1.New() //nolint:gosec // as above
	if f.lfs {
		pointer := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", f.sum, c.Size())
		fmt.Fprintf(h, "blob %d\x00%s", len(pointer), pointer)
	} else {
		fmt.Fprintf(h, "blob %d\x00", c.Size())
		_, _ = io.Copy(h, io.NewSectionReader(c, 0, c.Size()))
	}
	f.oid = hex.EncodeToString(h.Sum(nil))
	return f
}

func sumOf(c Content) string {
	h := sha256.New()
	_, _ = io.Copy(h, io.NewSectionReader(c, 0, c.Size()))
	return hex.EncodeToString(h.Sum(nil))
}

func sorted[V any](m map[string]V) []string {
	var list []string
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
