package manifest

import (
	"testing"

	"github.com/opencontainers/go-digest"
)

// blobTexts maps digests to the text of blobs.
type blobTexts map[digest.Digest]string

func (b blobTexts) read(d digest.Digest) ([]byte, error) {
	text, ok := b[d]
	if !ok {
		return nil, ErrBlobMissing
	}
	return []byte(text), nil
}

// layer stores a text and returns its layer.
func (b blobTexts) layer(kind Kind, name, text string) Layer {
	d := digest.FromString(text)
	b[d] = text
	return Layer{Kind: kind, Name: name, Digest: d, Size: int64(len(text))}
}

func mustEncodeOllama(t *testing.T, img Image, b blobTexts) (manifest, config []byte) {
	t.Helper()
	manifest, config, err := EncodeOllama(img, b.read)
	if err != nil {
		t.Fatal(err)
	}
	return manifest, config
}

// ollamaImage returns an image with all kinds of layers that the encoding distinguishes.
func ollamaImage() (Image, blobTexts) {
	b := blobTexts{}
	return Image{
		Config: Config{
			Name: "Demo", Family: "qwen3", Licenses: []string{"MIT"}, Architecture: "Qwen3ForCausalLM", ModelType: "qwen3",
			Format:       "safetensors",
			Quantization: "int4", DType: "BF16", Params: 1235814400, Capabilities: []string{CapCompletion, CapTools},
			ContextLength: 4096, EmbeddingLength: 64,
		},
		Layers: []Layer{
			b.layer(KindFile, "chat_template.jinja", "{% for m in messages %}{{ m }}{% endfor %}"),
			b.layer(KindFile, "config.json", "{}"),
			b.layer(KindFile, "draft/config.json", `{"architectures":["Qwen3Draft"],"model_type":"qwen3"}`),
			b.layer(KindFile, "ingot.json", `{"parser":"qwen3","renderer":"qwen3-coder"}`),
			b.layer(KindFile, "model.safetensors.index.json", `{"weight_map":{}}`),
			b.layer(KindFile, "tokenizer.model", "pieces"),
			b.layer(KindLicense, "LICENSE", "Do as you like."),
			b.layer(KindParams, "params.json", `{"temperature":1}`),
			b.layer(KindSystem, "system", "Be brief."),
			b.layer(KindMessages, "messages.json", `[]`),
			b.layer(KindTemplate, "template", "{{ .System }} {{ .Prompt }}"),
			b.layer(KindTensor, "model.norm.weight", "norm"),
			b.layer(KindTensor, "draft.model.norm.weight", "draft norm"),
		},
	}, b
}
