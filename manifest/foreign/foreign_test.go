package foreign_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	ft "github.com/ingotml/ingot/manifest/foreign/foreigntest"
	"github.com/opencontainers/go-digest"
)

var (
	checkpoint = ft.Files{"config.json": "{}", "model.safetensors": "weights", "sub/vocab.json": "[]", "README.md": "Hi"}
	kit        = []ft.KitPart{
		{Type: "model", Path: "./weights", Files: ft.Files{"weights/config.json": "{}"}},
		{Type: "dataset", Path: "data.csv", Files: ft.Files{"data.csv": "1,2"}},
	}
)

// line describes a layer: its path, role, kind, and whether it is an archive.
func line(l foreign.Layer) string {
	text := l.Path + " " + string(l.Role)
	if l.Kind != "" {
		text += " " + string(l.Kind)
	}
	if l.Archive {
		text += " archive"
	}
	return text
}

// Each format's files have their paths and roles.
func TestParse(t *testing.T) {
	pack := []string{"README.md doc", "config.json config", "model.safetensors weights", "sub/vocab.json config"}
	var archives []string
	for _, l := range pack {
		archives = append(archives, l+" archive")
	}
	gguf := ft.Files{"a.gguf": "1", "b.gguf": "2", "LICENSE": "MIT", "mmproj.gguf": "p", "t.jinja": "{{ x }}"}
	named := maps.Clone(gguf)
	named["v3.mmproj.gguf"] = "q"
	for _, c := range []struct {
		name   string
		image  ft.Image
		format foreign.Format
		want   []string
	}{
		{"modctl, raw", ft.ModelPack(t, checkpoint, ft.Raw), foreign.ModelPack, pack},
		{"modctl, tar", ft.ModelPack(t, checkpoint, ft.Tar), foreign.ModelPack, archives},
		{"modctl, zstd", ft.ModelPack(t, checkpoint, ft.Zstd), foreign.ModelPack, archives},
		{"before CNCF", ft.LegacyModelPack(t, checkpoint, ft.Raw), foreign.ModelPack, pack},
		{"KitOps", ft.ModelKit(t, "", kit...), foreign.ModelKit,
			[]string{"weights weights archive", "data.csv dataset archive"}},
		{"Docker, named", ft.ModelRunner(t, named, true, nil), foreign.ModelRunner, []string{
			"LICENSE doc license", "a.gguf weights", "b.gguf weights", "mmproj.gguf projector", "t.jinja config template",
			"v3.mmproj.gguf projector"}},
		{"Docker, without names", ft.ModelRunner(t, gguf, false, nil), foreign.ModelRunner, []string{"LICENSE doc license",
			"model-00001-of-00002.gguf weights", "model-00002-of-00002.gguf weights", "mmproj.gguf projector",
			"template config template"}},
		{"Docker, a checkpoint", ft.New(t, "application/vnd.docker.ai.model.config.v0.1+json", "", "{}", ft.Layer{
			MediaType: "application/vnd.docker.ai.vllm.config.tar", Content: ft.Wrap(t, ft.Tar, ft.Member{Name: "config.json"}),
			Annotations: map[string]string{"org.cncf.model.filepath": "vllm-config-38.tar"}}), foreign.ModelRunner,
			[]string{"  archive"}},
		{"oras", ft.Oras(t, checkpoint), foreign.Files, []string{
			"README.md ", "config.json ", "model.safetensors ", "sub/vocab.json "}},
		{"oras, a folder", ft.OrasFolder(t, "model", checkpoint), foreign.Files, []string{"model  archive"}},
		{"a container image", ft.Container(t, nil, []ft.Member{{Name: "a"}}), foreign.Files, []string{"  archive"}},
		{"types of a later version", ft.New(t, "application/vnd.kitops.modelkit.config.v7+json", "", "{", ft.Layer{
			MediaType: "application/vnd.kitops.modelkit.prompt.v7.raw", Content: "x"}), foreign.ModelKit,
			[]string{"sha256-2d711642b726 "}},
	} {
		img, err := foreign.Parse(c.image.Manifest, c.image.Config)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, l := range img.Layers {
			got = append(got, line(l))
		}
		if img.Format != c.format || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %q\nwant %q", c.name, img.Format, got, c.want)
		}
	}
}

