package image

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	ft "github.com/ingotml/ingot/manifest/foreign/foreigntest"
	"github.com/ingotml/ingot/manifest/unpack"
	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// opened returns the image with its blobs in a folder, and the folder of what is unpacked.
func opened(t *testing.T, packed ft.Image) (i *Image, temp string) {
	t.Helper()
	files, err := foreign.Parse(packed.Manifest, packed.Config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, b := range packed.Blobs {
		if err := os.WriteFile(filepath.Join(dir, digest.FromBytes(b).Encoded()), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	temp = filepath.Join(dir, "temp")
	return &Image{
		Name: "host/image:v1", Files: files,
		Blob: func(d digest.Digest) (*os.File, error) { return os.Open(filepath.Join(dir, d.Encoded())) },
		Read: func(d digest.Digest) ([]byte, error) { return os.ReadFile(filepath.Join(dir, d.Encoded())) },
		Temp: func() (string, func(), error) {
			return temp, func() { _ = os.RemoveAll(temp) }, os.Mkdir(temp, 0o700)
		},
	}, temp
}

// weights is a safetensors file without tensors.
const weights = "\x02\x00\x00\x00\x00\x00\x00\x00{}"

// The folder of an image behaves as one on disk, however it is packed, and nothing stays when it is closed.
func TestFolder(t *testing.T) {
	files := ft.Files{"m/config.json": "{}", "m/model.safetensors": weights, "m/1_Pooling/config.json": "[]",
		"README.md": ""}
	for _, wrapping := range []string{ft.Raw, ft.Tar, ft.Gzip, ft.Zstd} {
		i, temp := opened(t, ft.ModelPack(t, files, wrapping))
		f, err := i.Open(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		err = fs.WalkDir(f, ".", func(name string, d fs.DirEntry, err error) error {
			if info, errStat := f.Stat(name); err == nil && (errStat != nil || info.IsDir() != d.IsDir()) {
				t.Errorf("%s: %v, %v", name, info, errStat)
			}
			names = append(names, name)
			return err
		})
		if want := ". 1_Pooling 1_Pooling/config.json config.json model.safetensors"; strings.Join(names, " ") != want {
			t.Errorf("%s: %v, %v", wrapping, names, err)
		}
		if got := f.Path("config.json"); got != "host/image:v1/m/config.json" {
			t.Error(got)
		}
		b, err := fs.ReadFile(f, "model.safetensors")
		if err != nil || string(b) != weights {
			t.Errorf("%s: %q, %v", wrapping, b, err)
		}
		if err := f.(io.Closer).Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(temp); err == nil {
			t.Errorf("%s: unpacked files stay", wrapping)
		}
	}
}

// The model's folder is found by the content of files.
func TestModelFolder(t *testing.T) {
	gguf := "GGUF\x03\x00\x00\x00" + strings.Repeat("\x00", 16)
	for _, c := range []struct {
		name  string
		files ft.Files
		root  string
		says  string
	}{
		{"at the top", ft.Files{"config.json": "{}", "x.safetensors": weights}, ".", ""},
		{"in a folder", ft.Files{"a/b/config.json": "{}", "a/b/x.safetensors": weights, "README.md": ""}, "a/b", ""},
		{"weights apart", ft.Files{"config.json": "{}", "w/1.safetensors": weights, "v/2.safetensors": weights}, ".", ""},
		{"the same names apart", ft.Files{"config.json": "{}", "w/1.safetensors": weights, "v/1.safetensors": weights}, "",
			"under the same names"},
		{"a draft below", ft.Files{"config.json": "{}", "1.safetensors": weights, "draft/config.json": "{}",
			"draft/1.safetensors": weights}, ".", ""},
		{"an adapter beside", ft.Files{"m/config.json": "{}", "m/1.safetensors": weights, "lora/adapter_config.json": "{}",
			"lora/adapter_model.safetensors": weights}, "m", ""},
		{"two", ft.Files{"a/config.json": "{}", "a/1.safetensors": weights, "b/config.json": "{}",
			"b/1.safetensors": weights}, "", "it has several models, in the folders a, b"},
		{"a file of GGUF without a name", ft.Files{"models/model.file": gguf}, "models", ""},
		{"no weights", ft.Files{"config.json": "{}", "pytorch_model.bin": "PK\x03\x04"}, ".", ""},
		{"a diffusion model", ft.Files{"model_index.json": "{}", "unet/config.json": "{}"}, ".", ""},
		{"nothing", ft.Files{"a.bin": "text", "b.txt": "text"}, "", "a.bin, b.txt, which ingot does not run"},
	} {
		i, _ := opened(t, ft.Oras(t, c.files))
		f, err := i.Open(t.Context(), "")
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", c.name, err, c.says)
			}
			continue
		}
		if err != nil || f.(*folder).root != c.root {
			t.Errorf("%s: %+v, %v", c.name, f, err)
		}
	}
}

// Archives that no folder can hold are refused, and what was unpacked is removed.
func TestOpenHostile(t *testing.T) {
	for name, members := range map[string][]ft.Member{
		"leaves the folder": {{Name: "a", Content: "x"}, {Name: "../b"}},
		"a symbolic link":   {{Name: "a", Content: "x"}, {Name: "b", Type: '2', Link: "a"}},
		"twice":             {{Name: "a", Content: "x"}, {Name: "a"}},
		"only in case":      {{Name: "a", Content: "x"}, {Name: "A"}},
	} {
		for _, wrapping := range []string{ft.Tar, ft.Gzip} {
			i, temp := opened(t, ft.New(t, "application/vnd.kitops.modelkit.config.v1+json", "", "{}", ft.Layer{
				MediaType: "application/vnd.kitops.modelkit.model.v1.tar", Content: ft.Wrap(t, wrapping, members...)}))
			_, err := i.Open(t.Context(), "")
			if !errors.Is(err, unpack.ErrArchive) || !errors.Is(err, ErrLayer) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s, %s: %v", name, wrapping, err)
			}
			if _, err := os.Stat(temp); err == nil {
				t.Errorf("%s: unpacked files stay", name)
			}
		}
	}
	i, _ := opened(t, ft.Oras(t, ft.Files{"x.gguf": "x"}))
	i.Blob = func(digest.Digest) (*os.File, error) { return nil, manifest.ErrBlobMissing }
	if _, err := i.Open(t.Context(), ""); !errors.Is(err, manifest.ErrBlobMissing) {
		t.Error(err)
	}
}

// A file cannot be read beyond its end, where the next member of its archive is.
func TestFolderBounds(t *testing.T) {
	i, _ := opened(t, ft.ModelKit(t, "", ft.KitPart{Type: "model", Path: ".",
		Files: ft.Files{"config.json": "{}", "x.safetensors": weights}}))
	f, err := i.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	file, err := f.Open("config.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b := make([]byte, 100)
	if n, err := file.(io.ReaderAt).ReadAt(b, 0); n != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("%d, %v", n, err)
	}
	var _ safetensors.Folder = f
}
