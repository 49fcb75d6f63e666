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

// Whiteout returns what a member of a layer of a container image removes from earlier layers: a file or a folder, or
// all that is in a folder, "." in that of the root. ok is false for members that are files.
func Whiteout(name string) (gone string, ok bool) {
	base, dir := path.Base(name), path.Dir(name)
	hidden, ok := strings.CutPrefix(base, whiteout)
	if base == opaqueWhiteout {
		return dir, true
	}
	return path.Join(dir, hidden), ok
}

// Within reports whether a path is a file or a folder, or in that folder.
func Within(name, gone string) bool {
	return gone == "." || name == gone || strings.HasPrefix(name, gone+"/")
}

// whiteout removes what a member of layer n removes from earlier ones, and reports whether it is such a member.
func (w *writer) whiteout(n int, name string) bool {
	gone, ok := Whiteout(name)
	if !ok {
		return false
	}
	for name := range w.files {
		if Within(name, gone) && w.layers[name] < n {
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
