package manifest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/encoding"
	"github.com/ingotml/ingot/manifest/store/storetest"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

var update = flag.Bool("update", false, "write the golden files")

// sampleLayer returns a layer with the digest of its own name and the media type that the encoder would choose.
func sampleLayer(kind manifest.Kind, name, mediaType string, size int64) manifest.Layer {
	return manifest.Layer{Kind: kind, Name: name, MediaType: mediaType, Digest: digest.FromString(name), Size: size}
}

func sampleImage() manifest.Image {
	const weight, config, doc = modelspec.MediaTypeModelWeightRaw, modelspec.MediaTypeModelWeightConfigRaw,
		modelspec.MediaTypeModelDocRaw
	return manifest.Image{
		Config: manifest.Config{
			Name: "Demo 1.2B <chat>", Family: "llama3", Licenses: []string{"Apache-2.0"},
			Architecture: "LlamaForCausalLM", ModelType: "llama", Format: "safetensors", DType: "BF16",
			Params: 1235814400, Capabilities: []string{manifest.CapCompletion, manifest.CapTools},
			ContextLength: 131072, EmbeddingLength: 2048,
		},
		Layers: []manifest.Layer{
			sampleLayer(manifest.KindFile, "config.json", config, 712),
			sampleLayer(manifest.KindFile, "tokenizer.json", config, 9085657),
			sampleLayer(manifest.KindFile, "model.safetensors.index.json", config, 99),
			sampleLayer(manifest.KindTensor, "model.embed_tokens.weight", weight, 525336704),
			sampleLayer(manifest.KindTensor, "model.norm.weight", weight, 4224),
			sampleLayer(manifest.KindFile, "extra/README.md", doc, 3),
			sampleLayer(manifest.KindLicense, "LICENSE", doc, 11358),
			sampleLayer(manifest.KindTemplate, "chat_template.jinja", config, 3826),
			sampleLayer(manifest.KindParams, "params.json", config, 0),
			sampleLayer("other-kind", "system.txt", config, 7),
		},
	}
}

