package choose

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// shelf has manifests by digest, as a registry has.
type shelf map[digest.Digest]*remote.Manifest

func (s shelf) get(d digest.Digest) (*remote.Manifest, error) {
	if s[d] == nil {
		return nil, manifest.ErrUnknownManifest
	}
	return s[d], nil
}

// put adds a manifest and returns its descriptor.
func (s shelf) put(t *testing.T, mediaType string, content any) ocispec.Descriptor {
	t.Helper()
	b, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	s[d.Digest] = &remote.Manifest{MediaType: mediaType, Digest: d.Digest, Bytes: b}
	return d
}

// image adds a manifest whose config has a media type.
func (s shelf) image(t *testing.T, config, version, processor string) ocispec.Descriptor {
	t.Helper()
	m := ocispec.Manifest{Annotations: map[string]string{"of": version}}
	m.SchemaVersion, m.MediaType = 2, ocispec.MediaTypeImageManifest
	m.Config = ocispec.Descriptor{MediaType: config, Digest: digest.FromString("{}"), Size: 2}
	m.Layers = []ocispec.Descriptor{{
		MediaType: "application/vnd.cncf.model.weight.v1.raw", Digest: digest.FromString("w"), Size: 1,
		Annotations: map[string]string{"org.cncf.model.filepath": "model.safetensors"},
	}}
	d := s.put(t, m.MediaType, m)
	d.Annotations = map[string]string{ocispec.AnnotationVersion: version}
	if processor != "" {
		d.Platform = &ocispec.Platform{OS: "linux", Architecture: processor}
	}
	return d
}

const (
	model = "application/vnd.cncf.model.config.v1+json"
	chart = "application/vnd.cncf.helm.config.v1+json"
)

func TestModel(t *testing.T) {
	s := shelf{}
	one, two := s.image(t, model, "1", ""), s.image(t, model, "2", "")
	helm := s.image(t, chart, "3", "")
	here, there := s.image(t, model, "4", runtime.GOARCH), s.image(t, model, "5", "riscv128")
	attestation := s.image(t, chart, "6", "")
	attestation.Annotations["vnd.docker.reference.type"] = "attestation-manifest"
	for name, c := range map[string]struct {
		list []ocispec.Descriptor
		want digest.Digest
		err  string
	}{
		"one model":        {list: []ocispec.Descriptor{one}, want: one.Digest},
		"listed twice":     {list: []ocispec.Descriptor{one, one}, want: one.Digest},
		"beside a chart":   {list: []ocispec.Descriptor{helm, one}, want: one.Digest},
		"a chart alone":    {list: []ocispec.Descriptor{helm, attestation}, want: helm.Digest},
		"for this machine": {list: []ocispec.Descriptor{there, here}, want: here.Digest},
		"two models": {
			list: []ocispec.Descriptor{one, two}, err: "several images; name one: " + one.Digest.String() + " (1), ",
		},
		"none":     {list: []ocispec.Descriptor{}, err: "lists no images"},
		"too many": {list: make([]ocispec.Descriptor, maxImages+1), err: "lists 17 images"},
	} {
		d := s.put(t, ocispec.MediaTypeImageIndex, ocispec.Index{Manifests: c.list})
		m, err := Model(s[d.Digest], s.get, digest.Digest.String)
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %s", name, err, c.err)
		case c.err == "" && (err != nil || m.Digest != c.want):
			t.Errorf("%s: %v, %v, want %s", name, m, err, c.want)
		}
	}
}

// An image that is not an index is the one that is meant.
func TestModelOfAnImage(t *testing.T) {
	s := shelf{}
	d := s.image(t, chart, "1", "")
	if m, err := Model(s[d.Digest], s.get, digest.Digest.String); err != nil || m.Digest != d.Digest {
		t.Errorf("%v, %v", m, err)
	}
}

// A manifest that differs from what its index says of it is an error.
func TestIndexDiffers(t *testing.T) {
	s := shelf{}
	long, other := s.image(t, model, "1", ""), s.image(t, model, "1", "")
	long.Size++
	other.MediaType = manifest.DockerManifest
	for want, d := range map[error]ocispec.Descriptor{remote.ErrDigest: long, manifest.ErrInvalidManifest: other} {
		index := s.put(t, ocispec.MediaTypeImageIndex, ocispec.Index{Manifests: []ocispec.Descriptor{d}})
		if _, err := Model(s[index.Digest], s.get, digest.Digest.String); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
