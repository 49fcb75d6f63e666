package tokenizer

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"
)

// compiler is how a kind of file is compiled.
type compiler struct {
	file    string
	compile func(file, config []byte) (*Tokenizer, []byte, error)
	load    func(form, config []byte) (*Tokenizer, error)
}

var (
	jsonCompiler  = compiler{"tokenizer.json", Compile, LoadCompiled}
	modelCompiler = compiler{"tokenizer.model", CompileSentencePiece, LoadCompiledSentencePiece}
)

// TestCompiled: a compiled tokenizer has the ids, the tokens and the texts of its source, for each in the repository.
func TestCompiled(t *testing.T) {
	for c, least := range map[*compiler]int{&jsonCompiler: 7, &modelCompiler: len(sentencePieces)} {
		compiled := 0
		for _, pattern := range []string{"testdata/*/", "../testdata/tokenizers/*/", "../testdata/models/*/"} {
			files, err := filepath.Glob(pattern + c.file)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range files {
				if checkCompiled(t, *c, path) {
					compiled++
				}
			}
		}
		if compiled < least {
			t.Errorf("only %d tokenizers of %s have a compiled form", compiled, c.file)
		}
	}
}

// checkCompiled compares a file with its compiled form, and reports whether it has one.
func checkCompiled(t *testing.T, c compiler, path string) bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(filepath.Dir(path), "tokenizer_config.json"))
	if err != nil {
		config = nil
	}
	want, form, err := c.compile(data, config)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if form == nil {
		return false
	}
	got, err := c.load(form, config)
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
	for _, text := range []string{"", "Hello, world!  It's 1234 o'clock.\n\n\tdef f(x):\r\n",
		"naïve Ǆ ＡＢＣ 你好 こんにちは 안녕 👩‍👩‍👧 \u202e<s></s>", "<|im_start|>user\n\xff\xfe<|endoftext|>", " ▁▁ a",
		"the same the same the same"} {
		a, errA := want.Encode(t.Context(), text, true)
		b, errB := got.Encode(t.Context(), text, true)
		if !slices.Equal(a, b) || (errA == nil) != (errB == nil) {
			t.Errorf("%s: %q has ids %v, %v; want %v, %v", path, text, b, errB, a, errA)
		}
		c, errA := want.Decode(a, false)
		d, errB := got.Decode(a, false)
		if c != d || (errA == nil) != (errB == nil) {
			t.Errorf("%s: the text of %v is %q, %v; want %q, %v", path, a, d, errB, c, errA)
		}
	}
	return true
}

// smallForms returns a form of each model, by name.
func smallForms(t testing.TB) (ofJSON, ofModels map[string][]byte) {
	t.Helper()
	ofJSON, ofModels = map[string][]byte{}, map[string][]byte{}
	for name, data := range map[string]string{
		"bpe": file(),
		"unigram": file("model", `{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[["a",-1],["ab",-1.5],`+
			`["b",-2],["<0x0A>",-3]]}`),
	} {
		_, form, err := Compile([]byte(data), nil)
		if err != nil || form == nil {
			t.Fatalf("%s: %v", name, err)
		}
		ofJSON[name] = form
	}
	for name, kind := range map[string]string{"sentencepiece unigram": "\x01", "sentencepiece bpe": "\x02"} {
		_, form, err := CompileSentencePiece([]byte(smallModel(kind)), nil)
		if err != nil || form == nil {
			t.Fatalf("%s: %v", name, err)
		}
		ofModels[name] = form
	}
	return ofJSON, ofModels
}

// FuzzLoadCompiled: a damaged form is an error, or a tokenizer that works.
func FuzzLoadCompiled(f *testing.F) {
	ofJSON, ofModels := smallForms(f)
	for _, forms := range []map[string][]byte{ofJSON, ofModels} {
		for _, form := range forms {
			f.Add(form)
			f.Add(form[:len(form)/2])
		}
	}
	f.Fuzz(func(t *testing.T, form []byte) {
		for _, c := range []compiler{jsonCompiler, modelCompiler} {
			if tok, err := c.load(form, nil); err == nil {
				checkLoaded(t, tok)
			}
		}
	})
}

func TestCompiledDamage(t *testing.T) {
	ofJSON, ofModels := smallForms(t)
	for name, form := range ofJSON {
		checkDamage(t, jsonCompiler, name, form)
	}
	for name, form := range ofModels {
		checkDamage(t, modelCompiler, name, form)
	}
	for name, form := range ofModels { // a form of one kind of file is none of the other
		if _, err := LoadCompiled(form, nil); !errors.Is(err, ErrCompiled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// checkDamage: a form that is cut is ErrCompiled; a changed byte is an error or changes a tokenizer that works.
func checkDamage(t *testing.T, c compiler, name string, form []byte) {
	t.Helper()
	for n := range form {
		if _, err := c.load(form[:n], nil); !errors.Is(err, ErrCompiled) {
			t.Fatalf("%s: the first %d of %d bytes: %v", name, n, len(form), err)
		}
	}
	if _, err := c.load(append(slices.Clone(form), 0), nil); !errors.Is(err, ErrCompiled) {
		t.Fatalf("%s: with one more byte: %v", name, err)
	}
	for i := 0; i < len(form); i += 1 + i/1024 { // the tables of a trie are long and alike
		changed := slices.Clone(form)
		changed[i] ^= []byte{0x01, 0x80, 0x81}[i%3]
		tok, err := c.load(changed, nil)
		if err != nil {
			continue
		}
		for _, text := range []string{"abab", " xab\n日<0x0A>"} {
			if _, err := tok.Encode(t.Context(), text, false); err != nil && !errors.Is(err, ErrToken) {
				t.Fatalf("%s: byte %d: %v", name, i, err)
			}
		}
		for id := range int32(tok.Size()) {
			if token, _ := tok.Token(id); !utf8.ValidString(token) {
				t.Fatalf("%s: byte %d: token %d is %q", name, i, id, token)
			}
		}
	}
}
