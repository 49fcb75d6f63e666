package manifest_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/encoding"
	"github.com/ingotml/ingot/manifest/store/storetest"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// An image made by another tool: whole files and archives, without ingot's annotations.
func TestDecodeForeignModelPack(t *testing.T) {
	config := []byte(`{"descriptor":{"createdAt":"2025-01-01T00:00:00Z","name":"xyz"},"config":{"format":"safetensors",` +
		`"paramSize":"6.7B",` +
		`"precision":"float16,float8_e4m3","capabilities":{"inputTypes":["text","image"],"outputTypes":["text"],` +
		`"reasoning":true}},` +
		`"modelfs":{"type":"layers","diffIds":["` + string(storetest.SomeDigest) + `"]}}`)
	manifestBytes := manifestJSON(t, config, func(m *ocispec.Manifest) {
		m.Layers = []ocispec.Descriptor{
			{MediaType: modelspec.MediaTypeModelWeightRaw, Digest: storetest.SomeDigest, Size: 5,
				Annotations: map[string]string{modelspec.AnnotationFilepath: "model.safetensors", "x": "y"}},
			{MediaType: modelspec.MediaTypeModelDoc, Digest: storetest.SomeDigest, Size: 5},
		}
	})
	got, err := encoding.Decode(manifestBytes, config)
	if err != nil {
		t.Fatal(err)
	}
	want := manifest.Image{
		Config: manifest.Config{Name: "xyz", Format: "safetensors", DType: "F16,F8_E4M3", Params: 6_700_000_000,
			Capabilities: []string{manifest.CapCompletion, manifest.CapVision, manifest.CapThinking}},
		Layers: []manifest.Layer{
			{Kind: manifest.KindFile, Name: "model.safetensors", MediaType: modelspec.MediaTypeModelWeightRaw,
				Digest: storetest.SomeDigest,
				Size:   5},
			{Kind: manifest.KindFile, MediaType: modelspec.MediaTypeModelDoc, Digest: storetest.SomeDigest, Size: 5},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Size() != 5 {
		t.Errorf("Size() = %d: a blob shared by two layers must count once", got.Size())
	}
	again, err := encoding.Decode(storetest.MustEncode(t, got))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("encoded again (-want +got):\n%s", diff)
	}
}

func TestDecodeErrors(t *testing.T) {
	config := []byte(`{"descriptor":{},"config":{},"modelfs":{"type":"layers","diffIds":["` +
		string(storetest.SomeDigest) + `"]}}`)
	layer := func(annotations map[string]string) func(*ocispec.Manifest) {
		return func(m *ocispec.Manifest) { m.Layers[0].Annotations = annotations }
	}
	filepathIs := func(p string) func(*ocispec.Manifest) {
		return layer(map[string]string{modelspec.AnnotationFilepath: p})
	}
	tensorIs := func(p string) func(*ocispec.Manifest) { return layer(map[string]string{blob.AnnotationTensor: p}) }
	tests := []struct {
		name   string
		change func(*ocispec.Manifest)
		want   error
		says   string
	}{
		{"container image", func(m *ocispec.Manifest) { m.Config.MediaType = ocispec.MediaTypeImageConfig },
			manifest.ErrUnknownManifest, ocispec.MediaTypeImageConfig},
		{"other artifact", func(m *ocispec.Manifest) { m.ArtifactType = "application/x-sbom" }, manifest.ErrUnknownManifest,
			"application/x-sbom"},
		{"index", func(m *ocispec.Manifest) { m.MediaType = ocispec.MediaTypeImageIndex }, manifest.ErrUnknownManifest,
			ocispec.MediaTypeImageIndex},
		{"nothing", func(m *ocispec.Manifest) { *m = ocispec.Manifest{} }, manifest.ErrUnknownManifest, "without types"},
		{"schema version", func(m *ocispec.Manifest) { m.SchemaVersion = 1 }, manifest.ErrInvalidManifest,
			"schema version 1"},
		{"config digest", func(m *ocispec.Manifest) { m.Config.Digest = storetest.SomeDigest }, manifest.ErrCorrupt,
			string(storetest.SomeDigest)},
		{"config size", func(m *ocispec.Manifest) { m.Config.Size++ }, manifest.ErrCorrupt, "config"},
		{"config too large", func(m *ocispec.Manifest) { m.Config.Size = manifest.MaxConfigSize + 1 }, manifest.ErrTooLarge,
			"config"},
		{"config digest form", func(m *ocispec.Manifest) { m.Config.Digest = "md5:00" }, manifest.ErrInvalidManifest,
			"md5:00"},
		{"no layers", func(m *ocispec.Manifest) { m.Layers = nil }, manifest.ErrInvalidManifest, "no layers"},
		{"layer digest", func(m *ocispec.Manifest) { m.Layers[0].Digest = "sha256:../../etc/passwd" },
			manifest.ErrInvalidManifest,
			"layer 0"},
		{"layer size", func(m *ocispec.Manifest) { m.Layers[0].Size = -1 }, manifest.ErrInvalidManifest, "negative"},
		{"sizes overflow", func(m *ocispec.Manifest) {
			m.Layers = append(m.Layers, m.Layers[0])
			m.Layers[0].Size, m.Layers[1].Size = 1<<62, 1<<62
		}, manifest.ErrInvalidManifest, "overflow"},
		{"path up", filepathIs("../x"), manifest.ErrInvalidManifest, "../x"},
		{"path inside up", filepathIs("a/../../x"), manifest.ErrInvalidManifest, "relative path"},
		{"path absolute", filepathIs("/etc/passwd"), manifest.ErrInvalidManifest, "/etc/passwd"},
		{"path windows", filepathIs(`..\x`), manifest.ErrInvalidManifest, "relative path"},
		{"path drive", filepathIs("c:x"), manifest.ErrInvalidManifest, "relative path"},
		{"path control", filepathIs("a\nb"), manifest.ErrInvalidManifest, "relative path"},
		{"path dot", filepathIs("."), manifest.ErrInvalidManifest, "relative path"},
		{"tensor empty", tensorIs(""), manifest.ErrInvalidManifest, "without a name"},
		{"tensor slash", tensorIs("../w"), manifest.ErrInvalidManifest, "slash"},
		{"tensor long", tensorIs(strings.Repeat("w", 238)), manifest.ErrInvalidManifest, "longer than 237 bytes"},
		{"tensor by kind", layer(map[string]string{manifest.AnnotationKind: "tensor", modelspec.AnnotationFilepath: "w"}),
			manifest.ErrInvalidManifest, "without a name"},
		{"kind", layer(map[string]string{manifest.AnnotationKind: "A B"}), manifest.ErrInvalidManifest, "A B"},
		{"twice", func(m *ocispec.Manifest) {
			tensorIs("w")(m)
			m.Layers = append(m.Layers, m.Layers[0])
		}, manifest.ErrInvalidManifest, "layers 0 and 1 are both"},
		{"tensor and file at one path", func(m *ocispec.Manifest) {
			m.Layers = append(m.Layers, m.Layers[0])
			m.Layers[0].Annotations = map[string]string{blob.AnnotationTensor: "w"}
			m.Layers[1].Annotations = map[string]string{modelspec.AnnotationFilepath: "model-w.safetensors"}
		}, manifest.ErrInvalidManifest, "layers 0 and 1 are both"},
		{"number", func(m *ocispec.Manifest) { m.Annotations = map[string]string{manifest.AnnotationContextLength: "-1"} },
			manifest.ErrInvalidManifest, manifest.AnnotationContextLength},
		{"capability",
			func(m *ocispec.Manifest) { m.Annotations = map[string]string{manifest.AnnotationCapabilities: "a,,b"} },
			manifest.ErrInvalidManifest, "capability"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := encoding.Decode(manifestJSON(t, config, tt.change), config)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %v saying %q", err, tt.want, tt.says)
			}
		})
	}

	for name, b := range map[string]string{"truncated": `{"schemaVersion":2,`, "array": `[]`, "empty": ``,
		"types": `{"schemaVersion":"2"}`} {
		if _, err := encoding.Decode([]byte(b), nil); !errors.Is(err, manifest.ErrInvalidManifest) {
			t.Errorf("%s: error %v, want ErrInvalidManifest", name, err)
		}
	}
	if _, err := encoding.Decode(make([]byte, manifest.MaxManifestSize+1), nil); !errors.Is(err, manifest.ErrTooLarge) {
		t.Errorf("large manifest: %v", err)
	}
	broken := []byte(`{"config":1}`)
	if _, err := encoding.Decode(manifestJSON(t, broken, func(*ocispec.Manifest) {}),
		broken); !errors.Is(err, manifest.ErrInvalidManifest) {
		t.Errorf("broken config: %v", err)
	}
}

