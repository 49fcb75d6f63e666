package foreign

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/ollama"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// annotationUnpack says that oras packed a folder (oras.land/oras-go/v2/content/file, AnnotationUnpack).
	annotationUnpack = "io.deis.oras.content.unpack"
	// legacyFilepath is the annotation of ModelPack's first drafts, which was CNAI's then.
	legacyFilepath = "org.cnai.model.filepath"
)

// configTypes tell a format by the media type of the config, or of the artifact.
var configTypes = []struct {
	mediaType *regexp.Regexp
	format    Format
}{
	{regexp.MustCompile(`^application/vnd\.(cncf|cnai)\.model\.(config|manifest)\.`), ModelPack},
	{regexp.MustCompile(`^application/vnd\.kitops\.modelkit\.`), ModelKit},
	{regexp.MustCompile(`^application/vnd\.docker\.ai\.model\.config\.`), ModelRunner},
}

// formatOf tells the format of a manifest.
func formatOf(m manifest.ParsedManifest) Format {
	if ollama.Recognize(m) {
		return Ollama
	}
	for _, mediaType := range []string{m.Config.MediaType, m.ArtifactType} {
		for _, t := range configTypes {
			if t.mediaType.MatchString(mediaType) {
				return t.format
			}
		}
	}
	return Files
}

// layerTypes tell what a layer is by its media type. The first match counts.
var layerTypes = []struct {
	format    Format
	mediaType *regexp.Regexp
	role      Role
	kind      manifest.Kind
}{
	{ModelPack, regexp.MustCompile(`\.model\.weight\.config\.`), Config, ""},
	{ModelPack, regexp.MustCompile(`\.model\.weight\.`), Weights, ""},
	{ModelPack, regexp.MustCompile(`\.model\.doc\.`), Doc, ""},
	{ModelPack, regexp.MustCompile(`\.model\.code\.`), Code, ""},
	{ModelPack, regexp.MustCompile(`\.model\.dataset\.`), Dataset, ""},

	{ModelKit, regexp.MustCompile(`\.modelkit\.(model|modelpart)\.`), Weights, ""},
	{ModelKit, regexp.MustCompile(`\.modelkit\.docs?\.`), Doc, ""},
	{ModelKit, regexp.MustCompile(`\.modelkit\.code\.`), Code, ""},
	{ModelKit, regexp.MustCompile(`\.modelkit\.datasets?\.`), Dataset, ""},

	// First, because the specification has them below the type of a model: gguf.v3.lora, gguf.v3.mmproj
	// (https://github.com/docker/model-spec/blob/main/spec.md). Docker's program writes mmproj alone.
	{ModelRunner, regexp.MustCompile(`\.ai\.(.*\.)?mmproj`), Projector, ""},
	{ModelRunner, regexp.MustCompile(`\.ai\.(.*\.)?lora`), Adapter, ""},
	{ModelRunner, regexp.MustCompile(`\.ai\.(gguf\.v\d+|safetensors)`), Weights, ""},
	{ModelRunner, regexp.MustCompile(`\.ai\.dduf`), Diffusion, ""},
	{ModelRunner, regexp.MustCompile(`\.ai\.chat\.template`), Config, manifest.KindTemplate},
	{ModelRunner, regexp.MustCompile(`\.ai\.license`), Doc, manifest.KindLicense},

	// Artifacts without a config of their own, whose layers have the media types of other programs.
	{Files, regexp.MustCompile(`gguf|safetensors`), Weights, ""},
}

// textNames are the paths of texts that an image does not name.
var textNames = []struct {
	kind manifest.Kind
	name string
}{
	{manifest.KindTemplate, "template"},
	{manifest.KindSystem, "system"},
	{manifest.KindParams, "params.json"},
	{manifest.KindMessages, "messages.json"},
	{manifest.KindLicense, "LICENSE"},
}

// ollamaRole returns what a layer of Ollama is.
func ollamaRole(d manifest.ParsedLayer) (Role, manifest.Kind) {
	if kind := ollama.TextKind(d.MediaType); kind != "" {
		return Config, kind
	}
	switch {
	case d.MediaType == ollama.MediaTensor && strings.Contains(d.Name, "/"):
		return Diffusion, "" // its tensors are in folders, one per component
	case d.MediaType == ollama.MediaTensor:
		return Tensor, ""
	case d.MediaType == ollama.MediaGGUF:
		return Weights, ""
	case d.MediaType == ollama.MediaProjector:
		return Projector, ""
	case d.MediaType == ollama.MediaAdapter:
		return Adapter, ""
	}
	return Config, ""
}

const containerImage = "a container image"

// others say what images that hold no model are, by the media type of the config, of the artifact or of all layers.
var others = []struct {
	mediaType *regexp.Regexp
	what      string
}{
	{regexp.MustCompile(`^application/vnd\.cncf\.helm\.`), "a Helm chart"},
	{regexp.MustCompile(`^application/vnd\.(wasm|module\.wasm)\.`), "a WebAssembly module"},
	{regexp.MustCompile(`^application/vnd\.(dev\.cosign|dev\.sigstore|cncf\.notary)\.`), "a signature"},
	{regexp.MustCompile(`^application/vnd\.in-toto\+json`), "an attestation"},
	{regexp.MustCompile(`^application/vnd\.(cyclonedx|syft)\b|spdx`), "a bill of materials"},
	{regexp.MustCompile(`^application/vnd\.docker\.plugin\.`), "a Docker plugin"},
	{regexp.MustCompile(`^application/vnd\.docker\.compose\.`), "a Compose project"},
	{regexp.MustCompile(`^application/vnd\.cncf\.flux\.`), "a Flux artifact"},
	{regexp.MustCompile(`^application/vnd\.cncf\.openpolicyagent\.`), "a policy of Open Policy Agent"},
	{regexp.MustCompile(`^application/vnd\.homebrew\.`), "a Homebrew package"},
	{regexp.MustCompile(`^application/vnd\.devcontainers`), "a part of a development container"},
}

// containerConfigs are the configs of container images.
var containerConfigs = []string{ocispec.MediaTypeImageConfig, "application/vnd.docker.container.image.v1+json"}

// What says what an image is that is not in an encoding of ingot's, by its media types, and what to do with it: "a Helm
// chart", "an image of KitOps". It is "" for others.
func What(m manifest.ParsedManifest) (what, remedy string) {
	if what = other(m); what != "" {
		return what, takeOut
	}
	if format := formatOf(m); format != Files {
		return "an image of " + string(format) + " with a model's files", convertIt
	}
	return "", ""
}

// other says what an image is that holds no model.
func other(m manifest.ParsedManifest) string {
	if what := cmp.Or(otherType(m.Config.MediaType), otherType(m.ArtifactType)); what != "" {
		return what
	}
	mayBeModel := func(l manifest.ParsedLayer) bool { return otherType(l.MediaType) == "" }
	if len(m.Layers) > 0 && !slices.ContainsFunc(m.Layers, mayBeModel) { // a model may have a bill of materials beside it
		return otherType(m.Layers[0].MediaType)
	}
	titles := slices.ContainsFunc(m.Layers, hasPath)
	for _, c := range containerConfigs {
		if m.Config.MediaType == c && m.ArtifactType == "" && len(m.Layers) > 0 && !titles && !ollama.Recognize(m) {
			return containerImage
		}
	}
	return ""
}

// otherType says what an image is of which a part has a media type; "" for others.
func otherType(mediaType string) string {
	for _, o := range others {
		if o.mediaType.MatchString(mediaType) {
			return o.what
		}
	}
	return ""
}
