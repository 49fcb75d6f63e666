package attest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/registry"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
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
