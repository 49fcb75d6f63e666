package image

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/safetensors"
)

// Names reports whether a value of FROM is the image's name.
func (i *Image) Names(value string) bool { return value == i.Name }

// Open returns the folder of the image that holds its model. The caller closes it.
func (i *Image) Open(ctx context.Context, _ string) (safetensors.Folder, error) {
	t, err := i.readTree(ctx)
	if err != nil {
		return nil, err
	}
	f := &folder{tree: t, root: "."}
	if f.root, f.beside, err = f.model(); err != nil {
		t.remove()
		return nil, err
	}
	return f, nil
}

// folder is a folder of an image. Weights that are in folders below it, while their configuration is in it, are also in
// it under their own names.
type folder struct {
	tree   *tree
	root   string
	beside map[string]string // paths in the image, by name in the folder
}

// Close removes what was unpacked.
func (f *folder) Close() error {
	f.tree.remove()
	return nil
}

// Path implements [safetensors.Folder].
func (f *folder) Path(name string) string {
	if at := path.Join(f.root, name); at != "." {
		return f.tree.image.Name + "/" + at
	}
	return f.tree.image.Name
}

// Remedy says what a user does who wants one of several models.
func (f *folder) Remedy() string {
	return "take out the files of one with `ingot extract " + f.tree.image.Name +
		" PATTERN DIR`, and name that folder or file"
}

// at returns the path in the image of a file of the folder.
func (f *folder) at(name string) string {
	if at, ok := f.beside[name]; ok {
		return at
	}
	return path.Join(f.root, name)
}

// Open implements [safetensors.Folder].
func (f *folder) Open(name string) (fs.File, error) {
	at := f.at(name)
	found, ok := f.tree.files[at]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: f.Path(name), Err: fs.ErrNotExist}
	}
	var in *os.File
	var err error
	if found.unpacked != "" {
		in, err = os.Open(found.unpacked)
	} else {
		in, err = f.tree.image.Blob(found.blob)
	}
	if err != nil {
		return nil, err
	}
	return openFile{io.NewSectionReader(in, found.offset, found.size), in, info{path.Base(at), found.size, false}}, nil
}

// openFile is an open file of an image.
type openFile struct {
	*io.SectionReader

	blob *os.File
	info info
}

func (o openFile) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o openFile) Close() error               { return o.blob.Close() }

// info describes a file or a folder.
type info struct {
	name   string
	size   int64
	folder bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.folder }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	if i.folder {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// Stat implements [safetensors.Folder].
func (f *folder) Stat(name string) (fs.FileInfo, error) {
	at := f.at(name)
	if found, ok := f.tree.files[at]; ok {
		return info{path.Base(at), found.size, false}, nil
	}
	if entries, _ := f.ReadDir(name); len(entries) > 0 {
		return info{path.Base(at), 0, true}, nil
	}
	return nil, &fs.PathError{Op: "stat", Path: f.Path(name), Err: fs.ErrNotExist}
}

// ReadDir implements [safetensors.Folder].
func (f *folder) ReadDir(name string) ([]fs.DirEntry, error) {
	below, entries := map[string]info{}, []fs.DirEntry(nil)
	prefix := path.Join(f.root, name) + "/"
	for at, found := range f.tree.files {
		rest, ok := strings.CutPrefix("./"+at, "./"+strings.TrimPrefix(prefix, "./"))
		if !ok {
			continue
		}
		if first, _, deeper := strings.Cut(rest, "/"); deeper {
			below[first] = info{first, 0, true}
		} else {
			below[rest] = info{rest, found.size, false}
		}
	}
	if path.Clean(name) == "." {
		for name, at := range f.beside {
			below[name] = info{name, f.tree.files[at].size, false}
		}
	}
	for _, i := range slices.SortedFunc(maps.Values(below), func(a, b info) int { return cmp.Compare(a.name, b.name) }) {
		entries = append(entries, fs.FileInfoToDirEntry(i))
	}
	if entries == nil && path.Clean(name) != "." {
		return nil, &fs.PathError{Op: "open", Path: f.Path(name), Err: fs.ErrNotExist}
	}
	return entries, nil
}
