package foreigntest

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Files are contents by path.
type Files map[string]string

// Image is a packed image.
type Image struct {
	Manifest []byte
	Config   []byte
	Blobs    [][]byte // the config and the layers
}

// Registry takes images: a registrytest.Peer.
type Registry interface {
	PutBlob(repo string, b []byte) digest.Digest
	PutManifest(repo, tag, mediaType string, b []byte) digest.Digest
}

// Push puts the image into a registry, and returns its digest.
func (i Image) Push(r Registry, repo, tag string) digest.Digest {
	for _, b := range i.Blobs {
		r.PutBlob(repo, b)
	}
	return r.PutManifest(repo, tag, ocispec.MediaTypeImageManifest, i.Manifest)
}

// Layer is a layer to be packed.
type Layer struct {
	MediaType   string
	Content     string
	Annotations map[string]string
	Size        int64 // that the manifest says; 0: the true one
}

// New packs layers. config is the config's content, which is encoded as JSON unless it is a text.
func New(t testing.TB, configType, artifactType string, config any, layers ...Layer) Image {
	t.Helper()
	var i Image
	if text, ok := config.(string); ok {
		i.Config = []byte(text)
	} else {
		i.Config = encode(t, config)
	}
	i.Blobs = append(i.Blobs, i.Config)
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType,
		Config: describe(configType, i.Config), Layers: []ocispec.Descriptor{}}
	m.SchemaVersion = 2
	for _, l := range layers {
		d := describe(l.MediaType, []byte(l.Content))
		d.Annotations = l.Annotations
		if l.Size != 0 {
			d.Size = l.Size
		}
		m.Layers = append(m.Layers, d)
		i.Blobs = append(i.Blobs, []byte(l.Content))
	}
	i.Manifest = encode(t, m)
	return i
}

func describe(mediaType string, b []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (f Files) names() []string { return slices.Sorted(maps.Keys(f)) }

func isWeights(name string) bool {
	return strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".gguf")
}

// roleOf returns the part of ModelPack's media types that says what a file is for.
func roleOf(name string) string {
	switch base := path.Base(name); {
	case isWeights(name):
		return "weight"
	case strings.HasPrefix(base, "README"), strings.HasPrefix(base, "LICENSE"):
		return "doc"
	case strings.HasSuffix(name, ".py"):
		return "code"
	case strings.HasSuffix(name, ".csv"), strings.HasSuffix(name, ".parquet"):
		return "dataset"
	}
	return "weight.config"
}

// The wrappings of layers, as the ends of their media types.
const (
	Raw  = "raw"
	Tar  = "tar"
	Gzip = "tar+gzip"
	Zstd = "tar+zstd"
)

// ModelPack packs a layer per file as modctl does.
func ModelPack(t testing.TB, files Files, wrapping string) Image {
	t.Helper()
	return modelPack(t, files, wrapping, "application/vnd.cncf.model", "org.cncf.model.filepath")
}

// LegacyModelPack packs files as drafts of the specification had it, when it was CNAI's.
func LegacyModelPack(t testing.TB, files Files, wrapping string) Image {
	t.Helper()
	return modelPack(t, files, wrapping, "application/vnd.cnai.model", "org.cnai.model.filepath")
}

func modelPack(t testing.TB, files Files, wrapping, prefix, annotation string) Image {
	t.Helper()
	var layers []Layer
	for _, name := range files.names() {
		content := files[name]
		if wrapping != Raw {
			content = Wrap(t, wrapping, Member{Name: name, Content: content})
		}
		layers = append(layers, Layer{MediaType: prefix + "." + roleOf(name) + ".v1." + wrapping, Content: content,
			Annotations: map[string]string{annotation: name}})
	}
	return New(t, prefix+".config.v1+json", prefix+".manifest.v1+json", map[string]any{
		"descriptor": map[string]any{"name": "tiny"},
		"modelfs":    map[string]any{"type": "layers", "diffIds": []string{}},
		"config":     map[string]any{"format": "safetensors"},
	}, layers...)
}

// KitPart is a part of a ModelKit: "model", "modelpart", "code", "dataset" or "docs".
type KitPart struct {
	Type  string
	Path  string // in the Kitfile
	Files Files
}

