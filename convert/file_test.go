package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/gguftest"
	"github.com/ingotml/ingot/quantize/ggml"
)

// What downloads leave in the place of a file, and files of other formats.
const (
	pointerTo = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 11422654\n"
	page      = "<!DOCTYPE html>\n<html><title>Sign in</title></html>\n"
	xmlPage   = `<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>`
	pickle    = "\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
	keras     = "\x89HDF\r\n\x1a\n\x00"
)

const (
	isPointer = "it is a Git LFS pointer to a file of 11422654 bytes, not the file itself: run git lfs pull"
	isPage    = "it is an HTML page, as servers send with an error; download it again"
	isEmpty   = "it is empty; download it again"
)

func refusal(t *testing.T, text string) string {
	t.Helper()
	store := openStore(t)
	_, err := Create(t.Context(), store, modelName(t, "x"), parsed(t, text), Options{})
	if err == nil {
		t.Fatalf("%s: no error", text)
	}
	if left := contents(t, store); len(left) > 0 || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v; left %q", err, left)
	}
	return err.Error()
}

// TestStrayFiles replaces each file of a checkpoint by what a download leaves in its place.
func TestStrayFiles(t *testing.T) {
	for _, c := range []struct{ file, content, want string }{
		{"config.json", pointerTo, isPointer},
		{"config.json", page, isPage},
		{"config.json", "", isEmpty},
		{"config.json", "GGUF\x03\x00\x00\x00", "it is a GGUF file, want JSON text"},
		{"generation_config.json", pointerTo, isPointer},
		{"generation_config.json", page, isPage},
		{"tokenizer.json", pointerTo, isPointer},
		{"tokenizer.json", "\xef\xbb\xbf" + page, isPage},
		{"tokenizer.json", xmlPage, isPage},
		{"tokenizer.json", "", isEmpty},
		{"tokenizer.json", "\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02", "it is a model of SentencePiece, want JSON text"},
		{"tokenizer.json", pickle, "it is a PyTorch pickle, want JSON text"},
		{"tokenizer.model", pointerTo, isPointer},
		{"tokenizer.model", strings.ReplaceAll(pointerTo, "\n", "\r\n"), isPointer},
		{"tokenizer.model", page, isPage},
		{"tokenizer.model", "", isEmpty},
		{"tokenizer.model", "{\"model\": {}}", "it is JSON text, want a model of SentencePiece or a vocabulary of tiktoken"},
		{"tokenizer_config.json", pointerTo, isPointer},
		{"tekken.json", pointerTo, isPointer},
		{"tekken.json", page, isPage},
		{"tiktoken.model", pointerTo, isPointer},
		{"qwen.tiktoken", pointerTo, isPointer},
		{"vocab.json", pointerTo, isPointer},
		{"merges.txt", pointerTo, isPointer},
		{"merges.txt", page, isPage},
		{"added_tokens.json", pointerTo, isPointer},
		{"special_tokens_map.json", pointerTo, isPointer},
		{"chat_template.jinja", pointerTo, isPointer},
		{"chat_template.jinja", page, isPage},
		{"chat_template.jinja", strings.Repeat("\x00", 64), "it is an unfinished download: it begins with zeros"},
		{"chat_template.json", pointerTo, isPointer},
		{"modules.json", pointerTo, isPointer},
		{"1_Pooling/config.json", pointerTo, isPointer},
		{"preprocessor_config.json", page, isPage},
		{"LICENSE", pointerTo, isPointer},
		{"README.md", pointerTo, isPointer},
		{"model.safetensors", pointerTo, isPointer},
		{"model.safetensors", page, isPage},
		{"model.safetensors", xmlPage, isPage},
		{"model.safetensors", pickle, "it is a PyTorch pickle, want a safetensors file"},
		{"model.safetensors", strings.Repeat("\x00", 5000), "it is an unfinished download"},
		{"model.safetensors", `{"error": "Repository not found"}`, "it is JSON text, want a safetensors file"},
		{"model.safetensors.index.json", pointerTo, isPointer},
		{"model.safetensors.index.json", page, isPage},
		{"model.safetensors.index.json", "", isEmpty},
	} {
		t.Run(c.file+" "+c.want, func(t *testing.T) {
			dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
			path := filepath.Join(dir, filepath.FromSlash(c.file))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			writeFile(t, path, []byte(c.content))
			if err := refusal(t, "FROM "+dir); !strings.HasPrefix(err, path+": ") || !strings.Contains(err, c.want) {
				t.Errorf("%s\nwant %s: ...: %s", err, path, c.want)
			}
		})
	}
	c := tiny(t, tinyConfig, 1)
	c.files["README.md"], c.files["LICENSE"], c.files["NOTICE"] = "<html>a page</html>", page, ""
	c.files["chat_template.jinja"] = "<s>[INST] {{ messages[0].content }}"
	mustCreate(t, openStore(t), "documents", from(c.write(t, t.TempDir())), Options{})
}

