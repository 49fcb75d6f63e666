package foreign

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Image is an image as a list of files and archives of files.
type Image struct {
	Format    Format
	Config    ocispec.Descriptor
	Layers    []Layer
	Container bool // its layers are one file system: a file replaces that of an earlier layer
	// What the config says of the model.
	Context  int64    // length of the context; 0: not said
	Licenses []string // names

	base string // another image that has the model, as the config says
	note string // what the manifest says that the image is
	data bool   // it is a container image that runs nothing, so that it may hold a model
}

// Format is who makes images of a format, or its name.
type Format string

// The formats of images. All others are Files: an artifact with a file per layer, as oras makes it.
const (
	Files       Format = ""
	ModelPack   Format = "ModelPack"
	ModelKit    Format = "KitOps"
	ModelRunner Format = "Docker Model Runner"
	Ollama      Format = "Ollama"
)

// Role is what a layer is for.
type Role string

// The roles of layers. A layer without one may be anything.
const (
	Weights   Role = "weights"
	Config    Role = "config"
	Doc       Role = "doc"
	Code      Role = "code"
	Dataset   Role = "dataset"
	Adapter   Role = "adapter"   // of the weights, in a GGUF file
	Projector Role = "projector" // for pictures, in a GGUF file
	Tensor    Role = "tensor"    // one tensor of a model in ingot's own or Ollama's encoding
	Diffusion Role = "diffusion" // an image generation model in one file
)

// Layer is a file, or an archive of files.
type Layer struct {
	ocispec.Descriptor
	// Path is a file's path. That of an archive is a hint at what it holds, a file or a folder, and may be "".
	Path    string
	Archive bool // a tar archive, perhaps compressed
	Role    Role
	Kind    manifest.Kind // of a text for the model, beside its files: a template, a license, ...; "" for others
}

// Parse lists the files of an image of any kind. config is the config blob, which may be nil: some formats name their
// files there. A manifest that is no image, a path that leaves the folder, and two files of one path are a
// [manifest.ErrInvalidManifest].
func Parse(manifestBytes, config []byte) (*Image, error) {
	if _, err := manifest.Blobs(manifestBytes); err != nil {
		return nil, err
	}
	var m manifest.ParsedManifest
	if err := json.Unmarshal(manifestBytes, &m); err != nil {
		return nil, fmt.Errorf("manifest: %v: %w", err, manifest.ErrInvalidManifest)
	}
	if manifest.IsIndex(m.MediaType) {
		return nil, fmt.Errorf("an index lists images, and has no files: %w", manifest.ErrInvalidManifest)
	}
	img := &Image{Format: formatOf(m), Config: m.Config, note: other(m)}
	img.Container = img.note == containerImage
	for i, d := range m.Layers {
		l, err := layerOf(img, m, d)
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w: %w", i, err, manifest.ErrInvalidManifest)
		}
		img.Layers = append(img.Layers, l)
	}
	img.readConfig(config)
	img.nameLayers()
	return img, img.check()
}

// layerOf describes a layer by its media type and its annotations.
func layerOf(img *Image, m manifest.ParsedManifest, d manifest.ParsedLayer) (Layer, error) {
	l := Layer{Descriptor: d.Descriptor}
	given, titled := pathOf(d)
	switch {
	case titled: // oras says what it packed; its media type is the user's, often that of a tar archive by default
		l.Archive = d.Annotations[annotationUnpack] == "true"
	case img.Container:
		l.Archive = true
	default:
		l.Archive = manifest.IsArchive(d.MediaType) || strings.Contains(d.MediaType, ".tar.")
	}
	for _, t := range layerTypes {
		if t.format == img.Format && t.mediaType.MatchString(d.MediaType) {
			l.Role, l.Kind = t.role, t.kind
			break
		}
	}
	if img.Format == Ollama {
		l.Role, l.Kind = ollamaRole(d)
	}
	if d.Annotations[blob.AnnotationTensor] != "" {
		l.Role = Tensor
	}
	if l.Role == Tensor && (given == "" || img.Format == Ollama) { // Ollama's names are those of tensors
		given = manifest.TensorPath(cmp.Or(d.Annotations[blob.AnnotationTensor], d.Name))
	}
	if kind := manifest.Kind(d.Annotations[manifest.AnnotationKind]); kind != "" && kind != manifest.KindTensor {
		l.Kind = kind
	}
	if given == "" || img.Format == ModelRunner && l.Archive { // Docker names the archive, and not what it holds
		return l, nil
	}
	var err error
	l.Path, err = cleanPath(given, l.Archive)
	return l, err
}

