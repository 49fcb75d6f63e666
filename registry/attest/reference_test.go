package attest

import (
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/signed"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestServedUnderAnotherTag: a registry serves a manifest that is signed for another tag or repository. The reference
// in the bundle decides, not where the registry serves it.
func TestServedUnderAnotherTag(t *testing.T) {
	p := rt.New(t)
	s, c, key := rt.NewStore(t), newClient(t), newKey(t, "ed25519")
	name, d := rt.PutModel(t, s, "model", 10)
	old, current, copied := p.Name("team/model:v1"), p.Name("team/model:v2"), p.Name("team/copy:v1")
	push := func(to manifest.Name, reference string) {
		t.Helper()
		sig, err := Sign(key, subjectOf(t, s, name), reference)
		if err != nil {
			t.Fatal(err)
		}
		if err := sig.Push(t.Context(), c, to); err != nil {
			t.Fatal(err)
		}
	}
	check := func(requested manifest.Name, wantReference string, want error) {
		t.Helper()
		sig, err := RemoteSignature(t.Context(), c, d, SignatureCheck{Key: key.Public(), Name: requested})
		if !errors.Is(err, want) || err == nil && sig.Reference != wantReference {
			t.Errorf("%s: %+v, %v; want %v", requested, sig, err, want)
		}
		if err != nil && (!errors.Is(err, ErrNotSigned) || !strings.Contains(err.Error(),
			"has no signature by this key for this name")) {
			t.Errorf("%s: %v", requested, err)
		}
	}
	push(old, signed.Reference(old))
	push(copied, signed.Reference(old)) // copied as it is
	check(old, signed.Reference(old), nil)
	check(current, "", signed.ErrOtherReference)
	check(copied, "", signed.ErrOtherReference)

	// A signature without a reference is valid for both, and does not hide one with the reference.
	push(old, "")
	check(old, signed.Reference(old), nil)
	check(current, "", nil)
	push(old, signed.Reference(current))
	check(current, signed.Reference(current), nil)
}

// TestSignatureLimit: a model has more signatures than are checked.
func TestSignatureLimit(t *testing.T) {
	const limit = limits.Signatures
	p := rt.New(t)
	list := make([]ocispec.Descriptor, limit+3)
	for i := range list {
		list[i] = ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: sigstore.BundleMediaType,
			Digest: digest.FromString(strings.Repeat("x", i)), Size: 10}
	}
	p.On("GET", rt.ReferrersRoute, listing(list...))
	_, err := RemoteSignature(t.Context(), newClient(t), digest.FromString("model"),
		SignatureCheck{Key: newKey(t, "ed25519").Public(), Name: p.Name("m")})
	var failed *SignatureError
	if !errors.As(err, &failed) || len(failed.Tried) != limit+1 ||
		failed.Tried[limit].Error() != "3 more were not checked" {
		t.Errorf("got %v, want %d errors", err, limit+1)
	}
}