// TestDanglingLinks covers a download cache whose files are not complete.
func TestDanglingLinks(t *testing.T) {
	for _, file := range []string{
		"config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors", "model.safetensors.index.json",
		"generation_config.json", "1_Pooling/config.json",
	} {
		dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
		path := filepath.Join(dir, filepath.FromSlash(file))
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		_ = os.Remove(path)
		if err := os.Symlink("../../blobs/abc", path); err != nil {
			t.Skip(err)
		}
		err := refusal(t, "FROM "+dir)
		if want := `it is a link to "../../blobs/abc", which does not exist: the download is incomplete`; !strings.Contains(
			err, want) || !strings.HasPrefix(err, path+": ") {
			t.Errorf("%s: %s", file, err)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"x.gguf", "snapshot"} {
		path := filepath.Join(dir, name)
		if err := os.Symlink("gone", path); err != nil {
			t.Skip(err)
		}
		for _, line := range []string{"FROM " + path, "FROM " + llamaF32 + "\nADAPTER " + path} {
			if err := refusal(t, line); !strings.Contains(err, path+": ") || !strings.Contains(err, `a link to "gone"`) {
				t.Errorf("%s: %s", name, err)
			}
		}
	}
}

// TestFileKinds names files in FROM, under names of other kinds.
func TestFileKinds(t *testing.T) {
	model := gguftest.Llama(ggml.F16).Bytes(t)
	dir := t.TempDir()
	put := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, content)
		return path
	}
	store := openStore(t)
	want := mustCreate(t, store, "x", from(put("m.gguf", model)), Options{}).Digest
	for _, name := range []string{
		"blobs/sha256-" + strings.Repeat("ab", 32), "model.bin", "model", "x.pt", "x.safetensors", "x.json", "X.GGUF",
		".hidden", "m-00001-of-00001.bin", "config.json",
	} {
		path := put(name, model)
		if got := mustCreate(t, store, "y", from(path), Options{}); got.Digest != want {
			t.Errorf("%s: other digest", name)
		}
		if filepath.Base(name)[0] == '.' || name == "config.json" {
			continue
		}
		folder := t.TempDir()
		writeFile(t, filepath.Join(folder, filepath.Base(name)), model)
		if got := mustCreate(t, store, "y", from(folder), Options{}); got.Digest != want {
			t.Errorf("%s in a folder: other digest", name)
		}
	}
	for _, c := range []struct{ name, content, want string }{
		{"x.gguf", pointerTo, isPointer},
		{"sha256-00", pointerTo, isPointer},
		{"x.gguf", page, isPage},
		{"x.gguf", "", isEmpty},
		{"x.gguf", strings.Repeat("\x00", 100), "unfinished download"},
		{"x.gguf", "\x02\x00\x00\x00\x00\x00\x00\x00{}", "a safetensors file has weights alone; name its folder"},
		{"model.safetensors", "\x02\x00\x00\x00\x00\x00\x00\x00{}", "a safetensors file has weights alone; name its folder"},
		{"x.gguf", pickle, "a PyTorch pickle runs code when it is read"},
		{"pytorch_model.bin", pickle, "a PyTorch pickle runs code when it is read"},
		{"x.gguf", keras, "it is an HDF5 file"},
		{"x.gguf", "tjgg\x03\x00\x00\x00", "convert it again with a current llama.cpp"},
		{"x.gguf", "{}", "it is JSON text; name a folder"},
		{"x.gguf", "hello", "not a folder; name one with config.json and *.safetensors, or a GGUF file"},
		{"model.bin", "hello", "not a folder; name one with config.json and *.safetensors, or a GGUF file"},
	} {
		path := put(c.name, []byte(c.content))
		if err := refusal(t, "FROM "+path); !strings.Contains(err, c.want) || !strings.Contains(err, path) {
			t.Errorf("%s, %q: %s", c.name, c.content, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGGUFFolders covers folders with GGUF files that are no models, and damaged ones.
func TestGGUFFolders(t *testing.T) {
	model := gguftest.Llama(ggml.F16).Bytes(t)
	with := func(key, value string) []byte {
		f := gguftest.Llama(ggml.F16)
		f.Set(key, gguf.Text(value))
		return f.Bytes(t)
	}
	projector := with("general.architecture", "clip")
	type files map[string][]byte
	for _, c := range []struct {
		name, want string // an error, if the files are not the model's
		notes      []string
		files      files
	}{
		{"beside a projector", "", []string{"not imported: a.gguf: "},
			files{"a.gguf": projector, "b.gguf": model}},
		{"beside one by its type", "", []string{"not imported: b: "},
			files{"a": model, "b": with("general.type", "mmproj")}},
		{"beside an adapter and a matrix", "", []string{"is a LoRA adapter", "is an importance matrix"},
			files{"m": model, "lora.gguf": with("general.type", "adapter"), "i.gguf": with("general.type", "imatrix")}},
		{"a model by a projector's name", "", nil, files{"mmproj-model.gguf": model}},
		{"a file that is not downloaded", "", nil, files{"m-Q4.gguf": model, "m-Q8.gguf": []byte(pointerTo)}},
		{"two models", "it has several GGUF models: a.bin, b.gguf; name one of the files", nil,
			files{"a.bin": model, "b.gguf": model}},
		{"a projector alone", "x.gguf: cannot import: it is a projector for pictures or sound (mmproj), not a model", nil,
			files{"x.gguf": projector}},
		{"a pointer", "x.gguf: invalid GGUF file: " + isPointer, nil, files{"x.gguf": []byte(pointerTo)}},
		{"a page", "x.gguf: invalid GGUF file: " + isPage, nil, files{"x.gguf": []byte(page)}},
		{"a pickle named so", "x.gguf: invalid GGUF file: it is a PyTorch pickle, want a GGUF file", nil,
			files{"config.json": []byte(tinyConfig), "x.gguf": []byte(pickle)}},
		{"a pickle", "found pytorch_model.bin: a PyTorch pickle runs code", nil,
			files{"config.json": []byte(tinyConfig), "pytorch_model.bin": []byte(pickle)}},
		{"nothing", "no config.json", nil, files{"x.bin": []byte("hello")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range c.files {
				writeFile(t, filepath.Join(dir, name), content)
			}
			if c.want != "" {
				if err := refusal(t, "FROM "+dir); !strings.Contains(err, c.want) {
					t.Error(err)
				}
				return
			}
			r := mustCreate(t, openStore(t), "x", from(dir), Options{})
			notes := strings.Join(r.Warnings, "\n")
			for _, note := range c.notes {
				if !strings.Contains(notes, note) {
					t.Errorf("notes %q, want %s", notes, note)
				}
			}
		})
	}
}

// TestProjector names projectors in FROM and ADAPTER.
func TestProjector(t *testing.T) {
	clip := gguftest.Llama(ggml.F16)
	clip.Set("general.architecture", gguf.Text("clip"))
	lora := gguftest.Llama(ggml.F16)
	lora.Set("general.type", gguf.Text("adapter"))
	dir := t.TempDir()
	files := map[string][]byte{
		"m": gguftest.Llama(ggml.F16).Bytes(t), "p": clip.Bytes(t), "lora": lora.Bytes(t), "pointer": []byte(pointerTo),
		"s": []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"),
	}
	for name, content := range files {
		writeFile(t, filepath.Join(dir, name), content)
	}
	folder := tiny(t, tinyConfig, 1).write(t, t.TempDir())
	for _, c := range []struct{ text, want string }{
		{"FROM {m}\nFROM {p}", ""},
		{"FROM {p}\nFROM {m}", ""},
		{"FROM {p}\nSYSTEM x\nFROM {m}\nFROM {p}", ""},
		{"FROM " + folder + "\nFROM {p}", ""},
		{"FROM {m}\nFROM {m}", "Modelfile:2:1: a second FROM is not supported, unless it names a projector"},
		{"FROM {m}\nFROM {lora}", "Modelfile:2:1: a second FROM is not supported"},
		{"FROM {m}\nFROM {pointer}", "pointer: cannot import: " + isPointer},
		{"FROM {m}\nFROM ./absent", "Modelfile:2:1: a second FROM is not supported"},
		{"FROM {m}\nFROM {p}\nFROM {m}", "Modelfile:3:1: a second FROM is not supported"},
		{"FROM {p}", ": cannot import: it is a projector for pictures or sound (mmproj), not a model; name the model's file"},
		{"FROM {p}\nFROM {p}", "Modelfile:1:1: all FROM lines name projectors; add one that names the model"},
		{"FROM {lora}", "cannot import: it is a LoRA adapter, not a model"},
		{"FROM {m}\nADAPTER {p}", "is a projector for pictures or sound (mmproj), not an adapter; remove the line"},
		{"FROM {m}\nADAPTER {lora}", "is a LoRA adapter in GGUF, which cannot be merged; name the folder"},
		{"FROM {m}\nADAPTER {m}", "is a GGUF model, not an adapter"},
		{"FROM {m}\nADAPTER {s}", "is not a folder; name the folder with adapter_config.json and adapter_model.safetensors"},
		{"FROM {m}\nADAPTER {pointer}", isPointer},
	} {
		text := c.text
		for name := range files {
			text = strings.ReplaceAll(text, "{"+name+"}", filepath.Join(dir, name))
		}
		if c.want != "" {
			if err := refusal(t, text); !strings.Contains(err, c.want) {
				t.Errorf("%q: %s", c.text, err)
			}
			continue
		}
		r := mustCreate(t, openStore(t), "x", parsed(t, text), Options{})
		if notes := strings.Join(r.Warnings, "\n"); strings.Count(notes, "it is a projector for pictures or sound (mmproj); "+
			"the model reads text only") != strings.Count(c.text, "{p}") {
			t.Errorf("%q: notes %q", c.text, notes)
		}
	}
}