// pathOf returns the path that a descriptor gives its file, and whether it is a title, as oras writes it.
func pathOf(d manifest.ParsedLayer) (given string, titled bool) {
	for _, p := range []string{
		d.Name, d.Annotations[modelspec.AnnotationFilepath], d.Annotations[legacyFilepath],
	} {
		if p != "" {
			return p, false
		}
	}
	title := d.Annotations[ocispec.AnnotationTitle]
	return title, title != ""
}

// hasPath reports whether a descriptor gives its file a path.
func hasPath(d manifest.ParsedLayer) bool {
	given, _ := pathOf(d)
	return given != ""
}

// errPath reports a path that is no name of a file in a folder.
var errPath = errors.New("it must be relative, without '..', '\\', ':' and control characters")

// cleanPath validates a path. An archive may be of the whole folder.
func cleanPath(given string, archive bool) (string, error) {
	if archive {
		given = strings.TrimSuffix(given, "/")
	}
	clean := strings.TrimPrefix(given, "./")
	if archive && (clean == "." || clean == "") {
		return "", nil
	}
	if !manifest.ValidPath(clean) {
		return "", fmt.Errorf("path %q: %w", manifest.Clip(given), errPath)
	}
	return clean, nil
}

// nameLayers gives a path to every file without one, which is unique.
func (i *Image) nameLayers() {
	taken, numbers := map[string]bool{}, map[string]int{}
	unnamed := map[string]int{} // weights without a name, by the name that one of them has
	for _, l := range i.Layers {
		taken[strings.ToLower(l.Path)] = true
		if l.Path == "" && !l.Archive && l.Role == Weights {
			unnamed[defaultName(l)]++
		}
	}
	for n := range i.Layers {
		l := &i.Layers[n]
		if l.Path != "" || l.Archive {
			continue
		}
		name := defaultName(*l)
		free := name
		if parts := unnamed[name]; l.Role == Weights && parts > 1 { // a split set, in order
			ext := path.Ext(name)
			numbers[name]++
			free = fmt.Sprintf("%s-%05d-of-%05d%s", strings.TrimSuffix(name, ext), numbers[name], parts, ext)
		}
		for taken[strings.ToLower(free)] {
			numbers[name]++
			free = fmt.Sprintf("%s.%d", name, numbers[name]+1)
		}
		taken[strings.ToLower(free)] = true
		l.Path = free
	}
}

// defaultName is the path of a file that the image does not name.
func defaultName(l Layer) string {
	for _, t := range textNames {
		if l.Kind == t.kind {
			return t.name
		}
	}
	switch {
	case l.Role == Projector:
		return "mmproj.gguf"
	case l.Role == Adapter:
		return "adapter.gguf"
	case l.Role == Diffusion:
		return "model.dduf"
	case l.Role == Weights && strings.Contains(l.MediaType, "safetensors"):
		return "model.safetensors"
	case l.Role == Weights:
		return "model.gguf"
	}
	return "sha256-" + l.Digest.Encoded()[:12]
}

// check rejects two files of one path. Archives are checked when they are unpacked.
func (i *Image) check() error {
	seen := map[string]Layer{}
	for _, l := range i.Layers {
		if l.Archive {
			continue
		}
		if first, twice := seen[l.Path]; twice && first.Digest != l.Digest {
			return fmt.Errorf("two layers are both %q: %w", manifest.Clip(l.Path), manifest.ErrInvalidManifest)
		}
		seen[l.Path] = l
	}
	return nil
}

// Tensors reports whether the image has a layer per tensor, as ingot stores models. Such an image needs no import.
func (i *Image) Tensors() bool {
	return slices.ContainsFunc(i.Layers, func(l Layer) bool { return l.Role == Tensor }) &&
		!slices.ContainsFunc(i.Layers, func(l Layer) bool { return l.Role == Weights && i.Format == Ollama })
}

// Texts lists the layers that are texts for the model: its template, parameters and licenses.
func (i *Image) Texts() (list []Layer) {
	for _, l := range i.Layers {
		if l.Kind != "" && l.Kind != manifest.KindFile && !l.Archive {
			list = append(list, l)
		}
	}
	return list
}

// maxBeside is the size of documents and code that an import reads beside a model: licenses, and texts of tokenizers
// that are packed as such.
const maxBeside = 16 << 20

// ForModel lists the layers that a model is made of. Datasets, projectors, and large documents and code, are left out.
func (i *Image) ForModel() (list []Layer) {
	for _, l := range i.Layers {
		switch {
		case l.Role == Dataset, l.Role == Projector:
		case (l.Role == Doc || l.Role == Code) && l.Size > maxBeside:
		default:
			list = append(list, l)
		}
	}
	return list
}
