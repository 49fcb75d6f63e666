package unpack

import (
	"path"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
)

// The names by which a layer of a container image removes files of earlier layers
// (https://github.com/opencontainers/image-spec/blob/v1.1.1/layer.md#whiteouts).
const (
	whiteout       = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// Whiteouts are what a layer of a container image removes from earlier ones. The zero value removes nothing. They are
// applied once, after the layer, so that the work does not grow with the product of whiteouts and files.
type Whiteouts struct {
	paths map[string]bool // of files and folders
	bytes int
}

// Add adds a member of the layer if it is a whiteout, and reports whether it is one.
func (w *Whiteouts) Add(member string) (is bool, err error) {
	base, dir := path.Base(member), path.Dir(member)
	hidden, is := strings.CutPrefix(base, whiteout)
	if !is {
		return false, nil
	}
	gone := path.Join(dir, hidden)
	if base == opaqueWhiteout {
		gone = dir // all that is in it, "." in the root
	}
	if w.paths == nil {
		w.paths = map[string]bool{}
	}
	if !w.paths[gone] {
		w.bytes += len(gone)
	}
	if w.bytes > limits.ArchiveNames {
		return true, errManyNames
	}
	w.paths[gone] = true
	return true, nil
}

// Hide reports whether a file of an earlier layer is removed.
func (w *Whiteouts) Hide(name string) bool {
	for at := name; ; at = path.Dir(at) {
		if w.paths[at] || at == "." {
			return w.paths[at]
		}
	}
}

// hide removes the files of layers before n that layer n removes.
func (w *writer) hide(n int, gone *Whiteouts) {
	for name := range w.files {
		if w.layers[name] < n && gone.Hide(name) {
			w.remove(name)
		}
	}
}

// replace removes the files of layers before n whose place a file of layer n takes, or a folder that it is in.
func (w *writer) replace(n int, name string) {
	for at := name; at != "."; at = path.Dir(at) {
		if _, there := w.files[at]; there && w.layers[at] < n {
			w.remove(at)
		}
	}
}

// remove removes a file from the stage.
func (w *writer) remove(name string) {
	_ = w.stage.Remove(name)
	w.names.Remove(name)
	delete(w.files, name)
}
