package storetest

import (
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/opencontainers/go-digest"
)

// BlobTexts maps digests to the text of blobs.
type BlobTexts map[digest.Digest]string

// Read returns the content of a blob.
func (b BlobTexts) Read(d digest.Digest) ([]byte, error) {
	text, ok := b[d]
	if !ok {
		return nil, manifest.ErrBlobMissing
	}
	return []byte(text), nil
}

// Layer stores a text and returns its layer.
func (b BlobTexts) Layer(kind manifest.Kind, name, text string) manifest.Layer {
	d := digest.FromString(text)
	b[d] = text
	return manifest.Layer{Kind: kind, Name: name, Digest: d, Size: int64(len(text))}
}

// MustEncodeOllama encodes an image in Ollama's encoding.
func MustEncodeOllama(t *testing.T, img manifest.Image, b BlobTexts) (manifestBytes, config []byte) {
	t.Helper()
	manifestBytes, config, err := ollama.Encode(img, b.Read)
	if err != nil {
		t.Fatal(err)
	}
	return manifestBytes, config
}

// OllamaImage returns an image with all kinds of layers that the encoding distinguishes.
func OllamaImage() (manifest.Image, BlobTexts) {
	b := BlobTexts{}
	return manifest.Image{
		Config: manifest.Config{
			Name: "Demo", Family: "qwen3", Licenses: []string{"MIT"}, Architecture: "Qwen3ForCausalLM", ModelType: "qwen3",
			Format:       "safetensors",
			Quantization: "int4", DType: "BF16", Params: 1235814400, Capabilities: []string{manifest.CapCompletion,
				manifest.CapTools},
			ContextLength: 4096, EmbeddingLength: 64,
		},
		Layers: []manifest.Layer{
			b.Layer(manifest.KindFile, "chat_template.jinja", "{% for m in messages %}{{ m }}{% endfor %}"),
			b.Layer(manifest.KindFile, "config.json", "{}"),
			b.Layer(manifest.KindFile, "draft/config.json", `{"architectures":["Qwen3Draft"],"model_type":"qwen3"}`),
			b.Layer(manifest.KindFile, "ingot.json", `{"parser":"qwen3","renderer":"qwen3-coder"}`),
			b.Layer(manifest.KindFile, "model.safetensors.index.json", `{"weight_map":{}}`),
			b.Layer(manifest.KindFile, "tokenizer.model", "pieces"),
			b.Layer(manifest.KindLicense, "LICENSE", "Do as you like."),
			b.Layer(manifest.KindParams, "params.json", `{"temperature":1}`),
			b.Layer(manifest.KindSystem, "system", "Be brief."),
			b.Layer(manifest.KindMessages, "messages.json", `[]`),
			b.Layer(manifest.KindTemplate, "template", "{{ .System }} {{ .Prompt }}"),
			b.Layer(manifest.KindTensor, "model.norm.weight", "norm"),
			b.Layer(manifest.KindTensor, "draft.model.norm.weight", "draft norm"),
		},
	}, b
}
