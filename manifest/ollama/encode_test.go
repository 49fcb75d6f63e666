package ollama_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/encoding"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/store/storetest"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The expected bytes, which Ollama's client reads, are written by hand.
func TestEncodeOllamaIs(t *testing.T) {
	img, b := storetest.OllamaImage()
	manifestBytes, config := storetest.MustEncodeOllama(t, img, b)
	wantConfig := `{"model_format":"safetensors","model_family":"qwen3","model_families":["qwen3"],"model_type":"1.2B",` +
		`"file_type":"int4",` +
		`"renderer":"qwen3-coder","parser":"qwen3","requires":"0.19.0","capabilities":["completion","tools"],` +
		`"context_length":4096,` +
		`"embedding_length":64,"draft":{"model_format":"safetensors","architecture":"Qwen3Draft","tensor_prefix":"draft.",` +
		`"config":"draft/config.json"},` +
		`"ingot":{"name":"Demo","family":"qwen3","licenses":["MIT"],"architecture":"Qwen3ForCausalLM",` +
		`"model_type":"qwen3","format":"safetensors",` +
		`"quantization":"int4","dtype":"BF16","parameters":1235814400}}`
	if string(config) != wantConfig {
		t.Errorf("config\n%s\nwant\n%s", config, wantConfig)
	}
	var want strings.Builder
	fmt.Fprintf(&want,
		`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":{"mediaType":`+
			`"application/vnd.docker.container.image.v1+json","digest":"%s","size":%d},"layers":[`,
		digest.FromString(wantConfig),
		len(wantConfig))
	layers := []struct{ mediaType, name, annotations string }{
		{"application/vnd.ingotml.image.file", "chat_template.jinja", `"org.cncf.model.filepath":"chat_template.jinja"`},
		{"application/vnd.ollama.image.json", "config.json", `"org.cncf.model.filepath":"config.json"`},
		{"application/vnd.ollama.image.json", "draft/config.json", `"org.cncf.model.filepath":"draft/config.json"`},
		{"application/vnd.ollama.image.json", "ingot.json", `"org.cncf.model.filepath":"ingot.json"`},
		{"application/vnd.ingotml.image.file", "model.safetensors.index.json",
			`"org.cncf.model.filepath":"model.safetensors.index.json"`},
		{"application/vnd.ingotml.image.file", "tokenizer.model", `"org.cncf.model.filepath":"tokenizer.model"`},
		{"application/vnd.ollama.image.license", "", `"org.cncf.model.filepath":"LICENSE"`},
		{"application/vnd.ollama.image.params", "", `"org.cncf.model.filepath":"params.json"`},
		{"application/vnd.ollama.image.system", "", `"org.cncf.model.filepath":"system"`},
		{"application/vnd.ollama.image.messages", "", `"org.cncf.model.filepath":"messages.json"`},
		{"application/vnd.ollama.image.template", "", `"org.cncf.model.filepath":"template"`},
		{"application/vnd.ollama.image.tensor", "model.norm.weight", `"org.ingotml.tensor":"model.norm.weight"`},
		{"application/vnd.ollama.image.tensor", "draft.model.norm.weight", `"org.ingotml.tensor":"draft.model.norm.weight"`},
	}
	for i, l := range layers {
		if i > 0 {
			want.WriteByte(',')
		}
		fmt.Fprintf(&want, `{"mediaType":"%s","digest":"%s","size":%d,`, l.mediaType, img.Layers[i].Digest,
			img.Layers[i].Size)
		if l.name != "" {
			fmt.Fprintf(&want, `"name":"%s",`, l.name)
		}
		fmt.Fprintf(&want, `"annotations":{%s}}`, l.annotations)
	}
	want.WriteString("]}")
	if string(manifestBytes) != want.String() {
		t.Errorf("manifest\n%s\nwant\n%s", manifestBytes, want.String())
	}
}

