package attest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func newClient(t testing.TB) *registry.Client {
	t.Helper()
	c, err := registry.New(registry.Options{Connection: remote.Options{Keychain: authn.NewMultiKeychain(), Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// listing responds with a list of referrers.
func listing(descs ...ocispec.Descriptor) rt.Action {
	return func(x *rt.Exchange) {
		x.W.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		idx := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: descs}
		idx.SchemaVersion = 2
		_ = json.NewEncoder(x.W).Encode(idx)
	}
}

// attachText stores an artifact with a text layer that refers to a manifest.
func attachText(t testing.TB, s *store.Store, subject digest.Digest, text string) {
	t.Helper()
	release, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	d, n, err := s.PutBytes(t.Context(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Attach(t.Context(), manifest.Artifact{
		Type:    "text/plain",
		Subject: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: subject, Size: 2},
		Layers:  []ocispec.Descriptor{{MediaType: "text/plain", Digest: d, Size: n}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