// ModelKit packs an archive per part as KitOps does. compression is "", "+gzip" or "+gzip-fastest".
func ModelKit(t testing.TB, compression string, parts ...KitPart) Image {
	t.Helper()
	kitfile := map[string]any{"manifestVersion": "1.0.0", "package": map[string]any{"name": "tiny"}}
	model := map[string]any{}
	var layers []Layer
	for _, p := range parts {
		wrapping := Tar
		if compression != "" {
			wrapping = Gzip
		}
		content := Wrap(t, wrapping, folders(p.Files)...)
		entry := map[string]any{"path": p.Path, "digest": digest.FromString(content)}
		switch p.Type {
		case "model":
			maps.Copy(model, entry)
		case "modelpart":
			list, _ := model["parts"].([]any)
			model["parts"] = append(list, entry)
		default:
			key := map[string]string{"dataset": "datasets", "code": "code", "docs": "docs"}[p.Type]
			list, _ := kitfile[key].([]any)
			kitfile[key] = append(list, entry)
		}
		layers = append(layers,
			Layer{MediaType: "application/vnd.kitops.modelkit." + p.Type + ".v1.tar" + compression, Content: content})
	}
	kitfile["model"] = model
	return New(t, "application/vnd.kitops.modelkit.config.v1+json", "", kitfile, layers...)
}

// folders returns the members of an archive of files, with those of the folders that they are in.
func folders(files Files) (list []Member) {
	seen := map[string]bool{}
	for _, name := range files.names() {
		for dir := path.Dir(name); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			list = append(list, Member{Name: dir + "/", Type: '5'})
		}
		list = append(list, Member{Name: name, Content: files[name]})
	}
	return list
}

// runnerTypes are the media types of Docker Model Runner by the ends of names.
var runnerTypes = []struct{ suffix, mediaType string }{
	{"v3.mmproj.gguf", "gguf.v3.mmproj"}, {"mmproj.gguf", "mmproj"}, {"lora.gguf", "gguf.v3.lora"},
	{".gguf", "gguf.v3"}, {".safetensors", "safetensors"}, {".jinja", "chat.template.jinja"},
	{"LICENSE", "license"}, {".dduf", "dduf"}, {"", "model.file"},
}

// ModelRunner packs a layer per file as Docker Model Runner does. Layers are named unless the config is version 0.1 of
// an early release.
func ModelRunner(t testing.TB, files Files, named bool, config map[string]any) Image {
	t.Helper()
	version := "v0.1"
	if named {
		version = "v0.2"
	}
	var layers []Layer
	for _, name := range files.names() {
		for _, r := range runnerTypes {
			if !strings.HasSuffix(name, r.suffix) {
				continue
			}
			l := Layer{MediaType: "application/vnd.docker.ai." + r.mediaType, Content: files[name]}
			if named {
				l.Annotations = map[string]string{"org.cncf.model.filepath": name}
			}
			layers = append(layers, l)
			break
		}
	}
	return New(t, "application/vnd.docker.ai.model.config."+version+"+json", "", map[string]any{
		"config": config, "descriptor": map[string]any{}, "rootfs": map[string]any{"type": "rootfs"},
	}, layers...)
}

// Oras packs a layer per file as oras does, with its default media type, which is that of a tar archive.
func Oras(t testing.TB, files Files) Image {
	t.Helper()
	var layers []Layer
	for _, name := range files.names() {
		layers = append(layers, Layer{MediaType: ocispec.MediaTypeImageLayer, Content: files[name],
			Annotations: map[string]string{ocispec.AnnotationTitle: name}})
	}
	return New(t, ocispec.MediaTypeEmptyJSON, "application/vnd.unknown.artifact.v1", "{}", layers...)
}

// OrasFolder packs a folder as oras does.
func OrasFolder(t testing.TB, folder string, files Files) Image {
	t.Helper()
	var members []Member
	for _, name := range files.names() {
		members = append(members, Member{Name: folder + "/" + name, Content: files[name]})
	}
	return New(t, ocispec.MediaTypeEmptyJSON, "application/vnd.acme.model", "{}", Layer{
		MediaType: ocispec.MediaTypeImageLayerGzip, Content: Wrap(t, Gzip, members...),
		Annotations: map[string]string{ocispec.AnnotationTitle: folder, "io.deis.oras.content.unpack": "true"},
	})
}

// Container packs a layer per archive, as builders of container images do. command is what it runs; none for an image
// of data.
func Container(t testing.TB, command []string, layers ...[]Member) Image {
	t.Helper()
	var list []Layer
	for _, members := range layers {
		list = append(list, Layer{MediaType: ocispec.MediaTypeImageLayerGzip, Content: Wrap(t, Gzip, members...)})
	}
	return New(t, ocispec.MediaTypeImageConfig, "", map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{"Cmd": command},
	}, list...)
}
