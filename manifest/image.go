package manifest

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/ingotml/ingot/manifest/blob"
)

// Kind is the kind of a layer. Encoding and decoding preserve kinds other than those below.
type Kind string

// The kinds of layers. All except KindTensor are files, named by their path in the model's folder.
const (
	KindTensor   Kind = "tensor"   // a complete safetensors file holding one logical tensor
	KindFile     Kind = "file"     // a file of the checkpoint: config.json, tokenizer.json, ...
	KindLicense  Kind = "license"  // text
	KindParams   Kind = "params"   // default sampling parameters, JSON
	KindSystem   Kind = "system"   // system prompt, text
	KindTemplate Kind = "template" // chat template, in Jinja or Ollama's Go syntax
	KindMessages Kind = "messages" // JSON list of {role, content} that begins every conversation
)

// Layer is one blob of an image.
type Layer struct {
	Kind      Kind
	Name      string        // tensor's name, or slash-separated path of the file in the model's folder
	MediaType string        // as decoded; if empty or of another encoding, encoders choose it by Kind and Name
	Digest    digest.Digest // SHA-256 of the blob
	Size      int64         // bytes
}

// Capabilities in [Config].
const (
	CapCompletion = "completion" // text in, text out
	CapEmbedding  = "embedding"
	CapVision     = "vision"
	CapAudio      = "audio"
	CapTools      = "tools"
	CapThinking   = "thinking"
)

// Config holds facts about a model for people and registries. The runtime does not use it; it reads the model's own
// files. A zero value means unknown.
type Config struct {
	Name            string   // the model's own name; never the name in the store, which would change the digest
	Family          string   // for example llama3
	Licenses        []string // SPDX expressions
	Architecture    string   // as in config.json, for example LlamaForCausalLM
	ModelType       string   // as in config.json, for example llama
	Format          string   // of the weights: safetensors
	Quantization    string   // empty if not quantized
	DType           string   // of the weights, in safetensors' spelling; comma-separated if several
	Params          int64    // number of parameters
	Capabilities    []string // CapCompletion, ...
	ContextLength   int64    // tokens
	EmbeddingLength int64    // width of the hidden state
}

// Image is a decoded model image, independent of its encoding. It omits other content of the manifest; the store keeps
// the manifest's bytes.
type Image struct {
	Config Config
	Layers []Layer
}

// Size returns the total size of the layers' blobs in bytes, counting each blob once. It excludes the manifest and
// config.
func (img Image) Size() int64 {
	var sum int64
	seen := make(map[digest.Digest]bool, len(img.Layers))
	for _, l := range img.Layers {
		if !seen[l.Digest] {
			seen[l.Digest] = true
			sum += l.Size
		}
	}
	return sum
}

// Find returns the first layer of the given kind and name.
func (img Image) Find(kind Kind, name string) (Layer, bool) {
	for _, l := range img.Layers {
		if l.Kind == kind && l.Name == name {
			return l, true
		}
	}
	return Layer{}, false
}

// TensorPath returns the file name of a tensor's blob in an extracted image: model-NAME.safetensors. All such files are
// in one folder, where the checkpoint's index file expects them.
func TensorPath(tensor string) string { return "model-" + tensor + ".safetensors" }

// Path returns the layer's path in the model's folder, or "" if it has no name.
func (l Layer) Path() string {
	if l.Kind == KindTensor {
		return TensorPath(l.Name)
	}
	return l.Name
}

// maxFileName is the limit of common file systems on a file's base name, in bytes.
const maxFileName = 255

var (
	kindPattern       = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)
	capabilityPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
)

// check validates a layer. Its path must stay inside the model's folder on every operating system.
func (l Layer) check() error {
	if !kindPattern.MatchString(string(l.Kind)) {
		return fmt.Errorf("kind %q is not a lower-case word", Clip(string(l.Kind)))
	}
	if !ValidDigest(l.Digest) {
		return fmt.Errorf("digest %q is not a sha256 digest", Clip(string(l.Digest)))
	}
	if l.Size < 0 {
		return fmt.Errorf("size %d is negative", l.Size)
	}
	if l.Kind == KindTensor {
		if l.Name == "" {
			return fmt.Errorf("tensor without a name")
		}
		if strings.Contains(l.Name, "/") {
			return fmt.Errorf("tensor name %q contains a slash", Clip(l.Name))
		}
		if len(l.Path()) > maxFileName {
			return fmt.Errorf("tensor name %q is longer than %d bytes", Clip(l.Name), maxFileName-len(TensorPath("")))
		}
	}
	if l.Name == "" {
		return nil
	}
	if !ValidPath(l.Path()) {
		return fmt.Errorf("path %q is not a relative path without '.', '..', '\\', ':' and control characters",
			Clip(l.Path()))
	}
	return nil
}

// ValidPath reports whether a layer can have a path.
func ValidPath(path string) bool {
	return fs.ValidPath(path) && path != "." && !strings.ContainsFunc(path, badInPath)
}

func badInPath(r rune) bool { return r == '\\' || r == ':' || unicode.IsControl(r) }

// Check validates an image, whatever its encoding.
func (img Image) Check() error {
	if len(img.Layers) == 0 {
		return fmt.Errorf("it has no layers")
	}
	seen := make(map[string]int, len(img.Layers))
	var total int64
	for i, l := range img.Layers {
		if err := l.check(); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
		if total += l.Size; total < 0 {
			return fmt.Errorf("layer %d: the sizes of the layers overflow", i)
		}
		if l.Name == "" || IsArchive(l.MediaType) {
			continue // an archive's path is a hint: several archives may unpack into one folder
		}
		if first, twice := seen[l.Path()]; twice {
			return fmt.Errorf("layers %d and %d are both %q", first, i, Clip(l.Path()))
		}
		seen[l.Path()] = i
	}
	return img.Config.check()
}

func (c Config) check() error {
	texts := append([]string{
		c.Name, c.Family, c.Architecture, c.ModelType, c.Format, c.Quantization, c.DType,
	}, c.Licenses...)
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return fmt.Errorf("config text %q is not UTF-8", Clip(s))
		}
	}
	for _, s := range c.Capabilities {
		if !capabilityPattern.MatchString(s) {
			return fmt.Errorf("capability %q is not a word", Clip(s))
		}
	}
	if c.Params < 0 || c.ContextLength < 0 || c.EmbeddingLength < 0 {
		return fmt.Errorf("config holds a negative number")
	}
	return nil
}

// IsArchive reports whether a layer must be unpacked: its media type ends in .tar, .tar+gzip or .tar+zstd.
func IsArchive(mediaType string) bool {
	return strings.HasSuffix(mediaType, ".tar") || strings.Contains(mediaType, ".tar+")
}

// Draft reports whether the layer belongs to the image's draft model, which is used for speculative decoding. Names of
// its tensors begin with "draft.", and its files are in the folder draft/.
func (l Layer) Draft() bool {
	if l.Kind == KindTensor {
		return blob.IsDraft(l.Name)
	}
	return strings.HasPrefix(l.Name, blob.DraftFolder)
}

// Blobs lists the blobs of the layers.
func (img Image) Blobs() []ocispec.Descriptor {
	list := make([]ocispec.Descriptor, len(img.Layers))
	for i, l := range img.Layers {
		list[i] = ocispec.Descriptor{MediaType: l.MediaType, Digest: l.Digest, Size: l.Size}
	}
	return list
}
