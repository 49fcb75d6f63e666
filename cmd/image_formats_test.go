package cmd_test

import (
	"archive/tar"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ft "github.com/ingotml/ingot/manifest/foreign/foreigntest"
	"github.com/ingotml/ingot/registry/registrytest"
)

// modelFiles returns the files of a model of testdata, below a folder.
func modelFiles(t *testing.T, model, folder string) ft.Files {
	t.Helper()
	dir := filepath.Join("..", "testdata", "models", model)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := ft.Files{}
	for _, e := range entries {
		if e.IsDir() || e.Name() == "Modelfile" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[path.Join(folder, e.Name())] = string(b)
	}
	return files
}

func members(files ft.Files) (list []ft.Member) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, ft.Member{Name: name, Content: files[name]})
	}
	return list
}

// with returns files with one more.
func with(files ft.Files, name, content string) ft.Files {
	files = maps.Clone(files)
	files[name] = content
	return files
}

// A checkpoint is the same model, whoever packed it.
func TestImageFormats(t *testing.T) {
	files, home := modelFiles(t, "llama-default", ""), t.TempDir()
	want := made(ingot(t, home, "create", "want", filepath.Join("..", "testdata", "models", "llama-default")))
	below := modelFiles(t, "llama-default", "models/tiny")
	apart := ft.Files{}
	for name, content := range files {
		if path.Ext(name) == ".safetensors" {
			name = "weights/" + name
		}
		apart[name] = content
	}
	adapter := ft.Files{"lora/adapter_config.json": "{}", "lora/adapter_model.safetensors": files["model.safetensors"]}
	images := map[string]ft.Image{
		"modctl/raw": ft.ModelPack(t, files, ft.Raw), "modctl/tar": ft.ModelPack(t, files, ft.Tar),
		"modctl/gzip": ft.ModelPack(t, files, ft.Gzip), "modctl/zstd": ft.ModelPack(t, files, ft.Zstd),
		"modctl/legacy": ft.LegacyModelPack(t, files, ft.Raw), "modctl/apart": ft.ModelPack(t, apart, ft.Tar),
		"modctl/dataset": ft.ModelPack(t, with(files, "data/train.csv", "1,2"), ft.Raw),
		"modctl/twice":   ft.ModelPack(t, with(files, "draft/config.json", "{}"), ft.Raw),
		"kit/tar":        ft.ModelKit(t, "", ft.KitPart{Type: "model", Path: ".", Files: files}),
		"kit/gzip":       ft.ModelKit(t, "+gzip", ft.KitPart{Type: "model", Path: "./models", Files: below}),
		"kit/parts": ft.ModelKit(t, "", ft.KitPart{Type: "model", Path: "models", Files: below},
			ft.KitPart{Type: "modelpart", Path: "lora", Files: adapter},
			ft.KitPart{Type: "dataset", Path: "data", Files: ft.Files{"data/x.csv": "1"}}),
		"docker/safetensors": ft.ModelRunner(t, files, true, map[string]any{"format": "safetensors"}),
		"oras/files":         ft.Oras(t, files), "oras/folders": ft.Oras(t, below),
		"oras/folder": ft.OrasFolder(t, "tiny", files),
		"container/data": ft.Container(t, nil, []ft.Member{{Name: "models/tiny/config.json", Content: "old"}},
			append(members(below), ft.Member{Name: "models/latest", Type: tar.TypeSymlink, Link: "tiny"})),
	}
	p := registrytest.New(t)
	for _, repo := range slices.Sorted(maps.Keys(images)) {
		images[repo].Push(p, repo, "v1")
		name := p.Host() + "/" + repo + ":v1"
		out, err := command(home, "pull", name).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "partial") {
			t.Errorf("%s: %s, %v, want %s", repo, out, err, want)
		}
		if got := made(ingot(t, t.TempDir(), "create", "mine", name)); got != want {
			t.Errorf("create from %s: %s, want %s", repo, got, want)
		}
	}
	ingot(t, home, "fsck")
	small := made(ingot(t, home, "quantize", "want", "small", "int8"))
	if got := made(ingot(t, t.TempDir(), "quantize", p.Host()+"/kit/gzip:v1", "small", "int8")); got != small {
		t.Errorf("quantized: %s, want %s", got, small)
	}
	if entries, _ := filepath.Glob(filepath.Join(home, "ingest", "folder-*")); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// made returns the digest that create prints.
func made(out string) string {
	_, d, _ := strings.Cut(strings.TrimSpace(out), "@")
	return d
}

