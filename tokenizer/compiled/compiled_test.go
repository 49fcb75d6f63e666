package compiled

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/limits"
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
		vocab.String() + `},"merges":[` + merges.String() + `]},"padding":"` + strings.Repeat(" ", worthwhile) + `"}`)
}

// loaded loads through a cache, and returns the ids of a text, and whether the source was read.
func loaded(t *testing.T, dir string, data []byte) (ids []int32, read bool) {
	t.Helper()
	tok, err := Load(dir, Digest(data), func() ([]byte, error) { read = true; return data, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ids, err = tok.Encode("<s>abaxb", false); err != nil {
		t.Fatal(err)
	}
	return ids, read
}

func TestLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tokenizers")
	data := big(0)
	want := []int32{4003, 2, 2, 1} // x is unknown, and merges as b does
	for i, first := range []bool{true, false, false} {
		if ids, read := loaded(t, dir, data); !slices.Equal(ids, want) || read != first {
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
		if ids, read := loaded(t, dir, data); !slices.Equal(ids, want) || !read {
			t.Errorf("%s: %v, source read: %v", name, ids, read)
		}
		if ids, read := loaded(t, dir, data); !slices.Equal(ids, want) || read {
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
		path := filepath.Join(dir, fmt.Sprintf("%d%s", i, suffix))
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
	oldest := fmt.Sprintf("%d%s", limits.CompiledVocabularies-1, suffix)
	if _, err := os.Stat(filepath.Join(dir, oldest)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the least recently used form is kept: %v", err)
	}
}
