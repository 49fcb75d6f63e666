package cli

import (
	"io"
	"os"
	"strings"

	"github.com/ingotml/ingot/internal/atomicfile"
)

// WriteFile replaces a file that others may read.
func WriteFile(path string, write func(io.Writer) error) error {
	return atomicfile.Write(path, 0o644, func(f *os.File) error { return write(f) })
}

// HasTag reports whether a name has a tag: a colon after the last slash.
func HasTag(name string) bool {
	name, _, _ = strings.Cut(name, "@")
	return strings.LastIndexByte(name, ':') > strings.LastIndexByte(name, '/')
}