// The encoded bytes must not change, because that would change the digest of every model.
func TestEncodeModelPackGolden(t *testing.T) {
	manifestBytes, config := storetest.MustEncode(t, sampleImage())
	for name, got := range map[string][]byte{"modelpack-manifest.json": manifestBytes, "modelpack-config.json": config} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestModelPackRoundTrip(t *testing.T) {
	want := sampleImage()
	got, err := encoding.Decode(storetest.MustEncode(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Decode(Encode(x)) (-want +got):\n%s", diff)
	}

	// The encoder replaces media types that are empty or of another encoding.
	bare := want
	bare.Layers = nil
	for i, l := range want.Layers {
		l.MediaType = [...]string{"", "application/vnd.ollama.image.tensor"}[i%2]
		bare.Layers = append(bare.Layers, l)
	}
	if got, err = encoding.Decode(storetest.MustEncode(t, bare)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Decode(Encode(x without media types)) (-want +got):\n%s", diff)
	}

	minimal := manifest.Image{Layers: []manifest.Layer{sampleLayer(manifest.KindTensor, "w",
		modelspec.MediaTypeModelWeightRaw, 1)}}
	if got, err = encoding.Decode(storetest.MustEncode(t, minimal)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(minimal, got); diff != "" {
		t.Errorf("minimal image (-want +got):\n%s", diff)
	}
}

// The encoding satisfies model-spec v0.0.7, as decoded by the specification's own Go types.
func TestModelPackFollowsModelSpec(t *testing.T) {
	img := sampleImage()
	manifestBytes, config := storetest.MustEncode(t, img)

	var m ocispec.Manifest
	storetest.Strictly(t, manifestBytes, &m)
	if m.SchemaVersion != 2 || m.MediaType != "application/vnd.oci.image.manifest.v1+json" ||
		m.ArtifactType != "application/vnd.cncf.model.manifest.v1+json" ||
		m.Config.MediaType != "application/vnd.cncf.model.config.v1+json" {
		t.Errorf("types of the manifest: %+v", m)
	}
	if m.Config.Digest != digest.FromBytes(config) || m.Config.Size != int64(len(config)) {
		t.Errorf("config descriptor %+v does not match the config", m.Config)
	}
	for i, d := range m.Layers {
		path := d.Annotations["org.cncf.model.filepath"]
		if want := img.Layers[i].Path(); path != want {
			t.Errorf("layer %d is at %q, want %q", i, path, want)
		}
		var meta modelspec.FileMetadata
		storetest.Strictly(t, []byte(d.Annotations["org.cncf.model.file.metadata+json"]), &meta)
		want := modelspec.FileMetadata{Name: filepath.Base(path), Mode: 0o644, Size: d.Size, ModTime: time.Unix(0, 0).UTC(),
			Typeflag: '0'}
		if meta != want {
			t.Errorf("layer %d has metadata %+v, want %+v", i, meta, want)
		}
	}

	var c modelspec.Model
	storetest.Strictly(t, config, &c)
	if c.Descriptor.CreatedAt != nil || bytes.Contains(config, []byte("createdAt")) {
		t.Error("the config has a date")
	}
	if c.ModelFS.Type != "layers" || len(c.ModelFS.DiffIDs) != len(m.Layers) {
		t.Fatalf("modelfs %+v", c.ModelFS)
	}
	for i, id := range c.ModelFS.DiffIDs {
		if id != m.Layers[i].Digest {
			t.Errorf("diffId %d is %s, want the layer's digest", i, id)
		}
	}
	no, yes := false, true
	want := modelspec.ModelConfig{
		Architecture: "LlamaForCausalLM", Format: "safetensors", ParamSize: "1.2b", Precision: "bfloat16",
		Capabilities: &modelspec.ModelCapabilities{InputTypes: []modelspec.Modality{"text"},
			OutputTypes: []modelspec.Modality{"text"},
			Reasoning:   &no, ToolUsage: &yes, Embedding: &no},
	}
	if diff := cmp.Diff(want, c.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

// manifestJSON returns a manifest for config, valid except for the effects of change.
func manifestJSON(t *testing.T, config []byte, change func(*ocispec.Manifest)) []byte {
	t.Helper()
	m := ocispec.Manifest{
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: modelspec.ArtifactTypeModelManifest,
		Config: ocispec.Descriptor{MediaType: modelspec.MediaTypeModelConfig, Digest: digest.FromBytes(config),
			Size: int64(len(config))},
		Layers: []ocispec.Descriptor{{MediaType: modelspec.MediaTypeModelWeightRaw, Digest: storetest.SomeDigest, Size: 1}},
	}
	m.SchemaVersion = 2
	change(&m)
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEncodeModelPackErrors(t *testing.T) {
	tensor := func(name string) manifest.Layer {
		return manifest.Layer{Kind: manifest.KindTensor, Name: name, Digest: storetest.SomeDigest}
	}
	many := manifest.Image{}
	for i := range 4500 {
		many.Layers = append(many.Layers, tensor(fmt.Sprintf("%s.%d", strings.Repeat("w", 230), i)))
	}
	tests := []struct {
		name string
		img  manifest.Image
		want error
		says string
	}{
		{"no layers", manifest.Image{}, manifest.ErrInvalidImage, "no layers"},
		{"no path", manifest.Image{Layers: []manifest.Layer{{Kind: manifest.KindLicense, Digest: storetest.SomeDigest}}},
			manifest.ErrInvalidImage,
			"a license without a path"},
		{"no kind", manifest.Image{Layers: []manifest.Layer{{Name: "x", Digest: storetest.SomeDigest}}},
			manifest.ErrInvalidImage, "kind"},
		{"no digest", manifest.Image{Layers: []manifest.Layer{{Kind: manifest.KindFile, Name: "x"}}},
			manifest.ErrInvalidImage, "digest"},
		{"twice", manifest.Image{Layers: []manifest.Layer{tensor("w"), tensor("w")}}, manifest.ErrInvalidImage, "both"},
		{"not UTF-8", manifest.Image{Layers: []manifest.Layer{tensor("w")}, Config: manifest.Config{Family: "a\xff"}},
			manifest.ErrInvalidImage, "UTF-8"},
		{"negative", manifest.Image{Layers: []manifest.Layer{tensor("w")}, Config: manifest.Config{Params: -1}},
			manifest.ErrInvalidImage, "negative"},
		{"comma", manifest.Image{Layers: []manifest.Layer{tensor("w")},
			Config: manifest.Config{Capabilities: []string{"a,b"}}}, manifest.ErrInvalidImage,
			"capability"},
		{"large config",
			manifest.Image{Layers: []manifest.Layer{tensor("w")},
				Config: manifest.Config{Licenses: []string{strings.Repeat("x", manifest.MaxConfigSize)}}},
			manifest.ErrTooLarge, "config"},
		{"many layers", many, manifest.ErrTooLarge, "4500 layers"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := manifest.EncodeModelPack(tt.img); !errors.Is(err, tt.want) ||
				!strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %v saying %q", err, tt.want, tt.says)
			}
		})
	}
}

func TestParamSize(t *testing.T) {
	tests := []struct {
		n    int64
		want string
		back int64
	}{
		{0, "", 0},
		{49, "", 0},
		{50, "0.1k", 100},
		{1000, "1k", 1000},
		{12_345, "12.3k", 12_300},
		{999_949, "999.9k", 999_900},
		{999_950, "1m", 1_000_000},
		{134_515_008, "134.5m", 134_500_000},
		{1_235_814_400, "1.2b", 1_200_000_000},
		{8_030_261_248, "8b", 8_000_000_000},
		{671_026_419_200, "671b", 671_000_000_000},
		{1_000_000_000_000, "1t", 1_000_000_000_000},
		{1<<63 - 1, "9223.4q", 0},
	}
	for _, tt := range tests {
		got := manifest.FormatParamSize(tt.n)
		if got != tt.want {
			t.Errorf("formatParamSize(%d) = %q, want %q", tt.n, got, tt.want)
		}
		if back := manifest.ParseParamSize(got); back != tt.back {
			t.Errorf("parseParamSize(%q) = %d, want %d", got, back, tt.back)
		}
	}
	for _, s := range []string{"8", "b", "x8b", "-1b", "nanb", "infb", "8 b", "1e99q"} {
		if n := manifest.ParseParamSize(s); n != 0 {
			t.Errorf("parseParamSize(%q) = %d, want 0", s, n)
		}
	}
	if n := manifest.ParseParamSize("6.7B"); n != 6_700_000_000 {
		t.Errorf(`parseParamSize("6.7B") = %d`, n)
	}
}
