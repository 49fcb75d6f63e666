package source

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert/tokens"
	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/safetensors"
	"golang.org/x/sync/errgroup"
)

// File is a file in the image that is not a tensor.
type File struct {
	Kind   manifest.Kind `json:"kind"`
	Name   string        `json:"name"`             // path in the image
	Source string        `json:"source,omitempty"` // path it was read from; empty if it was generated
	Size   int64         `json:"size"`
	Data   []byte        `json:"-"`

	origin fingerprint // of the file that it was read from
}

// fingerprint identifies a file's original contents, before any change by the import.
type fingerprint struct {
	size int64
	sum  [sha256.Size]byte
}

func fingerprintOf(data []byte) fingerprint {
	return fingerprint{int64(len(data)), sha256.Sum256(data)}
}

// imported are the files that an image includes, beside documents.
var imported = []string{
	ConfigName, settings.GenerationName,
	"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json",
	"vocab.json", "vocab.txt", "merges.txt",
	"preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json",
	ModulesName, "config_sentence_transformers.json", "sentence_bert_config.json",
}

// unchecked are the imported files that need not be UTF-8 text.
var unchecked = []string{"tokenizer.model"}

var licensePrefixes = []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "USE_POLICY"}

// isImported reports whether an image includes a file that programs read.
func isImported(name string) bool { return slices.Contains(imported, name) || chat.HoldsTemplate(name) }

// kindOf reports whether an image includes a file of the folder, and the kind of its layer.
func kindOf(name string) (manifest.Kind, bool) {
	upper := strings.ToUpper(name)
	stem, ext, _ := strings.Cut(upper, ".")
	text := slices.Contains([]string{"", "TXT", "MD"}, ext)
	switch {
	case isImported(name) || tokens.Reads(name):
		return manifest.KindFile, true
	case text && slices.ContainsFunc(licensePrefixes, func(p string) bool { return strings.HasPrefix(stem, p) }):
		return manifest.KindLicense, true
	case upper == "README.MD":
		return manifest.KindFile, true
	}
	return "", false
}

// Includes reports whether a file of this name in a folder is read as a whole and becomes part of the image.
func Includes(name string) bool {
	_, ok := kindOf(name)
	return ok
}

// readFiles reads the files of a folder that belong in the image. Files that programs read must be UTF-8, and JSON
// files must be valid JSON, so that a damaged file is found at import and not when the model runs.
func readFiles(folder safetensors.Folder, entries []fs.DirEntry) ([]File, error) {
	var out []File
	complete := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "tokenizer.json" })
	var names []string
	for _, e := range entries {
		switch name := e.Name(); {
		case name == chat.AdditionalDir:
			more, err := chat.AdditionalFiles(folder)
			if err != nil {
				return nil, err
			}
			names = append(names, more...)
		case !e.IsDir() && !(complete && tokens.Reads(name)):
			names = append(names, name)
		}
	}
	for _, name := range names {
		if kind, ok := kindOf(name); ok {
			if !manifest.ValidPath(name) {
				return nil, fmt.Errorf("%s: %w: an image can have no file of this name; rename or remove it",
					clip.Controls(folder.Path(name)), ErrSource)
			}
			out = append(out, File{Kind: kind, Name: name, Source: folder.Path(name)})
		}
	}
	errs := make([]error, len(out))
	var group errgroup.Group
	group.SetLimit(maxReading)
	for i := range out {
		group.Go(func() error {
			f := &out[i]
			f.Data, errs[i] = readBounded(folder, f.Name)
			f.Size, f.origin = int64(len(f.Data)), fingerprintOf(f.Data)
			return nil
		})
	}
	_ = group.Wait()
	for i, f := range out {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if err := checkText(f.Name, f.Data); err != nil && isImported(f.Name) {
			return nil, fmt.Errorf("%s: %w: %w", f.Source, ErrSource, err)
		}
	}
	out, err := withTokenizer(folder, out)
	if err != nil {
		return nil, err
	}
	return withPooling(folder, out)
}

// withTokenizer adds the tokenizer.json of a tokenizer that is in other files, and completes its settings. Files that
// are not known how to read stay as they are; the plan says so.
func withTokenizer(folder safetensors.Folder, files []File) ([]File, error) {
	made, err := tokens.Make(TokenizerFiles(files))
	switch {
	case errors.Is(err, tokens.ErrUnknown):
		return files, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %w", folder.Path("."), ErrSource, err)
	case made == nil:
		return files, nil
	}
	put := func(name string, data []byte) {
		at := slices.IndexFunc(files, func(f File) bool { return f.Name == name })
		if at < 0 {
			files = append(files, File{Kind: manifest.KindFile, Name: name})
			at = len(files) - 1
		}
		files[at].Data, files[at].Size = data, int64(len(data))
	}
	if made.Replaced {
		at := slices.IndexFunc(files, func(f File) bool { return f.Name == made.From })
		files[at].Name = "tokenizer.json"
	}
	put("tokenizer.json", made.Tokenizer)
	if made.Settings != nil {
		put("tokenizer_config.json", made.Settings)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// TokenizerFiles returns files as package tokens takes them.
func TokenizerFiles(files []File) tokens.Folder {
	out := tokens.Folder{}
	for _, f := range files {
		out[f.Name] = f.Data
	}
	return out
}

// maxReading is the number of files that are read at a time: a remote file takes a round trip or more.
const maxReading = 8

// readBounded reads a small file, and checks by its first bytes that it is one.
func readBounded(folder safetensors.Folder, name string) ([]byte, error) {
	at := folder.Path(name)
	if info, err := folder.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: not a regular file", at, ErrSource)
	}
	most := pyjson.MostBytes(name)
	data, err := safetensors.ReadSmall(folder, name, most)
	if errors.Is(err, safetensors.ErrTooLong) {
		return nil, fmt.Errorf("%s: %w: more than %d MiB", at, ErrSource, most>>20)
	}
	if err != nil {
		return nil, err
	}
	if wrong := wrongKind(name, data); wrong != "" {
		return nil, fmt.Errorf("%s: %w: %s", at, ErrSource, wrong)
	}
	return data, nil
}

// wrongKind says what is in the place of a file, if that is not it: what downloads and clones leave there, or a file of
// another format. Documents may be pages, and empty.
func wrongKind(name string, data []byte) string {
	found := filekind.Of(data, int64(len(data)))
	document := strings.EqualFold(name, "README.md")
	if kind, _ := kindOf(name); kind == manifest.KindLicense {
		document = true
	}
	switch {
	case found.Kind == filekind.Pointer:
		return found.Wrong()
	case document:
		return ""
	case path.Ext(name) == ".json":
		return found.Wrong(filekind.JSON)
	case name == "tokenizer.model":
		return found.Wrong(filekind.Piece, filekind.Ranks)
	case found.Stray() && found.Kind != filekind.Empty:
		return found.Wrong()
	}
	return ""
}

func checkText(name string, data []byte) error {
	if slices.Contains(unchecked, name) {
		return nil
	}
	if !utf8.Valid(data) {
		at := 0
		for r, size := utf8.DecodeRune(data); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(data[at:]) {
			at += size
		}
		return fmt.Errorf("not UTF-8 at byte %d, line %d", at, 1+bytes.Count(data[:at], []byte("\n")))
	}
	if path.Ext(name) != ".json" {
		return nil
	}
	if err := pyjson.Bound(name, data); err != nil || name == ConfigName { // which is parsed later, with better messages
		return err
	}
	return pyjson.Check(data)
}
