package attest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// newKey returns a new key of a kind: ecdsa or ed25519.
func newKey(t testing.TB, kind string) *sigstore.PrivateKey {
	t.Helper()
	var key any
	var err error
	if kind == "ecdsa" {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	k, err := sigstore.ReadPrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// subjectOf returns the descriptor of a stored model.
func subjectOf(t testing.TB, s *store.Store, name manifest.Name) ocispec.Descriptor {
	t.Helper()
	raw, err := s.ResolveRaw(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return raw.Descriptor
}

func TestSignatureRoundTrip(t *testing.T) {
	for _, kind := range []string{"ecdsa", "ed25519"} {
		for _, api := range []bool{true, false} {
			t.Run(kind, func(t *testing.T) {
				p := rt.New(t)
				p.NoReferrers = !api
				s, c, key := rt.NewStore(t), newClient(t), newKey(t, kind)
				name, d := rt.PutModel(t, s, "model", 10)
				remote := p.Name("team/model")
				sig, err := Sign(key, subjectOf(t, s, name), "")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := StoredSignature(t.Context(), s, d, SignatureCheck{Key: key.Public()}); !errors.Is(err, ErrNotSigned) ||
					!strings.HasSuffix(err.Error(), "is not signed") {
					t.Errorf("before: %v", err)
				}
				for range 2 {
					if err := sig.Store(t.Context(), s); err != nil {
						t.Fatal(err)
					}
					if err := sig.Push(t.Context(), c, remote); err != nil {
						t.Fatal(err)
					}
				}
				stored, err := StoredSignature(t.Context(), s, d, SignatureCheck{Key: key.Public()})
				if err != nil || stored.Descriptor.Digest != sig.Descriptor.Digest {
					t.Errorf("in the store: %+v, %v", stored, err)
				}
				found, err := RemoteSignature(t.Context(), c, d, SignatureCheck{Key: key.Public(), Name: remote})
				if err != nil {
					t.Fatal(err)
				}
				list, err := c.Referrers(t.Context(), remote, d, sigstore.BundleMediaType)
				if err != nil || len(list) != 1 || list[0].Digest != sig.Descriptor.Digest {
					t.Errorf("listed %+v, %v", list, err)
				}

				other := rt.NewStore(t)
				rt.PutModel(t, other, "model", 10)
				if err := found.Store(t.Context(), other); err != nil {
					t.Fatal(err)
				}
				if _, err := StoredSignature(t.Context(), other, d, SignatureCheck{Key: key.Public()}); err != nil {
					t.Errorf("in the other store: %v", err)
				}
				_, err = RemoteSignature(t.Context(), c, d, SignatureCheck{Key: newKey(t, kind).Public(), Name: remote})
				if !errors.Is(err, ErrNotSigned) || !errors.Is(err, sigstore.ErrOtherKey) {
					t.Errorf("another key: %v, want ErrNotSigned and ErrOtherKey", err)
				}
				_, err = RemoteSignature(t.Context(), c, digest.FromString("other"),
					SignatureCheck{Key: key.Public(), Name: remote})
				if !errors.Is(err, ErrNotSigned) {
					t.Errorf("another digest: %v, want ErrNotSigned", err)
				}
			})
		}
	}
}

// TestSignatureAmongOthers: one signature by the key is found among others.
func TestSignatureAmongOthers(t *testing.T) {
	p := rt.New(t)
	s, c, key := rt.NewStore(t), newClient(t), newKey(t, "ecdsa")
	name, d := rt.PutModel(t, s, "model", 10)
	for _, k := range []*sigstore.PrivateKey{newKey(t, "ecdsa"), key, newKey(t, "ed25519")} {
		sig, err := Sign(k, subjectOf(t, s, name), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := sig.Push(t.Context(), c, p.Name("m")); err != nil {
			t.Fatal(err)
		}
	}
	rt.Attach(t, s, d, "text/plain", "report")
	if _, err := c.PushReferrers(t.Context(), s, p.Name("m"), d); err != nil {
		t.Fatal(err)
	}
	if _, err := RemoteSignature(t.Context(), c, d, SignatureCheck{Key: key.Public(), Name: p.Name("m")}); err != nil {
		t.Error(err)
	}
	_, err := RemoteSignature(t.Context(), c, d, SignatureCheck{Key: newKey(t, "ecdsa").Public(), Name: p.Name("m")})
	if err == nil || !strings.Contains(err.Error(), "3 signatures") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a key without signatures: %v", err)
	}
}

// edited returns the signature with a modified manifest.
func edited(t *testing.T, sig *Signature, change func(m *ocispec.Manifest)) *Signature {
	t.Helper()
	var m ocispec.Manifest
	if err := json.Unmarshal(sig.Manifest, &m); err != nil {
		t.Fatal(err)
	}
	change(&m)
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	desc, err := manifest.ReferrerDescriptor(ocispec.MediaTypeImageManifest, b)
	if err != nil {
		t.Fatal(err)
	}
	return &Signature{Referrer{desc, b, sig.Blobs}, sig.Reference}
}

// TestSignatureRejected: nothing that a registry lists or sends is accepted, except a valid signature.
func TestSignatureRejected(t *testing.T) {
	key := newKey(t, "ed25519")
	tests := []struct {
		name string
		make func(t *testing.T, sig *Signature, p *rt.Peer) *Signature // returns what is pushed
		want error
	}{
		{"none", func(*testing.T, *Signature, *rt.Peer) *Signature { return nil }, ErrNotSigned},
		{"of another manifest", func(t *testing.T, sig *Signature, _ *rt.Peer) *Signature {
			other, err := key.Sign(digest.FromString("other"), "")
			if err != nil {
				t.Fatal(err)
			}
			sig = edited(t, sig, func(m *ocispec.Manifest) {
				m.Layers[0].Digest, m.Layers[0].Size = digest.FromBytes(other), int64(len(other))
			})
			sig.Blobs = append(sig.Blobs, other)
			return sig
		}, sigstore.ErrSubject},
		{"two layers", func(t *testing.T, sig *Signature, _ *rt.Peer) *Signature {
			return edited(t, sig, func(m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) })
		}, sigstore.ErrBundle},
		{"no layer", func(t *testing.T, sig *Signature, _ *rt.Peer) *Signature {
			return edited(t, sig, func(m *ocispec.Manifest) { m.Layers = nil })
		}, sigstore.ErrBundle},
		{"a layer of another type", func(t *testing.T, sig *Signature, _ *rt.Peer) *Signature {
			return edited(t, sig, func(m *ocispec.Manifest) { m.Layers[0].MediaType = "text/plain" })
		}, sigstore.ErrBundle},
		{"a huge layer", func(t *testing.T, sig *Signature, _ *rt.Peer) *Signature {
			return edited(t, sig, func(m *ocispec.Manifest) { m.Layers[0].Size = 1 << 40 })
		}, manifest.ErrTooLarge},
		{"a layer with a digest that is none", func(t *testing.T, sig *Signature, p *rt.Peer) *Signature {
			sig = edited(t, sig, func(m *ocispec.Manifest) { m.Layers[0].Digest = "sha256:../x" })
			p.PutManifest("m", "", ocispec.MediaTypeImageManifest, sig.Manifest)
			return nil
		}, manifest.ErrInvalidManifest},
		{"a bundle with another byte", func(t *testing.T, sig *Signature, p *rt.Peer) *Signature {
			p.On(http.MethodGet, rt.BlobRoute, rt.Flip(100))
			return sig
		}, remote.ErrDigest},
		{"a manifest with another byte", func(t *testing.T, sig *Signature, p *rt.Peer) *Signature {
			p.On(http.MethodGet, rt.ManifestRoute, rt.Flip(100))
			return sig
		}, remote.ErrDigest},
		{"a bundle that is not there", func(t *testing.T, sig *Signature, p *rt.Peer) *Signature {
			p.On(http.MethodGet, rt.BlobRoute, rt.RefuseWith(404, "BLOB_UNKNOWN"))
			return sig
		}, remote.ErrNotFound},
		{"a bundle that never ends", func(t *testing.T, sig *Signature, p *rt.Peer) *Signature {
			p.On(http.MethodGet, rt.BlobRoute, func(x *rt.Exchange) {
				for x.R.Context().Err() == nil {
					if _, err := x.W.Write(make([]byte, 1<<16)); err != nil {
						return
					}
				}
			})
			return sig
		}, remote.ErrDigest},
		{"listed for a manifest that it does not refer to", func(t *testing.T, sig *Signature, p *rt.Peer) *Signature {
			p.On(http.MethodGet, rt.ReferrersRoute, listing(edited(t, sig,
				func(m *ocispec.Manifest) { m.Subject.Digest = digest.FromString("other") }).Descriptor))
			return edited(t, sig, func(m *ocispec.Manifest) { m.Subject.Digest = digest.FromString("other") })
		}, sigstore.ErrSubject},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := rt.New(t)
			s, c := rt.NewStore(t), newClient(t)
			name, d := rt.PutModel(t, s, "model", 10)
			sig, err := Sign(key, subjectOf(t, s, name), "")
			if err != nil {
				t.Fatal(err)
			}
			if sig = tt.make(t, sig, p); sig != nil {
				if err := sig.Push(t.Context(), c, p.Name("m")); err != nil {
					t.Fatal(err)
				}
			}
			_, err = RemoteSignature(t.Context(), c, d, SignatureCheck{Key: key.Public(), Name: p.Name("m")})
			if !errors.Is(err, ErrNotSigned) || !errors.Is(err, tt.want) {
				t.Errorf("got %v, want ErrNotSigned and %v", err, tt.want)
			}
		})
	}
}

// TestSignatureUnknown: a registry whose referrers cannot be listed gives another error than one without a signature.
func TestSignatureUnknown(t *testing.T) {
	p := rt.New(t)
	p.On("", rt.ReferrersRoute, rt.RefuseWith(403, "DENIED"))
	_, err := RemoteSignature(t.Context(), newClient(t), digest.FromString("x"),
		SignatureCheck{Key: newKey(t, "ecdsa").Public(), Name: p.Name("m")})
	if errors.Is(err, ErrNotSigned) || !errors.Is(err, remote.ErrUnauthorized) {
		t.Errorf("got %v, want ErrUnauthorized", err)
	}
}

func TestSignDeterministic(t *testing.T) {
	s, key := rt.NewStore(t), newKey(t, "ecdsa")
	name, _ := rt.PutModel(t, s, "model", 10)
	one, err := Sign(key, subjectOf(t, s, name), "")
	if err != nil {
		t.Fatal(err)
	}
	two, err := Sign(key, subjectOf(t, s, name), "")
	if err != nil || !bytes.Equal(one.Manifest, two.Manifest) {
		t.Errorf("%v:\n%s\n%s", err, one.Manifest, two.Manifest)
	}
}
