package unpack

import (
	"path"
	"strings"
)

// The names by which a layer of a container image removes files of earlier layers
// (https://github.com/opencontainers/image-spec/blob/v1.1.1/layer.md#whiteouts).
const (
	whiteout       = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// whiteout removes what a member of layer n removes from earlier ones, and reports whether it is such a member.
func (w *writer) whiteout(n int, name string) bool {
	base, dir := path.Base(name), path.Dir(name)
	hidden, ok := strings.CutPrefix(base, whiteout)
	if !ok {
		return false
	}
	gone := dir
	if base != opaqueWhiteout {
		gone = path.Join(dir, hidden)
	}
	for name := range w.files {
		if (gone == "." || name == gone || strings.HasPrefix(name, gone+"/")) && w.layers[name] < n {
			w.remove(name)
		}
	}
	return true
}

// remove removes a file from the stage.
func (w *writer) remove(name string) {
	_ = w.stage.Remove(name)
	w.names.Remove(name)
	delete(w.files, name)
}
