package cmd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// disk models a folder on a disk that loses unsynced data in a crash: file contents, and names in folders. The system
// calls of a log drive it.
type disk struct {
	top   string // path of the real folder
	root  *node
	umask fs.FileMode
	at    map[string]int64 // offset of an open file by descriptor; -1: its end
}

// node is a file or a folder.
type node struct {
	now, kept version // current state, and the durable state
	next      map[int]version
	synced    bool // kept is set; otherwise a crash may lose all contents
}

// version is the state of a node.
type version struct {
	data    []byte
	mode    fs.FileMode
	entries map[string]*node // of a folder
}

// same reports whether two versions are files with the same contents and mode, or both folders.
func (v version) same(w version) bool {
	return (v.entries == nil) == (w.entries == nil) && v.mode == w.mode && bytes.Equal(v.data, w.data)
}

func (v version) clone() version {
	return version{bytes.Clone(v.data), v.mode, maps.Clone(v.entries)}
}

func newNode(v version) *node { return &node{now: v, next: map[int]version{}} }

// dirty reports whether a crash could change the node.
func (n *node) dirty() bool {
	return !n.synced || !n.now.same(n.kept) || !maps.Equal(n.now.entries, n.kept.entries)
}

// readDisk returns a model of a folder, with everything durable.
func readDisk(top string) (*disk, error) {
	d := &disk{top: top, umask: fs.FileMode(syscall.Umask(0o022)), at: map[string]int64{}}
	syscall.Umask(int(d.umask)) // the only way to read the umask is to set it
	var err error
	d.root, err = readNode(top)
	return d, err
}

func readNode(path string) (*node, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	v := version{mode: info.Mode().Perm()}
	if info.IsDir() {
		v.entries = map[string]*node{}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if v.entries[e.Name()], err = readNode(filepath.Join(path, e.Name())); err != nil {
				return nil, err
			}
		}
	} else if v.data, err = os.ReadFile(path); err != nil {
		return nil, err
	}
	n := newNode(v)
	n.kept, n.synced = v.clone(), true
	return n, nil
}

// copy returns a deep copy of the disk, with everything durable.
func (d *disk) copy() *disk {
	var copied func(n *node) *node
	copied = func(n *node) *node {
		v := n.now.clone()
		for name, child := range v.entries {
			v.entries[name] = copied(child)
		}
		c := newNode(v)
		c.kept, c.synced = v.clone(), true
		return c
	}
	return &disk{top: d.top, root: copied(d.root), umask: d.umask, at: map[string]int64{}}
}

// find returns the node at a path, or nil if there is none or the path is outside the folder.
func (d *disk) find(path string) *node {
	rel, err := filepath.Rel(d.top, path)
	if err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	n := d.root
	for _, name := range strings.Split(rel, string(filepath.Separator)) {
		if name != "." && n != nil {
			n = n.now.entries[name]
		}
	}
	return n
}

// set puts a node at a path, or removes it if n is nil.
func (d *disk) set(path string, n *node) {
	dir := d.find(filepath.Dir(path))
	if dir == nil {
		return
	}
	if n == nil {
		delete(dir.now.entries, filepath.Base(path))
		return
	}
	dir.now.entries[filepath.Base(path)] = n
}

func (d *disk) has(path string) bool { return path == d.top || strings.HasPrefix(path, d.top+"/") }

// begin records what a sync will make durable: the state at its start, without later writes.
func (d *disk) begin(c traced) {
	if c.name != "fsync" && c.name != "fdatasync" {
		return
	}
	if _, path := c.fd(0); d.find(path) != nil {
		n := d.find(path)
		n.next[c.end] = n.now.clone()
	}
}

// end applies a finished call. A call on the folder that the model does not know is an error.
func (d *disk) end(c traced) error {
	if c.ret < 0 {
		return nil
	}
	switch c.name {
	case "openat":
		return d.open(c)
	case "write", "pwrite64", "lseek", "ftruncate", "fchmod", "fsync", "fdatasync":
		if _, path := c.fd(0); d.has(path) {
			n := d.find(path)
			if n == nil {
				return fmt.Errorf("%s of %s, which is not there", c.name, path)
			}
			return d.change(c, n)
		}
	case "renameat", "renameat2", "linkat":
		from, err := c.path(0, 1)
		if err != nil {
			return err
		}
		to, err := c.path(2, 3)
		if err != nil || !d.has(from) && !d.has(to) {
			return err
		}
		n := d.find(from)
		if n == nil || !d.has(to) {
			return fmt.Errorf("%s %s to %s: the model knows one of them only", c.name, from, to)
		}
		d.set(to, n)
		if c.name != "linkat" {
			d.set(from, nil)
		}
	case "unlinkat", "mkdirat":
		path, err := c.path(0, 1)
		if err != nil || !d.has(path) {
			return err
		}
		var n *node
		if c.name == "mkdirat" {
			n = newNode(version{mode: 0o755, entries: map[string]*node{}})
		}
		d.set(path, n)
	default:
		if args := unescape(strings.Join(c.args, " ")); strings.Contains(args, d.top) || c.name == "io_uring_setup" {
			return fmt.Errorf("the model does not know %s %.200s", c.name, args)
		}
	}
	return nil
}

