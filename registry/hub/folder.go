package hub

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/registry/hub/readahead"
)

// Folder is a repository at one commit, as a folder of files. Names are those of the repository. It is safe for
// concurrent use.
type Folder struct {
	ctx    context.Context
	c      *Client
	name   Name
	commit string
	names  []string // sorted
	files  map[string]*file
	cache  cache
	reader *readahead.Reader
	ahead  atomic.Bool // Expect was called
	differ atomic.Bool // bytes were not the published ones
	whole  map[string]bool
	// unhashed is a file with weights that cannot be checked, because the hub publishes no hash of it.
	unhashed string
	again    func(ctx context.Context) error // checks at the end that the list of files is the same; nil = it must be
}

func newFolder(ctx context.Context, c *Client, n Name, commit string, list []entry, cached cache) (*Folder, error) {
	f := &Folder{
		ctx: ctx, c: c, name: n, commit: commit, files: map[string]*file{}, whole: map[string]bool{},
		cache: cached.at(commit),
	}
	for _, e := range list {
		if f.files[e.path] != nil {
			return nil, fmt.Errorf("%s: the hub lists %s twice", n, e.path)
		}
		f.files[e.path] = &file{entry: e, c: c, name: n, commit: commit}
		f.names = append(f.names, e.path)
	}
	slices.Sort(f.names)
	f.reader = readahead.New(ctx, f.fetch, readahead.Options{Memory: c.opts.Memory, All: c.opts.Verify})
	return f, nil
}

// Close ends the reads.
func (f *Folder) Close() error {
	f.reader.Close()
	return nil
}

// Path returns the file's name for messages: hf.co/ORG/REPO/FILE. That of "." is the name that was opened.
func (f *Folder) Path(name string) string {
	if name == "." {
		return f.name.String()
	}
	repository := f.name
	repository.File = ""
	return repository.String() + "/" + name
}

// Choice returns what the name has after its colon, a file or a type of GGUF, and the names of all files.
func (f *Folder) Choice() (wanted string, names []string) { return f.name.File, f.names }

// Commit returns the name of the repository, its revision and the commit.
func (f *Folder) Commit() (repository, revision, commit string) {
	n := f.name
	n.Revision, n.File = "", ""
	return n.String(), f.name.Revision, f.commit
}

// ETag identifies a file's contents: the SHA-256 of a large file, git's SHA-1 of others.
func (f *Folder) ETag(name string) string {
	if file := f.files[name]; file != nil {
		return file.etag
	}
	return ""
}

// Compared reports whether all bytes of a file were compared with its etag, if that is a hash, by this program.
func (f *Folder) Compared(name string) bool {
	file := f.files[name]
	if file == nil || newContent(file.etag, file.size) == nil {
		return false
	}
	file.local.mu.Lock()
	defer file.local.mu.Unlock()
	return file.whole.Load() || file.local.stamp != ""
}

// ReadDir lists a folder of the repository.
func (f *Folder) ReadDir(name string) ([]fs.DirEntry, error) {
	prefix := name + "/"
	if name == "." {
		prefix = ""
	}
	var out []fs.DirEntry
	for _, file := range f.names {
		within, ok := strings.CutPrefix(file, prefix)
		if !ok {
			continue
		}
		first, _, nested := strings.Cut(within, "/")
		i := info{name: first, dir: nested}
		if !nested {
			i.size = f.files[file].size
		}
		if last := len(out) - 1; last < 0 || out[last].Name() != first {
			out = append(out, fs.FileInfoToDirEntry(i))
		}
	}
	if len(out) == 0 && name != "." {
		return nil, errMissing(f.Path(name))
	}
	return out, nil
}

// Stat describes a file. It asks nobody: the commit cannot change.
func (f *Folder) Stat(name string) (fs.FileInfo, error) {
	file := f.files[name]
	if file == nil {
		return nil, errMissing(f.Path(name))
	}
	return info{name: path.Base(name), size: file.size}, nil
}

// Open opens a file: in the cache if it is there, or else over HTTP.
func (f *Folder) Open(name string) (fs.File, error) {
	file := f.files[name]
	if file == nil {
		return nil, errMissing(f.Path(name))
	}
	local, err := f.openLocal(file)
	if err == nil && local == nil && f.c.opts.Keep {
		local, err = f.cache.keep(f, file)
	}
	if err != nil {
		return nil, err
	}
	return &handle{folder: f, file: file, local: local}, nil
}

