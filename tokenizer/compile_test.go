package tokenizer

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"
)

// TestCompiled: a compiled tokenizer has the ids, the tokens and the texts of its source, for each in the repository.
func TestCompiled(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/*/tokenizer.json", "../testdata/tokenizers/*/tokenizer.json",
		"../testdata/models/*/tokenizer.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	texts := []string{"", "Hello, world!  It's 1234 o'clock.\n\n\tdef f(x):\r\n",
		"naïve Ǆ ＡＢＣ 你好 こんにちは 안녕 👩‍👩‍👧 \u202e<s></s>", "<|im_start|>user\n\xff\xfe<|endoftext|>", " ▁▁ a",
		"the same the same the same"}
	compiled := 0
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		config, err := os.ReadFile(filepath.Join(filepath.Dir(path), "tokenizer_config.json"))
		if err != nil {
			config = nil
		}
		want, form, err := Compile(data, config)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if form == nil {
			continue
		}
		compiled++
		got, err := LoadCompiled(form, config)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got.Size() != want.Size() {
			t.Errorf("%s: size %d, want %d", path, got.Size(), want.Size())
		}
		for id := int32(-1); int(id) <= want.Size(); id++ {
			a, ok := want.Token(id)
			b, also := got.Token(id)
			if a != b || ok != also {
				t.Fatalf("%s: token %d is %q, %v; want %q, %v", path, id, b, also, a, ok)
			}
			x, ok := want.ID(a)
			y, also := got.ID(a)
			if x != y || ok != also {
				t.Fatalf("%s: the id of %q is %d, %v; want %d, %v", path, a, y, also, x, ok)
			}
		}
		for _, text := range texts {
			a, errA := want.Encode(text, true)
			b, errB := got.Encode(text, true)
			if !slices.Equal(a, b) || (errA == nil) != (errB == nil) {
				t.Errorf("%s: %q has ids %v, %v; want %v, %v", path, text, b, errB, a, errA)
			}
			c, errA := want.Decode(a, false)
			d, errB := got.Decode(a, false)
			if c != d || (errA == nil) != (errB == nil) {
				t.Errorf("%s: the text of %v is %q, %v; want %q, %v", path, a, d, errB, c, errA)
			}
		}
	}
	if compiled < 5 {
		t.Errorf("only %d of %d tokenizers are BPE", compiled, len(files))
	}
}

// FuzzLoadCompiled: a damaged form is an error, or a tokenizer that works.
func FuzzLoadCompiled(f *testing.F) {
	_, form, err := Compile([]byte(file()), nil)
	if err != nil || form == nil {
		f.Fatal(err)
	}
	f.Add(form)
	f.Add(form[:len(form)/2])
	f.Fuzz(func(t *testing.T, form []byte) {
		tok, err := LoadCompiled(form, nil)
		if err != nil {
			return
		}
		checkLoaded(t, tok)
	})
}

func TestCompiledDamage(t *testing.T) {
	_, form, err := Compile([]byte(file()), nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range form {
		if _, err := LoadCompiled(form[:n], nil); !errors.Is(err, ErrCompiled) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(form), err)
		}
	}
	for i := range form { // a changed byte is an error or changes a tokenizer that works
		changed := slices.Clone(form)
		changed[i] ^= 0x81
		if tok, err := LoadCompiled(changed, nil); err == nil {
			if _, err := tok.Encode("abab", false); err != nil && !errors.Is(err, ErrToken) {
				t.Fatalf("byte %d: %v", i, err)
			}
			for id := range int32(tok.Size()) {
				if token, _ := tok.Token(id); !utf8.ValidString(token) {
					t.Fatalf("byte %d: token %d is %q", i, id, token)
				}
			}
		}
	}
}