// A Jinja template must never have Ollama's media type for Go templates.
func TestOllamaTemplates(t *testing.T) {
	for text, theirs := range map[string]bool{
		"{{ .Prompt }}":                      true,
		"{{- if .System }}{{end}}":           true,
		"{% if x %}{% endif %}{{ .Prompt }}": false,
		"{{ messages[0].content }}":          false,
		"{{ bos_token }}":                    false,
		"Hello":                              false,
		"":                                   false,
	} {
		b := storetest.BlobTexts{}
		img := manifest.Image{Layers: []manifest.Layer{b.Layer(manifest.KindTensor, "w", "w"),
			b.Layer(manifest.KindTemplate, "template", text)}}
		manifestBytes, config := storetest.MustEncodeOllama(t, img, b)
		if got := strings.Contains(string(manifestBytes), "vnd.ollama.image.template"); got != theirs {
			t.Errorf("template %q has Ollama's media type: %v, want %v", text, got, theirs)
		}
		got, err := encoding.Decode(manifestBytes, config)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := got.Find(manifest.KindTemplate, "template"); !ok {
			t.Errorf("template %q is lost: %+v", text, got.Layers)
		}
	}
}

// generated returns an image with random layers.
func generated(r *rand.Rand, b storetest.BlobTexts) manifest.Image {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	img := manifest.Image{Config: manifest.Config{
		Name: pick("", "a <b>"), Family: pick("", "llama3"), Architecture: pick("", "LlamaForCausalLM"),
		ModelType: pick("", "llama"),
		Format:    pick("", "safetensors"), Quantization: pick("", "int4", "nvfp4"), DType: pick("", "BF16", "F32,BF16"),
		Params: r.Int64N(1 << r.IntN(60)), ContextLength: r.Int64N(3), EmbeddingLength: r.Int64N(3),
	}}
	if r.IntN(2) == 0 {
		img.Config.Licenses = []string{"MIT", "Apache-2.0"}[:1+r.IntN(2)]
		img.Config.Capabilities = []string{manifest.CapThinking, manifest.CapVision, "other"}[:1+r.IntN(3)]
	}
	img.Layers = append(img.Layers, b.Layer(manifest.KindTensor, "w", "w"))
	for i := range r.IntN(12) {
		kind := manifest.Kind(pick("tensor", "file", "file", "file", "license", "params", "system", "template", "messages",
			"prompt",
			"other-kind"))
		name := fmt.Sprintf("%s%d%s", pick("", "a/", "draft/", "LICENSE", "template", "x"), i,
			pick("", ".json", ".jinja", ".txt", ".model", ".2"))
		if kind == manifest.KindTensor {
			name = strings.ReplaceAll(name, "/", ".")
		}
		l := b.Layer(kind, name, pick("{}", "{{ .Prompt }}", "{% if x %}", "same")+pick("", "1", "2"))
		l.MediaType = pick(manifest.ModelPackMediaType(l), manifest.ModelPackMediaType(l), modelspec.MediaTypeModelDocRaw,
			modelspec.MediaTypeModelWeightConfigRaw)
		if r.IntN(8) == 0 {
			l.MediaType = modelspec.MediaTypeModelCode // an archive
		}
		img.Layers = append(img.Layers, l)
	}
	return img
}

// Converting from modelpack to ollama and back is lossless, and so is the reverse. The digests do not change.
func TestEncodingsRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		b := storetest.BlobTexts{}
		img := generated(rand.New(rand.NewPCG(seed, 8)), b)
		packed, packedConfig := storetest.MustEncode(t, img)
		first, err := encoding.Decode(packed, packedConfig)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		theirs, ollamaConfig := storetest.MustEncodeOllama(t, first, b)
		second, err := encoding.Decode(theirs, ollamaConfig)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, theirs)
		}
		again, againConfig := storetest.MustEncode(t, second)
		if string(again) != string(packed) || string(againConfig) != string(packedConfig) {
			t.Fatalf("seed %d: modelpack, ollama, modelpack (-want +got):\n%s", seed, cmp.Diff(string(packed), string(again)))
		}
		back, backConfig := storetest.MustEncodeOllama(t, mustDecode(t, again, againConfig), b)
		if string(back) != string(theirs) || string(backConfig) != string(ollamaConfig) {
			t.Fatalf("seed %d: ollama, modelpack, ollama (-want +got):\n%s", seed, cmp.Diff(string(theirs), string(back)))
		}
	}
}

