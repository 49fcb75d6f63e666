package ollama

import (
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/server/wire"
	"github.com/opencontainers/go-digest"
)

// maxFiles is the maximum number of files of a model.
const maxFiles = 4096

// uploaded checks the names and digests of a field of files.
func uploaded(field string, files map[string]string) (map[string]digest.Digest, error) {
	if len(files) > maxFiles {
		return nil, wire.BadRequest("%s: %d files, at most %d are allowed", field, len(files), maxFiles)
	}
	out := map[string]digest.Digest{}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if why := badFileName(name); why != "" {
			return nil, wire.BadRequest("%s: file %q: %s; use a plain name such as model.safetensors", field,
				wire.Clip(name), why)
		}
		if other, twice := seen[strings.ToLower(name)]; twice {
			return nil, wire.BadRequest("%s: files %q and %q differ only in case", field, wire.Clip(other), wire.Clip(name))
		}
		seen[strings.ToLower(name)] = name
		d := digest.Digest(files[name])
		if err := d.Validate(); err != nil || d.Algorithm() != digest.SHA256 {
			return nil, wire.BadRequest("%s: file %q: %q is not sha256: and 64 lower-case hexadecimal digits", field,
				wire.Clip(name), wire.Clip(string(d)))
		}
		out[name] = d
	}
	return out, nil
}

// uploadFolder is a folder with files that were uploaded for a request.
type uploadFolder struct {
	path    string
	field   string // of the request
	command string // that names it
	called  string // in messages
	files   map[string]digest.Digest
	remove  func()
}

// folders makes folders of a request's files. The caller removes them, after an error too.
func (s *api) folders(q buildInput) (list []uploadFolder, err error) {
	for _, d := range []uploadFolder{
		{field: "files", command: modelfile.From, called: "the files", files: q.files},
		{field: "adapters", command: modelfile.Adapter, called: "the adapter", files: q.adapter},
		{field: "draft_files", command: modelfile.Draft, called: "the draft's files", files: q.draft},
	} {
		if len(d.files) == 0 {
			continue
		}
		d.path, d.remove, err = ingest.Folder(s.opts.Store, d.files)
		if errors.Is(err, manifest.ErrBlobMissing) {
			return list, wire.BadRequest("%s: %v; upload it with POST %sDIGEST", d.field, err, blobPath)
		}
		if err != nil {
			return list, err
		}
		list = append(list, d)
		if err := checkFolder(d.path, d.command == modelfile.Adapter); err != nil {
			return list, err
		}
	}
	return list, nil
}

func removeAll(dirs []uploadFolder) {
	for _, d := range dirs {
		d.remove()
	}
}

func paths(dirs []uploadFolder) (out []string) {
	for _, d := range dirs {
		out = append(out, d.path)
	}
	return out
}

// withoutFolders removes the paths of folders from a message.
func withoutFolders(message string, dirs []uploadFolder) string {
	for _, d := range dirs {
		message = strings.ReplaceAll(message, d.path+string(filepath.Separator), "")
		message = strings.ReplaceAll(message, d.path, d.called)
	}
	return message
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
// a third of that.
const (
	maxTexts   = 128 << 20
	maxHeaders = 64 << 20
)

// checkFolder rejects files that would take too much memory, weights of two formats, and adapters that cannot be
// merged. A file counts once for each of its names.
func checkFolder(dir string, adapter bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var texts, headers int64
	weights := map[filekind.Kind]string{}
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found, length, err := headOf(filepath.Join(dir, e.Name()), info.Size())
		if err != nil {
			return err
		}
		weights[found.Kind] = e.Name()
		switch {
		case source.Includes(e.Name()): // read as a whole, whatever it is
			texts += info.Size()
		case found.Kind == filekind.GGUF: // its reader has limits of its own
		case found.Kind == filekind.Safetensors || strings.EqualFold(filepath.Ext(e.Name()), ".safetensors"):
			headers += length
		default:
			texts += info.Size()
		}
	}
	a, both := weights[filekind.GGUF]
	if both && adapter {
		return wire.BadRequest("adapters: %q is in GGUF, which cannot be merged; send adapter_config.json and "+
			"adapter_model.safetensors, as it was trained", wire.Clip(a))
	}
	if b, ok := weights[filekind.Safetensors]; ok && both {
		return wire.BadRequest("files %q and %q both have weights: send one of them", wire.Clip(a), wire.Clip(b))
	}
	if texts > maxTexts {
		return wire.BadRequest("the files other than weights exceed %d MiB together", maxTexts>>20)
	}
	if headers > maxHeaders {
		return wire.BadRequest("the headers of the weights exceed %d MiB together", maxHeaders>>20)
	}
	return nil
}

// headOf returns what a file is, and the length of its header if it is a safetensors file.
func headOf(path string, size int64) (found filekind.Found, length int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return found, 0, err
	}
	defer f.Close()
	head := make([]byte, filekind.HeadSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return found, 0, err
	}
	if n >= 8 {
		length = int64(min(binary.LittleEndian.Uint64(head), uint64(size)))
	}
	return filekind.Of(head[:n], size), length, nil
}
