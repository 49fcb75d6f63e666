package filekind

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" +
	"4cac4b2b9a9f2f3ae6a3b2a3a5a4f8c1d5e3b7a1f0c9d8e7b6a5948372615040\nsize 11422654\n"

// header returns a safetensors file whose header has n bytes.
func header(n int) string {
	b := binary.LittleEndian.AppendUint64(nil, uint64(n))
	return string(b) + "{" + strings.Repeat(" ", n-2) + "}"
}

func member(name string) string {
	b := make([]byte, 30)
	copy(b, "PK\x03\x04")
	binary.LittleEndian.PutUint16(b[26:], uint16(len(name)))
	return string(b) + name + "ZZZZ"
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		name, content string
		want          Kind
	}{
		{"empty", "", Empty},
		{"zeros", strings.Repeat("\x00", 4096), Zeros},
		{"few zeros", "\x00\x00", Unknown},
		{"pointer", pointer, Pointer},
		{"pointer with CRLF", strings.ReplaceAll(pointer, "\n", "\r\n"), Pointer},
		{"pointer of an extension", strings.Replace(pointer, "oid", "ext-0-a sha256:00\noid", 1), Pointer},
		{"pointer of the old name", "version https://hawser.github.com/spec/v1\noid sha256:00\nsize 5\n", Pointer},
		{"text about Git LFS", "See version https://git-lfs.github.com/", Unknown},
		{"page", "<!DOCTYPE html><html></html>", Page},
		{"page in lower case, after blanks", "\n  <!doctype HTML>\n", Page},
		{"page with a byte order mark", "\xef\xbb\xbf<html lang=en>", Page},
		{"page of a storage service", `<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>`, Page},
		{"page that a browser saved", "<!-- saved from url=(0014)about:internet -->\n<!-- x --><HTML>", Page},
		{"comment", "<!-- only", Unknown},
		{"pointer with a byte order mark", "\xef\xbb\xbf" + pointer, Pointer},
		{"message of a hub", "Entry not found", Message},
		{"message of a mirror", "404: Not Found\n", Message},
		{"text that begins like a message", "Not found? " + strings.Repeat("Look again. ", 100), Unknown},
		{"template that begins with a tag", "<s>{% for m in messages %}", Unknown},
		{"GGUF", "GGUF\x03\x00\x00\x00", GGUF},
		{"GGUF, four bytes", "GGUF", GGUF},
		{"GGUF, cut off", "GGU", Unknown},
		{"ggml", "lmgg\x00\x00", GGML},
		{"ggjt", "tjgg\x03\x00", GGML},
		{"safetensors", header(64), Safetensors},
		{"safetensors whose length begins like a pickle", header(0x0280), Safetensors},
		{"safetensors whose length begins like a page", header(int('<')), Safetensors},
		{"safetensors, cut off in the header", header(5000)[:64], Safetensors},
		{"safetensors, cut off in the length", header(5000)[:8], Unknown},
		{"pickle in a zip archive", member("archive/data.pkl"), Pickle},
		{"TorchScript", member("archive/data/0"), Pickle},
		{"old pickle", "\x80\x02\x8a\nl\xfc\x9cF\xf9 j", Pickle},
		{"pickle, protocol 5", "\x80\x05\x95\x00\x00\x00\x00\x00\x00\x00\x00}", Pickle},
		{"pickle, protocol 0", "(dp0\nVa\np1\n", Pickle},
		{"pickle, protocol 1", "ccollections\nOrderedDict\nq\x00)R", Pickle},
		{"arrays of NumPy", member("arr_0.npy"), Zip},
		{"empty zip archive", "PK\x05\x06" + strings.Repeat("\x00", 18), Zip},
		{"array of NumPy", "\x93NUMPY\x01\x00", NumPy},
		{"HDF5", "\x89HDF\r\n\x1a\n", HDF5},
		{"gzip", "\x1f\x8b\x08", Archive},
		{"zstd", "\x28\xb5\x2f\xfd", Archive},
		{"tar", "model.gguf" + strings.Repeat("\x00", tarAt-10) + "ustar\x0000", Archive},
		{"object", ` {"a": 1}`, JSON},
		{"object after lines", "\n\n\n{\n  \"a\": 1}", JSON},
		{"object with a byte order mark", "\xef\xbb\xbf{}", JSON},
		{"list", "[\n  {\"a\": 1}]", JSON},
		{"empty list", "[]", JSON},
		{"list of numbers", "[-1]", JSON},
		{"template that begins with a statement", "{% if tools %}", Unknown},
		{"template that begins with an expression", "{{ bos_token }}", Unknown},
		{"template that begins with a comment", "{# tools #}", Unknown},
		{"template that begins with a bracket", "[INST] {{ messages }}", Unknown},
		{"template that begins with a bracket and an expression", "[{{ role }}]", Unknown},
		{"SentencePiece", "\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02", Piece},
		{"empty lines", strings.Repeat("\n", 100) + "a", Unknown},
		{"tiktoken", "IQ== 0\nIg== 1\n", Ranks},
		{"merges", "#version: 0.2\nh e\n", Unknown},
		{"text", "once upon a time", Unknown},
	} {
		if got := Of([]byte(c.content), int64(len(c.content))); got.Kind != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Files of others have the kinds that they should have.
func TestFiles(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	for pattern, want := range map[string]Kind{
		"testdata/models/*/*.safetensors": Safetensors, "testdata/models/*/*.json": JSON,
		"convert/gguf/testdata/*.gguf": GGUF, "testdata/tokenizers/*/tokenizer.model": Piece,
		"testdata/models/*/chat_template.jinja": Unknown, "*.md": Unknown,
	} {
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(paths) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range paths {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			if found, err := Read(f, info.Size()); err != nil || found.Kind != want {
				t.Errorf("%s: %v, %v; want %v", path, found, err, want)
			}
			f.Close()
		}
	}
}

func TestWrong(t *testing.T) {
	for _, c := range []struct {
		content, want string
		wanted        []Kind
	}{
		{pointer, "it is a Git LFS pointer to a file of 11422654 bytes, not the file itself: run git lfs pull in its " +
			"clone, or get it from elsewhere", []Kind{JSON}},
		{"version https://git-lfs.github.com/spec/v1\n", "it is a Git LFS pointer, not the file itself: run git lfs pull " +
			"in its clone, or get it from elsewhere", nil},
		{"<html>", "it is an HTML page, as servers send with an error; download it again", []Kind{GGUF}},
		{"", "it is empty; download it again", nil},
		{"GGUF", "", []Kind{GGUF}},
		{"GGUF", "it is a GGUF file, want a safetensors file", []Kind{Safetensors}},
		{"{}", "it is JSON text, want a model of SentencePiece or a vocabulary of tiktoken", []Kind{Piece, Ranks}},
		{"odd", "", []Kind{GGUF}},
	} {
		if got := Of([]byte(c.content), int64(len(c.content))).Wrong(c.wanted...); got != c.want {
			t.Errorf("%q: %s\nwant %s", c.content, got, c.want)
		}
	}
}

type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }

func TestRead(t *testing.T) {
	if found, err := Read(bytes.NewReader([]byte("GGUF")), 1000); err != nil || found.Kind != GGUF {
		t.Errorf("a file that has shrunk: %v, %v", found, err)
	}
	if _, err := Read(broken{}, 10); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}
