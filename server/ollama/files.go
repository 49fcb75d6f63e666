package ollama

import (
	"encoding/binary"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/server/wire"
	"github.com/opencontainers/go-digest"
)

// maxFiles is the maximum number of files of a model.
const maxFiles = 4096

// files checks the names and digests of the request's files.
func (q createRequest) files() (map[string]digest.Digest, error) {
	if len(q.Files) > maxFiles {
		return nil, wire.BadRequest("%d files, at most %d are allowed", len(q.Files), maxFiles)
	}
	out := map[string]digest.Digest{}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(q.Files)) {
		if why := badFileName(name); why != "" {
			return nil, wire.BadRequest("file %q: %s; use a plain name such as model.safetensors", wire.Clip(name), why)
		}
		if other, twice := seen[strings.ToLower(name)]; twice {
			return nil, wire.BadRequest("files %q and %q differ only in case", wire.Clip(other), wire.Clip(name))
		}
		seen[strings.ToLower(name)] = name
		d := digest.Digest(q.Files[name])
		if err := d.Validate(); err != nil || d.Algorithm() != digest.SHA256 {
			return nil, wire.BadRequest("file %q: %q is not sha256: and 64 lower-case hexadecimal digits", wire.Clip(name),
				wire.Clip(string(d)))
		}
		out[name] = d
	}
	if name := ggufOf(out); name != "" {
		for other := range out {
			if strings.HasSuffix(other, weightsExt) {
				return nil, wire.BadRequest("files %q and %q both have weights: send one of them", wire.Clip(name),
					wire.Clip(other))
			}
		}
	}
	return out, nil
}

// ggufOf returns the first GGUF file, which stands for all parts of a split one; "" if there is none.
func ggufOf(files map[string]digest.Digest) string {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if source.IsGGUF(name) {
			return name
		}
	}
	return ""
}

// reservedNames are device names on Windows, with any extension.
var reservedNames = []string{"con", "prn", "aux", "nul", "conin$", "conout$"}

// badFileName returns why a name is not a valid file name on every system, or "".
func badFileName(name string) string {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	stem = strings.TrimRight(stem, " ")
	switch {
	case name == "":
		return "the name is empty"
	case len(name) > 255:
		return "the name exceeds 255 bytes"
	case strings.HasPrefix(name, "."):
		return "the name starts with a dot"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "the name ends with a dot or a space"
	case strings.ContainsAny(name, `/\:*?"<>|`) ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		return "the name contains a character that file names cannot have"
	case slices.Contains(reservedNames, stem), len(stem) == 4 &&
		(strings.HasPrefix(stem, "com") || strings.HasPrefix(stem, "lpt")) && stem[3] >= '0' && stem[3] <= '9':
		return "the name is a device on some systems"
	}
	return ""
}

// Limits of what is read from a model's files into memory, in bytes. The largest published tokenizers and headers take
// a tenth of that.
const (
	maxTexts   = 512 << 20
	maxHeaders = 128 << 20
)

const weightsExt = ".safetensors"

// checkFolder rejects files that would take too much memory. A file counts once for each of its names.
func checkFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var texts, headers int64
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		var head [8]byte // of a safetensors file: the length of its header
		_, failed := io.ReadFull(f, head[:])
		info, err := f.Stat()
		f.Close()
		switch {
		case err != nil:
			return err
		case source.IsGGUF(e.Name()): // its reader has limits of its own
		case !strings.HasSuffix(e.Name(), weightsExt):
			texts += info.Size()
		case failed == nil:
			headers += int64(min(binary.LittleEndian.Uint64(head[:]), uint64(info.Size())))
		}
	}
	if texts > maxTexts {
		return wire.BadRequest("the files other than weights exceed %d MiB together", maxTexts>>20)
	}
	if headers > maxHeaders {
		return wire.BadRequest("the headers of the weights exceed %d MiB together", maxHeaders>>20)
	}
	return nil
}
