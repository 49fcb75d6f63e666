package unpack

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"golang.org/x/text/unicode/norm"
)

// maxName is the limit of common file systems on the name of a file, in bytes, and maxPath on a path.
const (
	maxName = 255
	maxPath = 4096
)

// CheckPath checks that a path names a file in a folder on every operating system.
func CheckPath(name string) error {
	if !manifest.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("path %q is not relative, or has '..', '\\', ':' or control characters: %w",
			manifest.Clip(name), ErrArchive)
	}
	if len(name) > maxPath {
		return fmt.Errorf("path %q has more than %d bytes: %w", manifest.Clip(name), maxPath, ErrArchive)
	}
	parts := strings.Split(name, "/")
	if len(parts) > limits.ArchiveDepth {
		return fmt.Errorf("path %q is in more than %d folders: %w", manifest.Clip(name), limits.ArchiveDepth, ErrArchive)
	}
	for _, part := range parts {
		if len(part) > maxName {
			return fmt.Errorf("path %q: a name has more than %d bytes: %w", manifest.Clip(name), maxName, ErrArchive)
		}
	}
	return nil
}

// Names are the paths of files in one folder. The zero value is empty.
type Names struct {
	// Mixed says that no folder has to hold the files, so that names that clash are no error. Their bytes still are
	// bounded.
	Mixed bool

	files, folders map[string]string // as they are, by how a file system that ignores case sees them
	bytes          int
}

// fold returns a path as file systems that ignore case, and forms of the same letter, compare it.
func fold(name string) string { return strings.ToLower(norm.NFC.String(name)) }

// Add adds a file. It is an [ErrArchive] if a file system could not hold it beside the others.
func (n *Names) Add(name string) error {
	if n.files == nil {
		n.files, n.folders = map[string]string{}, map[string]string{}
	}
	if n.bytes += len(name); n.bytes > limits.ArchiveNames {
		return errManyNames
	}
	if n.Mixed {
		return nil
	}
	key := fold(name)
	if was, ok := n.files[key]; ok {
		return clash("file", was, name)
	}
	if _, ok := n.folders[key]; ok {
		return both(name)
	}
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		key := fold(above)
		was, ok := n.folders[key]
		if ok && was == above {
			break // those above it are there
		}
		if ok {
			return clash("folder", was, above)
		}
		if _, ok := n.files[key]; ok {
			return both(above)
		}
		n.folders[key] = above
	}
	n.files[key] = name
	return nil
}

var errManyNames = fmt.Errorf("its paths have more than %d MiB: %w", limits.ArchiveNames>>20, ErrArchive)

func both(name string) error {
	return fmt.Errorf("%q is a file and a folder: %w", manifest.Clip(name), ErrArchive)
}

// Remove removes a file. Its folders stay.
func (n *Names) Remove(name string) { delete(n.files, fold(name)) }

func clash(what, a, b string) error {
	if a == b {
		return fmt.Errorf("%s %q is there twice: %w", what, manifest.Clip(a), ErrArchive)
	}
	return fmt.Errorf("%ss %q and %q differ only in case: %w", what, manifest.Clip(a), manifest.Clip(b), ErrArchive)
}
