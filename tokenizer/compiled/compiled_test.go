package compiled

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/tokenizer"
	"github.com/ingotml/ingot/tokenizer/sentencepiece"
)

// big returns a tokenizer.json that is large enough to be kept. Its words differ with n.
func big(n int) []byte {
	var vocab, merges strings.Builder
	vocab.WriteString(`"a":0,"b":1,"ab":2`)
	for i := range 4_000 {
		fmt.Fprintf(&vocab, `,"word-%d-%d":%d`, n, i, i+3)
	}
	merges.WriteString(`"a b"`)
	return []byte(`{"version":"1.0","added_tokens":[{"id":4003,"content":"<s>","single_word":false,"lstrip":false,` +
		`"rstrip":false,"normalized":false,"special":true}],"model":{"type":"BPE","unk_token":"b","vocab":{` +
		vocab.String() + `},"merges":[` + merges.String() + `]},"padding":"` +
		strings.Repeat(" ", jsonSource.worthwhile) + `"}`)
}

// bigModel returns a tokenizer.model that is large enough to be kept.
func bigModel(kind uint64) []byte {
	var out []byte
	bytes := func(to []byte, field uint64, data []byte) []byte {
		to = binary.AppendUvarint(to, field<<3|2)
		return append(binary.AppendUvarint(to, uint64(len(data))), data...)
	}
	piece := func(text string, score float32, kind byte) {
		p := binary.LittleEndian.AppendUint32(append(bytes(nil, 1, []byte(text)), 2<<3|5), math.Float32bits(score))
		out = bytes(out, 1, append(p, 3<<3, kind))
	}
	piece("<unk>", 0, sentencepiece.Unknown)
	piece("<s>", 0, sentencepiece.Control)
	piece("</s>", 0, sentencepiece.Control)
	for i, text := range []string{"a", "b", "ab"} {
		piece(text, float32(-i), sentencepiece.Normal)
	}
	for i := 0; len(out) < modelSource.worthwhile; i++ {
		piece(fmt.Sprintf("word-%d", i), float32(-10-i), sentencepiece.Normal)
	}
	return bytes(out, 2, binary.AppendUvarint([]byte{3 << 3}, kind))
}

type loader func(string, string, func() ([]byte, error), []byte) (*tokenizer.Tokenizer, error)

// loaded loads through a cache, and returns the ids of a text, and whether the source was read.
func loaded(t *testing.T, dir string, data []byte) (ids []int32, read bool) {
	t.Helper()
	return loadedAs(t, Load, dir, data)
}

func loadedAs(t *testing.T, load loader, dir string, data []byte) (ids []int32, read bool) {
	t.Helper()
	tok, err := load(dir, Digest(data), func() ([]byte, error) { read = true; return data, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ids, err = tok.Encode(t.Context(), "<s>abaxb", false); err != nil {
		t.Fatal(err)
	}
	return ids, read
}

func TestLoad(t *testing.T) {
	for name, c := range map[string]struct {
		load   loader
		data   []byte
		suffix string
		want   []int32
	}{
		"tokenizer.json": {Load, big(0), jsonSource.suffix, []int32{4003, 2, 2, 1}}, // x is unknown, and merges as b does
		"BPE":            {LoadSentencePiece, bigModel(2), modelSource.suffix, []int32{1, 5, 3, 0, 4}},
		"Unigram":        {LoadSentencePiece, bigModel(1), modelSource.suffix, []int32{1, 3, 4, 3, 0, 4}},
	} {
		t.Run(name, func(t *testing.T) { checkLoad(t, c.load, c.data, c.suffix, c.want) })
	}
}

// checkLoad loads a file until its form is kept, and again after each damage of the form.
func checkLoad(t *testing.T, load loader, data []byte, suffix string, want []int32) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tokenizers")
	for i, first := range []bool{true, false, false} {
		if ids, read := loadedAs(t, load, dir, data); !slices.Equal(ids, want) || read != first {
			t.Errorf("load %d: %v, source read: %v; want %v, %v", i, ids, read, want, first)
		}
	}
	path := filepath.Join(dir, Digest(data)+suffix)
	form, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"empty": {}, "short": form[:5], "cut": form[:len(form)-1],
		"changed": slices.Concat(form[:len(form)/2], []byte{form[len(form)/2] ^ 1}, form[len(form)/2+1:]),
	} {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if ids, read := loadedAs(t, load, dir, data); !slices.Equal(ids, want) || !read {
			t.Errorf("%s: %v, source read: %v", name, ids, read)
		}
		if ids, read := loadedAs(t, load, dir, data); !slices.Equal(ids, want) || read {
			t.Errorf("after %s: %v, source read: %v", name, ids, read)
		}
	}
}

// TestUnkept: without a folder, or with another digest, nothing is kept, and the source is loaded.
func TestUnkept(t *testing.T) {
	data := big(0)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", filepath.Join(file, "below")} {
		if _, read := loaded(t, dir, data); !read {
			t.Errorf("%q: the source was not read", dir)
		}
	}
	dir := t.TempDir()
	for _, digest := range []string{Digest([]byte("other")), "../x", ""} {
		if _, err := Load(dir, digest, func() ([]byte, error) { return data, nil }, nil); err != nil {
			t.Error(err)
		}
	}
	gone := errors.New("gone")
	if _, err := Load(dir, Digest(data), func() ([]byte, error) { return nil, gone }, nil); !errors.Is(err, gone) {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("the folder has %d files: %v", len(files), err)
	}
}

func TestBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range limits.CompiledVocabularies {
		path := filepath.Join(dir, fmt.Sprintf("%d%s", i, jsonSource.suffix))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		used := time.Now().Add(-time.Duration(i+1) * time.Hour)
		if err := os.Chtimes(path, used, used); err != nil {
			t.Fatal(err)
		}
	}
	loaded(t, dir, big(0))
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != limits.CompiledVocabularies {
		t.Fatalf("the folder has %d files: %v", len(files), err)
	}
	oldest := fmt.Sprintf("%d%s", limits.CompiledVocabularies-1, jsonSource.suffix)
	if _, err := os.Stat(filepath.Join(dir, oldest)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the least recently used form is kept: %v", err)
	}
}