func mustDecode(t *testing.T, manifestBytes, config []byte) manifest.Image {
	t.Helper()
	img, err := encoding.Decode(manifestBytes, config)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// OCI libraries drop the unknown field "name" when they rewrite a manifest. The annotations preserve the names.
func TestOllamaNamesSurviveOtherLibraries(t *testing.T) {
	img, b := storetest.OllamaImage()
	manifestBytes, config := storetest.MustEncodeOllama(t, img, b)
	var m ocispec.Manifest
	if err := json.Unmarshal(manifestBytes, &m); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(again), `"name":"config.json"`) {
		t.Fatal("the library preserves the field now, so this test is obsolete")
	}
	if diff := cmp.Diff(mustDecode(t, manifestBytes, config), mustDecode(t, again, config)); diff != "" {
		t.Errorf("(-as encoded +written again):\n%s", diff)
	}
}

// ownManifest returns a manifest as written by Ollama's create, with layers {media type, name}.
func ownManifest(config string, layers ...[2]string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b,
		`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":{"mediaType":`+
			`"application/vnd.docker.container.image.v1+json","digest":"%s","size":%d},"layers":[`, digest.FromString(config),
		len(config))
	for i, l := range layers {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"mediaType":"application/vnd.ollama.image.%s","digest":"%s","size":1`, l[0],
			digest.FromString(fmt.Sprint(i)))
		if l[1] != "" {
			fmt.Fprintf(&b, `,"name":%q`, l[1])
		}
		b.WriteByte('}')
	}
	b.WriteString("]}\n")
	return []byte(b.String())
}

func TestDecodeOllamasOwn(t *testing.T) {
	config := `{"model_format":"safetensors","model_family":"","model_families":null,"model_type":"",` +
		`"file_type":"int4","renderer":"qwen3.5",` +
		`"parser":"qwen3.5","requires":"0.19.0","capabilities":["completion","vision","thinking"],"context_length":262144}` +
		"\n"
	manifestBytes := ownManifest(config,
		[2]string{"tensor", "model.embed_tokens.weight"}, [2]string{"tensor", "model.layers.0.mlp.experts"},
		[2]string{"json", "config.json"},
		[2]string{"json", "tokenizer.json"}, [2]string{"template", ""}, [2]string{"license", ""}, [2]string{"license", ""},
		[2]string{"params", ""},
		[2]string{"json", "license.2"})
	got := mustDecode(t, manifestBytes, []byte(config))
	layer := func(i int, kind manifest.Kind, mediaType, name string) manifest.Layer {
		return manifest.Layer{Kind: kind, Name: name, MediaType: "application/vnd.ollama.image." + mediaType,
			Digest: digest.FromString(fmt.Sprint(i)), Size: 1}
	}
	want := manifest.Image{
		Config: manifest.Config{Format: "safetensors", Quantization: "int4",
			Capabilities: []string{"completion", "vision", "thinking"}, ContextLength: 262144},
		Layers: []manifest.Layer{
			layer(0, manifest.KindTensor, "tensor", "model.embed_tokens.weight"),
			layer(1, manifest.KindTensor, "tensor", "model.layers.0.mlp.experts"),
			layer(2, manifest.KindFile, "json", "config.json"),
			layer(3, manifest.KindFile, "json", "tokenizer.json"),
			layer(4, manifest.KindTemplate, "template", "template"),
			layer(5, manifest.KindLicense, "license", "LICENSE"),
			layer(6, manifest.KindLicense, "license", "LICENSE.3"),
			layer(7, manifest.KindParams, "params", "params.json"),
			layer(8, manifest.KindFile, "json", "license.2"),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, _, err := manifest.EncodeModelPack(got); err != nil {
		t.Errorf("in the other encoding: %v", err)
	}
}

func TestUnsupportedOllamaModels(t *testing.T) {
	config := `{}`
	for says, layers := range map[string][][2]string{
		"a GGUF model":              {{"model", ""}, {"template", ""}},
		"an image generation model": {{"tensor", "transformer/w"}},
		"without tensors":           {{"license", ""}},
		"GGUF model of Ollama, which ingot does not run": {{"tensor", "w"}, {"model", ""}},
	} {
		_, err := encoding.Decode(ownManifest(config, layers...), []byte(config))
		if !errors.Is(err, manifest.ErrUnknownManifest) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: error %v, want one saying %q", layers, err, says)
		}
	}
}

func TestDecodeOllamaErrors(t *testing.T) {
	good := `{"model_format":"safetensors"}`
	for _, tt := range []struct {
		name, config, says string
		layers             [][2]string
	}{
		{"path up", good, "../x", [][2]string{{"tensor", "w"}, {"json", "../x"}}},
		{"path absolute", good, "/etc/passwd", [][2]string{{"tensor", "w"}, {"json", "/etc/passwd"}}},
		{"tensor without a name", good, "without a name", [][2]string{{"tensor", ""}}},
		{"twice", good, "both", [][2]string{{"tensor", "w"}, {"tensor", "w"}}},
		{"control", good, "relative path", [][2]string{{"tensor", "w"}, {"json", "a\nb"}}},
		{"negative", `{"context_length":-1}`, "negative", [][2]string{{"tensor", "w"}}},
		{"capability", `{"capabilities":["a b"]}`, "a b", [][2]string{{"tensor", "w"}}},
		{"config", `[]`, "config", [][2]string{{"tensor", "w"}}},
	} {
		_, err := encoding.Decode(ownManifest(tt.config, tt.layers...), []byte(tt.config))
		if !errors.Is(err, manifest.ErrInvalidManifest) || !strings.Contains(err.Error(), tt.says) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want ErrInvalidManifest saying %q", tt.name, err, tt.says)
		}
	}
}

func TestEncodeOllamaErrors(t *testing.T) {
	b := storetest.BlobTexts{}
	w := b.Layer(manifest.KindTensor, "w", "w")
	for _, tt := range []struct {
		name   string
		layers []manifest.Layer
		want   error
	}{
		{"no tensor", []manifest.Layer{b.Layer(manifest.KindFile, "config.json", "{}")}, manifest.ErrInvalidImage},
		{"no layers", nil, manifest.ErrInvalidImage},
		{"template missing", []manifest.Layer{w,
			{Kind: manifest.KindTemplate, Name: "t", Digest: digest.FromString("nowhere"), Size: 7}},
			manifest.ErrBlobMissing},
		{"template large", []manifest.Layer{w, {Kind: manifest.KindTemplate, Name: "t", Digest: w.Digest, Size: 1 << 30}},
			manifest.ErrTooLarge},
		{"record", []manifest.Layer{w, b.Layer(manifest.KindFile, "ingot.json", "no JSON")}, manifest.ErrInvalidImage},
	} {
		if _, _, err := ollama.Encode(manifest.Image{Layers: tt.layers}, b.Read); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

// Decoding must not panic on any input. A decoded image survives conversion to the other encoding and back.
func FuzzDecodeOllama(f *testing.F) {
	img, b := storetest.OllamaImage()
	manifestBytes, config, err := ollama.Encode(img, b.Read)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(manifestBytes, config)
	own := `{"model_format":"safetensors","model_type":"1.2B"}`
	f.Add(ownManifest(own, [2]string{"tensor", "w"}, [2]string{"json", "config.json"}, [2]string{"prompt", ""},
		[2]string{"embed", ""}), []byte(own))
	f.Fuzz(func(t *testing.T, manifestBytes, config []byte) {
		var m ollama.ManifestDoc
		if json.Unmarshal(manifestBytes, &m) != nil {
			encoding.Decode(manifestBytes, config)
			return
		}
		// Correct the config's digest, because a fuzzer cannot find a matching one.
		m.Config.Digest, m.Config.Size = digest.FromBytes(config), int64(len(config))
		manifestBytes, err := manifest.Marshal(m)
		if err != nil {
			return
		}
		first, err := encoding.Decode(manifestBytes, config)
		if err != nil {
			return
		}
		packed, packedConfig, err := manifest.EncodeModelPack(first)
		if err != nil {
			return // a layer without a path
		}
		second := mustDecode(t, packed, packedConfig)
		none := func(digest.Digest) ([]byte, error) { return []byte("{}"), nil }
		again, againConfig, err := ollama.Encode(second, none)
		if err != nil {
			return // no tensors, or too large
		}
		last, lastConfig, err := manifest.EncodeModelPack(mustDecode(t, again, againConfig))
		if err != nil {
			t.Fatal(err)
		}
		if string(last) != string(packed) || string(lastConfig) != string(packedConfig) {
			t.Fatalf("(-first +last):\n%s", cmp.Diff(string(packed), string(last)))
		}
	})
}