func (d *disk) open(c traced) error {
	path, err := c.path(0, 1)
	if err != nil || !d.has(path) {
		return err
	}
	n := d.find(path)
	flags := strings.Split(c.args[2], "|")
	if n == nil {
		if !slices.Contains(flags, "O_CREAT") {
			return fmt.Errorf("open %s, which is not there", path)
		}
		mode, err := c.number(3)
		if err != nil {
			return err
		}
		n = newNode(version{mode: fs.FileMode(mode) &^ d.umask})
		d.set(path, n)
	}
	if slices.Contains(flags, "O_TRUNC") {
		n.now.data = nil
	}
	at := int64(0)
	if slices.Contains(flags, "O_APPEND") {
		at = -1
	}
	d.at[fmt.Sprint(c.ret)] = at
	return nil
}

// change applies a call on an open file.
func (d *disk) change(c traced, n *node) error {
	fd, _ := c.fd(0)
	switch c.name {
	case "fsync", "fdatasync":
		n.kept, n.synced = n.next[c.end], true
		delete(n.next, c.end)
	case "lseek":
		d.at[fd] = c.ret
	case "fchmod":
		mode, err := c.number(1)
		n.now.mode = fs.FileMode(mode)
		return err
	case "ftruncate":
		size, err := c.number(1)
		n.now.data = append(n.now.data, make([]byte, max(size-int64(len(n.now.data)), 0))...)[:size]
		return err
	case "write", "pwrite64":
		text, err := c.text(1)
		if err != nil {
			return err
		}
		at := d.at[fd]
		if at < 0 {
			at = int64(len(n.now.data))
		} else if c.name == "write" {
			d.at[fd] = at + c.ret
		}
		if c.name == "pwrite64" {
			if at, err = c.number(3); err != nil {
				return err
			}
		}
		n.now.data = append(n.now.data, make([]byte, max(at+c.ret-int64(len(n.now.data)), 0))...)
		copy(n.now.data[at:], text[:c.ret])
	}
	return nil
}

// crash returns the files that a crash could leave, by path. Contents are the synced ones. The names in a folder are
// the current ones if ahead says so, or else the synced ones. skip excludes paths.
func (d *disk) crash(ahead, skip func(path string) bool) map[string]version {
	files := map[string]version{}
	var walk func(path string, n *node)
	walk = func(path string, n *node) {
		v := n.kept
		if n.now.entries == nil {
			if !n.synced {
				v.mode = n.now.mode
			}
			files[path] = v
			return
		}
		if ahead(path) {
			v = n.now
		}
		files[path] = version{mode: 0o755, entries: map[string]*node{}}
		for name, child := range v.entries {
			if path := filepath.Join(path, name); !skip(path) {
				walk(path, child)
			}
		}
	}
	walk(".", d.root)
	return files
}

// sum returns a checksum of files.
func sum(files map[string]version) (out [sha256.Size]byte) {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		v := files[path]
		fmt.Fprintf(h, "%q %v %t ", path, v.mode, v.entries != nil)
		_ = binary.Write(h, binary.LittleEndian, int64(len(v.data)))
		h.Write(v.data)
	}
	h.Sum(out[:0])
	return out
}

// folder is a real folder that takes on one state after another.
type folder struct {
	top string
	has map[string]version
}

// become makes the folder contain exactly these files.
func (f *folder) become(files map[string]version) error {
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(f.has))) {
		if v, stays := files[path]; stays && v.same(f.has[path]) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(f.top, path)); err != nil {
			return err
		}
		delete(f.has, path)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if _, there := f.has[path]; there {
			continue
		}
		v, to := files[path], filepath.Join(f.top, path)
		var err error
		if v.entries != nil {
			err = os.MkdirAll(to, 0o755)
		} else if err = os.WriteFile(to, v.data, 0o600); err == nil {
			err = os.Chmod(to, v.mode)
		}
		if err != nil {
			return err
		}
		f.has[path] = v
	}
	return nil
}

// clear empties the folder.
func (f *folder) clear() error {
	f.has = map[string]version{}
	return os.RemoveAll(f.top)
}
