package convert

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/manifest"
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

// maxFile bounds the files that are held in memory. The largest published tokenizer.json has about 35 MB.
const maxFile = 256 << 20

// imported are the files that an image includes, beside documents.
var imported = []string{
	configName, "generation_config.json",
	"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json",
	"vocab.json", "vocab.txt", "merges.txt",
	"chat_template.jinja", "chat_template.json",
	"preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json",
	modulesName, "config_sentence_transformers.json", "sentence_bert_config.json",
}

// unchecked are the imported files that need not be UTF-8 text.
var unchecked = []string{"tokenizer.model"}

var licensePrefixes = []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "USE_POLICY"}

// kindOf reports whether an image includes a file of the folder, and the kind of its layer.
func kindOf(name string) (manifest.Kind, bool) {
	upper := strings.ToUpper(name)
	stem, ext, _ := strings.Cut(upper, ".")
	text := slices.Contains([]string{"", "TXT", "MD"}, ext)
	switch {
	case slices.Contains(imported, name):
		return manifest.KindFile, true
	case text && slices.ContainsFunc(licensePrefixes, func(p string) bool { return strings.HasPrefix(stem, p) }):
		return manifest.KindLicense, true
	case upper == "README.MD":
		return manifest.KindFile, true
	}
	return "", false
}

// readFiles reads the files of a folder that belong in the image. Files that programs read must be UTF-8, and JSON
// files must be valid JSON, so that a damaged file is found at import and not when the model runs.
func readFiles(dir string, entries []fs.DirEntry) ([]File, error) {
	var out []File
	for _, e := range entries {
		kind, ok := kindOf(e.Name())
		if !ok || e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		data, err := readBounded(path)
		if err != nil {
			return nil, err
		}
		if err := checkText(e.Name(), data); err != nil && slices.Contains(imported, e.Name()) {
			return nil, fmt.Errorf("%s: %w: %w", path, ErrSource, err)
		}
		out = append(out, File{
			Kind: kind, Name: e.Name(), Source: path,
			Size: int64(len(data)), Data: data, origin: fingerprintOf(data),
		})
	}
	return withPooling(dir, out)
}

func readBounded(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: not a regular file", path, ErrSource)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: %w: more than %d MiB", path, ErrSource, maxFile>>20)
	}
	return data, nil
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
	if filepath.Ext(name) != ".json" || name == configName { // config.json is parsed later, with better messages
		return nil
	}
	var v json.RawMessage
	err := json.Unmarshal(data, &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at := min(max(syntax.Offset, 0), int64(len(data)))
		return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:at], []byte("\n")), err)
	}
	return err
}

// marshal writes compact JSON: map keys sorted, no HTML escaping, no final newline.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
