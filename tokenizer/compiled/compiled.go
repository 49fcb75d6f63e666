// Package compiled keeps compiled forms of large tokenizers in the user's cache, so that a vocabulary of 262,144 tokens
// loads in milliseconds the second time.
//
// Contract:
//   - A form is found by the SHA-256 of its tokenizer.json or tokenizer.model, which the caller knows, and by the
//     version of the format. A checksum tells a damaged form, which is made again.
//   - The cache is never needed: if it cannot be read or written, or others could have written it, the tokenizer is
//     loaded from its source.
//   - Forms are written beside their place and renamed, so processes may share the folder. It holds at most
//     limits.CompiledVocabularies forms; the least recently used are removed.
package compiled

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/internal/usercache"
	"github.com/ingotml/ingot/tokenizer"
)

const (
	// header is the length of the checksum and the zeros behind it, which keep the tables aligned.
	header = 8
	// maxForm bounds the file that is read into memory.
	maxForm = 512 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// source is a kind of file that is compiled.
type source struct {
	suffix     string // of its forms; it has the version of the format
	worthwhile int    // the size of a file from which its form is kept
	load       func(file, config []byte) (*tokenizer.Tokenizer, error)
	compile    func(file, config []byte) (*tokenizer.Tokenizer, []byte, error)
	loadForm   func(form, config []byte) (*tokenizer.Tokenizer, error)
}

var (
	jsonSource = source{".v1", 1 << 20, tokenizer.Load, tokenizer.Compile, tokenizer.LoadCompiled}
	// modelSource is a tokenizer.model. It has no list of merges, which are found when it is loaded.
	modelSource = source{".model.v1", 256 << 10, tokenizer.LoadSentencePiece, tokenizer.CompileSentencePiece,
		tokenizer.LoadCompiledSentencePiece}
)

// Dir returns the folder of the forms; "" if there is none.
func Dir() string { return usercache.Dir("tokenizers") }

// Load returns the tokenizer of a tokenizer.json, as tokenizer.Load does. digest is its SHA-256 in hexadecimal; read
// reads it, and is called only if dir has no form. An empty dir keeps none.
func Load(dir, digest string, read func() ([]byte, error), config []byte) (*tokenizer.Tokenizer, error) {
	return jsonSource.tokenizer(dir, digest, read, config)
}

// LoadSentencePiece is Load for a tokenizer.model: it returns the tokenizer as tokenizer.LoadSentencePiece does.
func LoadSentencePiece(dir, digest string, read func() ([]byte, error), config []byte) (*tokenizer.Tokenizer, error) {
	return modelSource.tokenizer(dir, digest, read, config)
}

func (s source) tokenizer(
	dir, digest string, read func() ([]byte, error), config []byte,
) (*tokenizer.Tokenizer, error) {
	if key, err := hex.DecodeString(digest); err != nil || len(key) != sha256.Size {
		dir = ""
	}
	path := filepath.Join(dir, digest+s.suffix)
	if dir != "" {
		if t, err := s.kept(path, config); err == nil {
			return t, nil
		}
	}
	data, err := read()
	if err != nil {
		return nil, err
	}
	if dir == "" || len(data) < s.worthwhile {
		return s.load(data, config)
	}
	t, form, err := s.compile(data, config)
	// What is kept under a digest must have it: a caller's file may be damaged.
	if sum := sha256.Sum256(data); err == nil && form != nil && hex.EncodeToString(sum[:]) == digest {
		keep(path, form)
	}
	return t, err
}

// Digest returns the digest of a file as Load takes it.
func Digest(file []byte) string {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}

// kept returns the tokenizer of a form.
func (s source) kept(path string, config []byte) (*tokenizer.Tokenizer, error) {
	form, err := read(path)
	if err != nil {
		return nil, err
	}
	t, err := s.loadForm(form, config)
	if err == nil {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // without it, the form is removed earlier
	}
	return t, err
}

// read returns a form whose checksum is right. It takes the form through a buffer, which the processor's cache holds,
// into memory that is not set to zeros before: of a form of 25 MB, each pass over memory takes milliseconds.
func read(path string) ([]byte, error) {
	if err := place.Trusted(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := place.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := place.TrustedFile(f); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size() - header
	if size < 1 || size > maxForm {
		return nil, tokenizer.ErrCompiled
	}
	want := make([]byte, header)
	if _, err := io.ReadFull(f, want); err != nil {
		return nil, err
	}
	var form strings.Builder
	form.Grow(int(size))
	sum, buffer := uint32(0), make([]byte, 256<<10)
	for form.Len() < int(size) {
		n, err := f.Read(buffer[:min(len(buffer), int(size)-form.Len())])
		sum = crc32.Update(sum, castagnoli, buffer[:n])
		form.Write(buffer[:n])
		if err != nil {
			return nil, err
		}
	}
	if binary.LittleEndian.Uint64(want) != uint64(sum) {
		return nil, tokenizer.ErrCompiled
	}
	return unsafe.Slice(unsafe.StringData(form.String()), size), nil // nobody writes to it
}

// keep stores a form, and removes the least recently used ones beyond the limit. Errors leave the cache without it.
func keep(path string, form []byte) {
	dir := filepath.Dir(path)
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	err := atomicfile.Write(path, 0o600, func(f *os.File) error {
		sum := binary.LittleEndian.AppendUint64(nil, uint64(crc32.Checksum(form, castagnoli)))
		if _, err := f.Write(sum); err != nil {
			return err
		}
		_, err := f.Write(form)
		return err
	})
	if err == nil {
		prune(dir)
	}
}

// prune removes the least recently used files beyond the limit, and with them what killed processes have left.
func prune(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	type aged struct {
		name string
		used time.Time
	}
	var files []aged
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, aged{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b aged) int { return cmp.Or(b.used.Compare(a.used), cmp.Compare(a.name, b.name)) })
	for _, old := range files[min(len(files), limits.CompiledVocabularies):] {
		_ = os.Remove(filepath.Join(dir, old.name))
	}
}