// Decoding must not panic on any input. If a decoded image can be encoded, decoding it again yields the same image.
func FuzzDecode(f *testing.F) {
	manifestBytes, config, err := manifest.EncodeModelPack(sampleImage())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(manifestBytes, config)
	f.Add([]byte(`{"schemaVersion":2}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, manifestBytes, config []byte) {
		var m ocispec.Manifest
		if json.Unmarshal(manifestBytes, &m) != nil {
			encoding.Decode(manifestBytes, config)
			return
		}
		// Correct the config's digest, because a fuzzer cannot find a matching one.
		m.Config.Digest, m.Config.Size = digest.FromBytes(config), int64(len(config))
		manifestBytes, err := json.Marshal(m)
		if err != nil {
			return
		}
		img, err := encoding.Decode(manifestBytes, config)
		if err != nil {
			return
		}
		manifestBytes, config, err = manifest.EncodeModelPack(img)
		if err != nil {
			return // another tool's layer without a path
		}
		again, err := encoding.Decode(manifestBytes, config)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(img, again); diff != "" {
			for _, l := range img.Layers {
				if !strings.HasPrefix(l.MediaType, manifest.ModelPackPrefix) {
					return // the encoder chose another media type
				}
			}
			t.Fatalf("(-first +again):\n%s", diff)
		}
	})
}