// A GGUF file is the same model, whoever packed it, with the template and the parameters of the image.
func TestImageFormatsGGUF(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "convert", "testdata", "gguf", "llama-rope-llama3.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	gguf := string(b)
	p, home := registrytest.New(t), t.TempDir()
	for repo, image := range map[string]ft.Image{
		"docker/named":   ft.ModelRunner(t, ft.Files{"tiny.gguf": gguf}, true, nil),
		"docker/unnamed": ft.ModelRunner(t, ft.Files{"tiny.gguf": gguf, "mmproj.gguf": "GGUF"}, false, nil),
		"modctl/gguf":    ft.ModelPack(t, ft.Files{"tiny.gguf": gguf}, ft.Zstd),
		"oras/bin":       ft.Oras(t, ft.Files{"weights.bin": gguf, "notes.txt": "x"}),
		"container/raw":  ft.Container(t, nil, []ft.Member{{Name: "models/model.file", Content: gguf}}),
	} {
		image.Push(p, repo, "v1")
		ingot(t, home, "pull", p.Host()+"/"+repo+":v1")
	}
	full := ft.ModelRunner(t, ft.Files{"tiny.gguf": gguf, "LICENSE": "Use it.", "chat.jinja": "{{ messages }} here"}, true,
		map[string]any{"context_size": 64})
	full.Push(p, "docker/full", "v1")
	ft.New(t, "application/vnd.cncf.model.config.v1+json", "", `{"descriptor":{"licenses":["Apache-2.0"]}}`, ft.Layer{
		MediaType: "application/vnd.cncf.model.weight.v1.raw", Content: gguf,
	}).Push(p, "modctl/license", "v1")
	ingot(t, home, "pull", p.Host()+"/modctl/license:v1")
	if got := ingot(t, home, "show", p.Host()+"/modctl/license:v1", "--modelfile"); !strings.Contains(got, "Apache-2.0") {
		t.Error(got)
	}
	ingot(t, home, "pull", p.Host()+"/docker/full:v1")
	modelfile := ingot(t, home, "show", p.Host()+"/docker/full:v1", "--modelfile")
	for _, want := range []string{"{{ messages }} here", "Use it.", "num_ctx 64"} {
		if !strings.Contains(modelfile, want) {
			t.Errorf("no %q in\n%s", want, modelfile)
		}
	}
	if n := strings.Count(modelfile, "Use it."); n != 1 {
		t.Errorf("%d licenses in\n%s", n, modelfile)
	}
	own := filepath.Join(t.TempDir(), "Modelfile")
	text := "FROM " + p.Host() + "/docker/full:v1\nPARAMETER num_ctx 32\nSYSTEM Be brief.\n"
	if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	ingot(t, other, "create", "mine", "-f", own)
	modelfile = ingot(t, other, "show", "mine", "--modelfile")
	for _, want := range []string{"{{ messages }} here", "Be brief.", "num_ctx 32"} {
		if !strings.Contains(modelfile, want) {
			t.Errorf("no %q in\n%s", want, modelfile)
		}
	}
}

// fails runs a command that must fail with a message.
func fails(t *testing.T, home, says string, args ...string) {
	t.Helper()
	out, err := command(home, args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), says) {
		t.Errorf("ingot %s: %v: %s\nwant %q", strings.Join(args, " "), err, out, says)
	}
}

// What holds no model, or several, is refused by name, before it is downloaded where its manifest tells.
func TestImageFormatsRefused(t *testing.T) {
	files := modelFiles(t, "llama-default", "")
	two := modelFiles(t, "llama-default", "a")
	maps.Copy(two, modelFiles(t, "llama-default", "b"))
	link := ft.Member{Name: "model.safetensors", Type: tar.TypeSymlink, Link: "/etc/passwd"}
	p, home := registrytest.New(t), t.TempDir()
	for repo, c := range map[string]struct {
		image ft.Image
		says  string
		early bool // nothing is downloaded
	}{
		"helm": {ft.New(t, "application/vnd.cncf.helm.config.v1+json", "", "{}", ft.Layer{
			MediaType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", Content: "x"}), "a Helm chart", true},
		"container": {ft.Container(t, []string{"sh"}, []ft.Member{{Name: "bin/sh"}}), "a container image", true},
		"data":      {ft.Oras(t, ft.Files{"x.parquet": "x"}), "an artifact of x.parquet", true},
		"dataset":   {ft.ModelPack(t, ft.Files{"x.csv": "x"}, ft.Raw), "a dataset of ModelPack", true},
		"folder":    {ft.OrasFolder(t, "x", ft.Files{"a.csv": "x"}), "files without a model's weights", false},
		"two":       {ft.ModelPack(t, two, ft.Tar), "in the folders a, b; take out the files of one with `ingot", false},
		"link":      {ft.ModelKit(t, "", ft.KitPart{Type: "model", Path: ".", Files: files}), "", false},
		"ggufs": {ft.Oras(t, ft.Files{"a.gguf": "GGUF1", "b.gguf": "GGUF2"}),
			"it has several GGUF models: a.gguf, b.gguf; take", false},
	} {
		if repo == "link" {
			content := ft.Wrap(t, ft.Tar, append(members(ft.Files{"config.json": files["config.json"]}), link)...)
			c.image = ft.New(t, "application/vnd.kitops.modelkit.config.v1+json", "", "{}",
				ft.Layer{MediaType: "application/vnd.kitops.modelkit.model.v1.tar", Content: content})
			c.says = `member "model.safetensors" is a symbolic link`
		}
		c.image.Push(p, repo, "v1")
		name := p.Host() + "/" + repo + ":v1"
		_, before := p.Traffic()
		fails(t, home, c.says, "create", "mine", name)
		if _, after := p.Traffic(); c.early && after-before > int64(len(c.image.Config)) {
			t.Errorf("%s: %d bytes were downloaded", repo, after-before)
		}
	}
}