// Images without a model say what they are, and what to do.
func TestNoModel(t *testing.T) {
	layer := func(mediaType, title string) ft.Layer {
		return ft.Layer{MediaType: mediaType, Content: "x",
			Annotations: map[string]string{"org.opencontainers.image.title": title}}
	}
	data := ft.Files{"train.parquet": "x", "README.md": "y"}
	for _, c := range []struct {
		says  string
		image ft.Image
	}{
		{"a Helm chart", ft.New(t, "application/vnd.cncf.helm.config.v1+json", "", "{}",
			ft.Layer{MediaType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", Content: "x"})},
		{"a WebAssembly module", ft.New(t, "application/vnd.wasm.config.v0+json", "", "{}", ft.Layer{
			MediaType: "application/wasm", Content: "x"})},
		{"a signature", ft.New(t, "application/vnd.oci.image.config.v1+json", "", "{}", ft.Layer{
			MediaType: "application/vnd.dev.cosign.simplesigning.v1+json", Content: "x"})},
		{"a container image", ft.Container(t, []string{"sh"}, []ft.Member{{Name: "bin/sh"}})},
		{"a dataset of ModelPack", ft.ModelPack(t, data, ft.Raw)},
		{"an artifact of README.md, train.parquet", ft.Oras(t, data)},
		{"a dataset of KitOps", ft.ModelKit(t, "", kit[1])},
		{"in another ModelKit, ghcr.io/a/b:c, which ingot does not run; name that one",
			ft.New(t, "application/vnd.kitops.modelkit.config.v1+json", "", `{"model":{"path":"ghcr.io/a/b:c"}}`,
				ft.Layer{MediaType: "application/vnd.kitops.modelkit.modelpart.v1.tar", Content: "an adapter"})},
		{"an image of ModelPack without weights", ft.ModelPack(t, ft.Files{"config.json": "{}"}, ft.Tar)},
		{"a model of Docker Model Runner with an adapter in a GGUF file",
			ft.ModelRunner(t, ft.Files{"a.gguf": "x", "a.lora.gguf": "y"}, true, nil)},
		{"an image generation model of Docker Model Runner", ft.ModelRunner(t, ft.Files{"x.dduf": "x"}, true, nil)},
		{"an image without layers", ft.New(t, "application/vnd.oci.empty.v1+json", "", "{}")},
		{"an artifact of app.tgz", ft.New(t, "application/vnd.unknown.config.v1+json", "", "{}",
			layer("application/gzip", "app.tgz"))},
	} {
		img, err := foreign.Parse(c.image.Manifest, c.image.Config)
		if err != nil {
			t.Errorf("%s: %v", c.says, err)
			continue
		}
		err = img.Model()
		if !errors.Is(err, manifest.ErrUnknownManifest) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
	for _, i := range []ft.Image{
		ft.ModelPack(t, checkpoint, ft.Zstd), ft.ModelKit(t, "", kit...), ft.Oras(t, checkpoint),
		ft.OrasFolder(t, "x", checkpoint), ft.Container(t, nil, []ft.Member{{Name: "models/a.gguf"}}),
		ft.ModelRunner(t, ft.Files{"a.gguf": "x"}, false, nil), ft.Oras(t, ft.Files{"model.bin": "GGUF"}),
		ft.New(t, "application/vnd.oci.empty.v1+json", "", "{}", layer("application/octet-stream", "a.gguf"),
			layer("application/spdx+json", "sbom.json")),
	} {
		if img, err := foreign.Parse(i.Manifest, i.Config); err != nil || img.Model() != nil {
			t.Errorf("%s: %v, %v", i.Manifest, err, img.Model())
		}
	}
}

// A path that leaves the folder, and two files of one path, are refused.
func TestPaths(t *testing.T) {
	for _, name := range []string{"/etc/passwd", "../x", "a/../../x", `a\b`, "C:/x", "a//b", "a\nb", "x/", ".", "./../x"} {
		i := ft.ModelPack(t, ft.Files{name: "x"}, ft.Raw)
		if _, err := foreign.Parse(i.Manifest, i.Config); !errors.Is(err, manifest.ErrInvalidManifest) {
			t.Errorf("%q: %v", name, err)
		}
	}
	file := func(name, content string) ft.Layer {
		return ft.Layer{MediaType: "application/octet-stream", Content: content,
			Annotations: map[string]string{"org.opencontainers.image.title": name}}
	}
	for _, c := range []struct {
		layers []ft.Layer
		ok     bool
	}{
		{[]ft.Layer{file("./a.gguf", "x")}, true},
		{[]ft.Layer{file("a.gguf", "x"), file("a.gguf", "x")}, true}, // the same file
		{[]ft.Layer{file("a.gguf", "x"), file("a.gguf", "y")}, false},
		{[]ft.Layer{{MediaType: "x/y", Content: "x", Size: 1 << 60}}, false},
	} {
		i := ft.New(t, "application/vnd.oci.empty.v1+json", "", "{}", c.layers...)
		if _, err := foreign.Parse(i.Manifest, i.Config); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.layers, err)
		}
	}
}

// A config says more of the layers. A damaged one says nothing.
func TestConfig(t *testing.T) {
	runner := ft.ModelRunner(t, ft.Files{"a.gguf": "x"}, true, map[string]any{"context_size": 4096})
	pack, kits := ft.ModelPack(t, checkpoint, ft.Raw), ft.ModelKit(t, "", kit...)
	for _, c := range []struct {
		manifest, config []byte
		context          int64
		license          string
	}{
		{runner.Manifest, runner.Config, 4096, ""},
		{runner.Manifest, []byte(`{"config":{"context_size":-1}}`), 0, ""},
		{runner.Manifest, []byte(`{"config":{"context_size":"x"}}`), 0, ""},
		{pack.Manifest, []byte(`{"descriptor":{"licenses":["MIT",""," ","Apache-2.0"]}}`), 0, "MIT,Apache-2.0"},
		{kits.Manifest, []byte(`{"package":{"license":"MIT"}}`), 0, "MIT"},
		{kits.Manifest, []byte(`{"package":{"license":"MIT"},"model":{"license":"Apache-2.0"}}`), 0, "Apache-2.0"},
		{pack.Manifest, []byte("{"), 0, ""},
	} {
		img, err := foreign.Parse(c.manifest, c.config)
		if err != nil || img.Context != c.context || strings.Join(img.Licenses, ",") != c.license {
			t.Errorf("%s: %+v, %v", c.config, img, err)
		}
	}
}

// Of a pattern's layers, as few as possible are fetched.
func TestSelect(t *testing.T) {
	file, hinted := foreign.Layer{Path: "sub/a.json"}, foreign.Layer{Path: "sub/a.json", Archive: true}
	folder, unknown := foreign.Layer{Path: "sub", Archive: true}, foreign.Layer{Archive: true}
	for _, c := range []struct {
		pattern                       string
		file, hinted, folder, unknown bool
	}{
		{"", true, true, true, true},
		{"*.json", true, true, true, true},
		{"*.gguf", false, false, true, true},
		{"sub", true, true, true, true},
		{"sub/", true, true, true, true},
		{"./sub/*", true, true, true, true},
		{"other/*.json", false, false, false, true},
		{"*/a.json", true, true, true, true},
		{"SUB", false, false, true, true}, // a file of the folder may have the name
	} {
		var patterns []string
		if c.pattern != "" {
			patterns = []string{c.pattern}
		}
		var may []bool
		for _, l := range []foreign.Layer{file, hinted, folder, unknown} {
			may = append(may, l.MayHold(patterns))
		}
		got := strings.Trim(fmt.Sprint(may), "[]")
		if want := fmt.Sprint(c.file, c.hinted, c.folder, c.unknown); got != want {
			t.Errorf("%q: %s, want %s", c.pattern, got, want)
		}
	}
}

// Models with a layer per tensor need no import.
func TestTensors(t *testing.T) {
	img := manifest.Image{Layers: []manifest.Layer{
		{Kind: manifest.KindTensor, Name: "a", Digest: digest.FromString("x"), Size: 1}}}
	encoded, config, err := manifest.EncodeModelPack(img)
	if err != nil {
		t.Fatal(err)
	}
	got, err := foreign.Parse(encoded, config)
	if err != nil || !got.Tensors() || got.Model() != nil || got.Layers[0].Path != "model-a.safetensors" {
		t.Errorf("%+v, %v", got, err)
	}
}
