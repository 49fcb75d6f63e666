package cmd_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ft "github.com/ingotml/ingot/manifest/foreign/foreigntest"
	"github.com/ingotml/ingot/manifest/ollama/ollamatest"
	"github.com/ingotml/ingot/registry/registrytest"
	"github.com/opencontainers/go-digest"
)

// tree returns the files of a folder.
func tree(t *testing.T, dir string) ft.Files {
	t.Helper()
	files := ft.Files{}
	if _, err := os.Stat(dir); err != nil {
		return files
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The files of an image are written as they are, of a pattern only those, and the store keeps nothing.
func TestExtract(t *testing.T) {
	files := ft.Files{"config.json": "{}", "w.safetensors": strings.Repeat("w", 100_000), "docs/a.md": "Hi"}
	p, home := registrytest.New(t), t.TempDir()
	for repo, image := range map[string]ft.Image{
		"raw": ft.ModelPack(t, files, ft.Raw), "zstd": ft.ModelPack(t, files, ft.Zstd), "oras": ft.Oras(t, files),
	} {
		image.Push(p, repo, "v1")
		name, dir := p.Host()+"/"+repo+":v1", filepath.Join(t.TempDir(), "dir")
		if out := ingot(t, home, "extract", name, dir); strings.TrimSpace(out) != dir || !maps.Equal(tree(t, dir), files) {
			t.Errorf("%s: %s: %v", repo, out, tree(t, dir))
		}
		_, before := p.Traffic()
		some := filepath.Join(t.TempDir(), "some")
		ingot(t, home, "extract", name, "*.json", "docs", some)
		got := slices.Sorted(maps.Keys(tree(t, some)))
		if !slices.Equal(got, []string{"config.json", "docs/a.md"}) {
			t.Errorf("%s: %v", repo, got)
		}
		if _, after := p.Traffic(); after-before > 5_000 {
			t.Errorf("%s: %d bytes for two small files", repo, after-before)
		}
		fails(t, home, "config.json: file exists; use --force", "extract", name, "*.json", some)
		ingot(t, home, "extract", name, "*.json", some, "--force")
		none := filepath.Join(dir, "none")
		fails(t, home, "no file matches *.gguf; --list shows the files", "extract", name, "*.gguf", none)
		if _, err := os.Stat(none); err == nil {
			t.Errorf("%s: a folder without files", repo)
		}
	}
	blobs, _ := filepath.Glob(filepath.Join(home, "blobs", "sha256", "*"))
	left, _ := filepath.Glob(filepath.Join(home, "ingest", "*"))
	if len(blobs)+len(left) > 0 {
		t.Errorf("the store keeps %v %v", blobs, left)
	}
}

// --list downloads no layer. --json says what was written.
func TestExtractLists(t *testing.T) {
	p, home := registrytest.New(t), t.TempDir()
	ft.ModelKit(t, "", ft.KitPart{Type: "model", Path: "weights", Files: ft.Files{"weights/a.gguf": "x"}},
		ft.KitPart{Type: "docs", Path: "README.md", Files: ft.Files{"README.md": "Hi"}}).Push(p, "kit", "v1")
	name := p.Host() + "/kit:v1"
	out := ingot(t, home, "extract", name, "--list")
	if !strings.Contains(out, "weights (archive)") || !strings.Contains(out, "README.md (archive)") {
		t.Error(out)
	}
	if n := p.Count(http.MethodGet, registrytest.BlobRoute); n != 1 {
		t.Errorf("%d blobs, want the config alone", n)
	}
	if out := ingot(t, home, "inspect", name); !strings.Contains(out, "do it: an image of KitOps") ||
		!strings.Contains(out, "weights") {
		t.Error(out)
	}
	dir := filepath.Join(t.TempDir(), "dir")
	var got struct {
		Format string
		Files  []struct {
			Path string
			Size int64
		}
	}
	if err := json.Unmarshal([]byte(ingot(t, home, "extract", name, dir, "--json", "--quiet")), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Files) != 2 || got.Files[1].Path != "weights/a.gguf" || got.Files[1].Size != 1 || got.Format != "KitOps" {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{{"extract", name}, {"extract", "ollama://x", "d"}, {"extract", name, "[", "d"},
		{"extract", "local", "d", "--remote"}, {"extract", "hf.co/a/b", "d"}} {
		c := command(home, args...)
		if out, err := c.CombinedOutput(); err == nil || c.ProcessState.ExitCode() != 2 {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}

// A registry that sends other bytes, an archive that leaves the folder, and one that is cut off, leave nothing behind.
func TestExtractHostile(t *testing.T) {
	p, home := registrytest.New(t), t.TempDir()
	up := ft.Wrap(t, ft.Tar, ft.Member{Name: "good", Content: "x"}, ft.Member{Name: "../bad"})
	ft.New(t, "application/vnd.kitops.modelkit.config.v1+json", "", "{}",
		ft.Layer{MediaType: "application/vnd.kitops.modelkit.model.v1.tar", Content: up}).Push(p, "up", "v1")
	files := ft.Files{"a.gguf": "weights"}
	ft.ModelPack(t, files, ft.Raw).Push(p, "changed", "v1")
	ft.New(t, "application/vnd.oci.empty.v1+json", "", "{}", ft.Layer{MediaType: "a/b", Content: "weights", Size: 9,
		Annotations: map[string]string{"org.opencontainers.image.title": "a.gguf"}}).Push(p, "size", "v1")
	ft.ModelPack(t, ft.Files{"../a.gguf": "x"}, ft.Raw).Push(p, "path", "v1")
	p.On(http.MethodGet, registrytest.BlobRoute, registrytest.Flip(2)).Of(digest.FromString("weights").String())
	for repo, says := range map[string]string{
		"up": "leaves the folder", "changed": "digest", "size": "digest", "path": "must be relative",
	} {
		above := t.TempDir()
		fails(t, home, says, "extract", p.Host()+"/"+repo+":v1", filepath.Join(above, "dir"))
		if got := tree(t, above); len(got) > 0 {
			t.Errorf("%s: %v", repo, got)
		}
	}
}

// A model of ingot's is written as a checkpoint that it can be created from again.
func TestExtractOwn(t *testing.T) {
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), "dir")
	want := made(ingot(t, home, "create", "tiny", filepath.Join("..", "testdata", "models", "llama-default")))
	ingot(t, home, "extract", "tiny", dir)
	if got := made(ingot(t, home, "create", "again", dir)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	ingot(t, home, "extract", "tiny", "config.json", filepath.Join(dir, "one"))
	if got := tree(t, filepath.Join(dir, "one")); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// The layers of Ollama's images have no names, and get those of what they are.
func TestExtractOllama(t *testing.T) {
	name := ollamatest.New(t, [2]string{"model", "GGUF"}, [2]string{"license", "MIT"}, [2]string{"license", "Apache-2.0"},
		[2]string{"template", "{{ .Prompt }}"}, [2]string{"params", "{}"}, [2]string{"projector", "GGUF2"}).Serve(t)
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), "dir")
	ingot(t, home, "extract", name, dir)
	want := ft.Files{"model.gguf": "GGUF", "LICENSE": "MIT", "LICENSE.2": "Apache-2.0", "template": "{{ .Prompt }}",
		"params.json": "{}", "mmproj.gguf": "GGUF2"}
	if got := tree(t, dir); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