// Expect announces ranges of files that will be read about once each, roughly in this order. whole says that nothing
// else will be read of these files, so that their checksums can be checked while they pass.
func (f *Folder) Expect(ranges func(yield func(name string, begin, end int64) bool), whole bool) {
	f.ahead.Store(true)
	var list []readahead.Range
	local := map[string]bool{}
	ranges(func(name string, begin, end int64) bool {
		file := f.files[name]
		if file == nil {
			return true
		}
		if _, known := local[name]; !known {
			opened, err := f.openLocal(file)
			if local[name] = err == nil && opened != nil; local[name] {
				_ = opened.Close()
			}
		}
		if local[name] {
			return true
		}
		if sum, err := hex.DecodeString(file.sha256); whole && err == nil && len(sum) == sha256.Size && !f.whole[name] {
			f.whole[name] = true
			f.reader.Check(name, file.size, [sha256.Size]byte(sum))
		} else if file.sha256 == "" {
			f.unhashed = name
		}
		list = append(list, readahead.Range{File: name, Begin: begin, End: end})
		return true
	})
	f.reader.Expect(list)
}

// Verify waits until the files whose bytes passed have been compared with their checksums. An error is [ErrChecksum] or
// [ErrChanged] if they differ.
func (f *Folder) Verify(ctx context.Context) error {
	if f.again != nil {
		if err := f.again(ctx); err != nil {
			f.differ.Store(errors.Is(err, ErrChanged))
			return err
		}
	}
	if err := f.checkLocal(); err != nil {
		return err
	}
	if err := f.reader.Wait(ctx); err != nil {
		return f.explain(err)
	}
	if f.unhashed != "" && f.c.opts.Verify {
		if err := f.c.skipped(f.Path(f.unhashed) + ": the hub publishes no SHA-256, so it was not checked"); err != nil {
			return err
		}
	}
	left := f.reader.Unchecked()
	for name := range f.whole {
		f.files[name].whole.Store(!slices.Contains(left, name))
	}
	if len(left) > 0 {
		f.c.opts.Notice(fmt.Sprintf("note: %s: the SHA-256 of %d files, such as %s, was not checked, because not all of "+
			"their bytes are read in order; --verify-source checks it", f.name, len(left), left[0]))
	}
	return nil
}

// fetch is the source of the reader.
func (f *Folder) fetch(ctx context.Context, name string, p []byte, offset int64) error {
	err := f.files[name].readRange(ctx, p, offset)
	if errors.Is(err, ErrChanged) {
		f.differ.Store(true)
	}
	return err
}

// Differs reports whether bytes that were read turned out to be others than the published ones.
func (f *Folder) Differs() bool { return f.differ.Load() }

// small reads a whole file and checks it.
func (f *Folder) small(file *file) ([]byte, error) {
	if file.size > limits.HubDocument {
		return nil, fmt.Errorf("%s: it is larger than %d MiB", file.what(), limits.HubDocument>>20)
	}
	data := make([]byte, file.size)
	if err := file.readRange(f.ctx, data, 0); err != nil {
		return nil, err
	}
	if err := file.check(data); err != nil {
		return nil, err
	}
	file.whole.Store(true)
	return data, nil
}

// check compares a whole file with its hash in the repository.
func (e entry) check(data []byte) error {
	h := newContent(e.etag, int64(len(data)))
	if h == nil {
		return nil
	}
	_, _ = h.Write(data)
	return h.check(e.path)
}

// explain names the repository in an error of the reader.
func (f *Folder) explain(err error) error {
	if sum, ok := readahead.Mismatch(err); ok {
		f.differ.Store(true)
		return checksumError(f.Path(sum.File), hex.EncodeToString(sum.Have[:]), hex.EncodeToString(sum.Want[:]))
	}
	return err
}

// info describes a file.
type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// handle is an open file.
type handle struct {
	folder *Folder
	file   *file
	local  *os.File // in the cache; nil = remote
	data   *bytes.Reader
}

func (h *handle) Stat() (fs.FileInfo, error) {
	return info{name: path.Base(h.file.path), size: h.file.size}, nil
}

func (h *handle) Close() error {
	if h.local != nil {
		return h.local.Close()
	}
	return nil
}

// Read reads the file in order. It fetches the whole file first, because only small files are read this way.
func (h *handle) Read(p []byte) (int, error) {
	if h.local != nil {
		return h.local.Read(p)
	}
	if h.data == nil {
		data, err := h.folder.small(h.file)
		if err != nil {
			return 0, err
		}
		h.data = bytes.NewReader(data)
	}
	return h.data.Read(p)
}

// ReadAt reads a range.
func (h *handle) ReadAt(p []byte, offset int64) (int, error) {
	if h.local != nil {
		return h.local.ReadAt(p, offset)
	}
	n := max(min(int64(len(p)), h.file.size-offset), 0)
	var err error
	if h.folder.ahead.Load() {
		err = h.folder.explain(h.folder.reader.ReadAt(h.folder.ctx, h.file.path, h.file.size, p[:n], offset))
	} else { // a header: exactly these bytes
		err = h.file.readRange(h.folder.ctx, p[:n], offset)
	}
	if err != nil {
		return 0, err
	}
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}
