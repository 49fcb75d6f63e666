package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

func newClient(t testing.TB, mirrors ...remote.Mirror) *registry.Client {
	t.Helper()
	c, err := registry.New(registry.Options{Connection: remote.Options{
		Keychain: authn.NewMultiKeychain(), Attempts: 2, Mirrors: append([]remote.Mirror{}, mirrors...)}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// kinds lists what a report found: the kind, and the size of a blob.
func kinds(r *Report) (list []string) {
	for _, p := range r.Problems {
		text := fmt.Sprintf("%s %s", p.Kind, p.What())
		if !p.Manifest {
			text += fmt.Sprint(" ", p.Size)
		}
		if p.Repaired {
			text += " repaired"
		}
		list = append(list, text)
	}
	return list
}

// pushed pushes a model with a signature to a peer.
func pushed(t *testing.T, p *rt.Peer, s *store.Store) (name manifest.Name, signature digest.Digest) {
	t.Helper()
	local, d := rt.PutModel(t, s, "m", 70000, 3000, 8)
	b, n, err := s.PutBytes(t.Context(), []byte("signed"))
	if err != nil {
		t.Fatal(err)
	}
	desc, err := s.Attach(t.Context(), manifest.Artifact{Type: "text/plain",
		Subject: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: d, Size: 2},
		Layers:  []ocispec.Descriptor{{MediaType: "text/plain", Digest: b, Size: n}}})
	if err != nil {
		t.Fatal(err)
	}
	name = p.Name("team/m:v1")
	if _, err := newClient(t).Push(t.Context(), s, local, name, registry.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	return name, desc.Digest
}

// What is wrong in a registry is found, each in the way that it can be, and a repair mends it if the registry lets it.
func TestRun(t *testing.T) {
	large, small := digest.FromBytes(rt.Noise(0, 70000)), digest.FromBytes(rt.Noise(1, 3000))
	refuseHead := func(p *rt.Peer) { // HEAD is refused
		p.On("HEAD", rt.BlobRoute, rt.Respond(405))
	}
	replace := func(p *rt.Peer, d digest.Digest, b []byte) {
		p.Mu.Lock()
		defer p.Mu.Unlock()
		p.InRepo("team/m").Blobs[d] = b
	}
	for _, c := range []struct {
		name  string
		set   func(p *rt.Peer, signature digest.Digest)
		quick []string // without digests
		all   []string // with digests
		keeps bool     // a repair cannot mend it
	}{
		{"nothing", func(p *rt.Peer, _ digest.Digest) {}, nil, nil, false},
		{"lost", func(p *rt.Peer, _ digest.Digest) { p.DropBlob("team/m", large); p.DropBlob("team/m", small) },
			[]string{"missing blob 70000", "missing blob 3000"}, []string{"missing blob 70000", "missing blob 3000"}, false},
		{"lost, no HEAD", func(p *rt.Peer, _ digest.Digest) { refuseHead(p); p.DropBlob("team/m", large) },
			[]string{"missing blob 70000"}, []string{"missing blob 70000"}, false},
		{"no HEAD", func(p *rt.Peer, _ digest.Digest) { refuseHead(p) }, nil, nil, false},
		{"HEAD without a size", func(p *rt.Peer, _ digest.Digest) { p.On("HEAD", rt.BlobRoute, rt.Respond(200)) },
			nil, nil, false},
		{"cut", func(p *rt.Peer, _ digest.Digest) { replace(p, large, []byte("cut")) },
			[]string{"size blob 70000"}, []string{"corrupt blob 70000"}, false},
		{"cut, no HEAD", func(p *rt.Peer, _ digest.Digest) { refuseHead(p); replace(p, large, []byte("cut")) },
			[]string{"size blob 70000"}, []string{"corrupt blob 70000"}, false},
		{"damaged", func(p *rt.Peer, _ digest.Digest) { replace(p, large, make([]byte, 70000)) },
			nil, []string{"corrupt blob 70000"}, false},
		{"damaged for good", func(p *rt.Peer, _ digest.Digest) { p.On("GET", rt.BlobRoute, rt.Flip(1)).Of(string(large)) },
			nil, []string{"corrupt blob 70000"}, true},
		{"failing", func(p *rt.Peer, _ digest.Digest) {
			p.On("HEAD", rt.BlobRoute, rt.Respond(500)).Of(string(small))
			p.On("GET", rt.BlobRoute, rt.Respond(500)).Of(string(small))
		}, []string{"unreadable blob 3000"}, []string{"unreadable blob 3000"}, true},
		{"no signature", func(p *rt.Peer, signature digest.Digest) {
			p.On("GET", rt.ManifestRoute, rt.RefuseWith(404, "MANIFEST_UNKNOWN")).Of(string(signature)).Times(1)
		}, []string{"missing manifest"}, nil, false},
		{"no list", func(p *rt.Peer, _ digest.Digest) { p.On("GET", rt.ReferrersRoute, rt.Respond(500)) },
			[]string{"unlisted manifest"}, []string{"unlisted manifest"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, s := rt.New(t), rt.NewStore(t)
			name, signature := pushed(t, p, s)
			c.set(p, signature)
			r, err := Run(t.Context(), newClient(t), name, Options{})
			if err != nil || !slices.Equal(kinds(r), c.quick) {
				t.Fatalf("%v, %v, want %v", r, err, c.quick)
			}
			r, err = Run(t.Context(), newClient(t), name, Options{Digests: true})
			if err != nil || !slices.Equal(kinds(r), c.all) {
				t.Fatalf("digests: %v, %v, want %v", r, err, c.all)
			}
			r, err = Run(t.Context(), newClient(t), name, Options{Digests: true, Repair: s})
			if err != nil || len(r.Problems) != len(c.all) || r.OK() != (!c.keeps || len(c.all) == 0) {
				t.Fatalf("repair: %v, %v", r, err)
			}
			if r, err = Run(t.Context(), newClient(t), name, Options{Digests: true}); err != nil || r.OK() == c.keeps {
				t.Errorf("after the repair: %v, %v", r, err)
			}
			if !c.keeps {
				p.Check("team/m", "v1", r.Digest)
			}
		})
	}
}

// A repair sends nothing that the store does not have intact.
func TestRepairWithout(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, _ := pushed(t, p, s)
	large := digest.FromBytes(rt.Noise(0, 70000))
	p.DropBlob("team/m", large)
	r, err := Run(t.Context(), newClient(t), name, Options{Repair: rt.NewStore(t)})
	if err != nil || r.OK() || r.Problems[0].Repair != "the store does not have it" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A registry that lost the manifest of a signature and its blob gets both.
func TestRepairReferrer(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	p.NoReferrers = true // so that the registry lists it without having it
	name, signature := pushed(t, p, s)
	p.Mu.Lock()
	delete(p.InRepo("team/m").Manifests, string(signature))
	p.Mu.Unlock()
	p.DropBlob("team/m", digest.FromString("signed"))
	r, err := Run(t.Context(), newClient(t), name, Options{Repair: s})
	if err != nil || !slices.Equal(kinds(r), []string{"missing manifest repaired"}) {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err = Run(t.Context(), newClient(t), name, Options{Digests: true}); err != nil || !r.OK() || r.Manifests != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = Run(t.Context(), newClient(t), name, Options{NoReferrers: true}); err != nil || r.Manifests != 1 {
		t.Errorf("without referrers: %+v, %v", r, err)
	}
}

// A registry that lost the manifest itself gets the image again, if the store has it under this name.
func TestRepairLost(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, _ := pushed(t, p, s)
	lose := func() {
		p.Mu.Lock()
		defer p.Mu.Unlock()
		clear(p.InRepo("team/m").Manifests)
		clear(p.InRepo("team/m").Blobs)
	}
	lose()
	if r, err := Run(t.Context(), newClient(t), name, Options{Repair: s}); !errors.Is(err, remote.ErrNotFound) {
		t.Errorf("%+v, %v", r, err)
	}
	if err := s.Tag(t.Context(), manifest.Name{Path: "m", Tag: "latest"}, name); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), newClient(t), name, Options{Repair: s, Digests: true})
	if err != nil || !slices.Equal(kinds(r), []string{"missing manifest repaired"}) || r.Manifests != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	p.Check("team/m", "v1", r.Digest)
}

// The registry is asked, and not its mirror.
func TestMirror(t *testing.T) {
	p, mirror, s := rt.New(t), rt.New(t), rt.NewStore(t)
	name, _ := pushed(t, p, s)
	pushed(t, mirror, rt.NewStore(t))
	p.DropBlob("team/m", digest.FromBytes(rt.Noise(0, 70000)))
	mirrors, err := remote.ParseMirrors(p.Host() + "=http://" + mirror.Host())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), newClient(t, mirrors...), name, Options{Digests: true})
	if err != nil || !slices.Equal(kinds(r), []string{"missing blob 70000"}) {
		t.Errorf("%+v, %v", r, err)
	}
	if got := mirror.Count("GET", rt.BlobRoute); got > 0 {
		t.Errorf("the mirror was asked %d times", got)
	}
}

// An image that is not there, a name without a registry and the end of the context end a check.
func TestFails(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, _ := pushed(t, p, s)
	if r, err := Run(t.Context(), newClient(t), p.Name("team/m:v9"), Options{}); !errors.Is(err, remote.ErrNotFound) {
		t.Errorf("%+v, %v", r, err)
	}
	local := manifest.Name{Path: "m", Tag: "v1"}
	if r, err := Run(t.Context(), newClient(t), local, Options{}); !errors.Is(err, remote.ErrNoHost) {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.On("HEAD", rt.BlobRoute, func(x *rt.Exchange) { cancel(); rt.Hang(x) })
	if r, err := Run(ctx, newClient(t), name, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", r, err)
	}
	p.Reset()
	p.PutManifest("team/m", "odd", ocispec.MediaTypeImageManifest, []byte(strings.Replace(
		rt.SmallManifest("x"), `"size":2`, `"size":-2`, 1)))
	odd := p.Name("team/m:odd")
	if r, err := Run(t.Context(), newClient(t), odd, Options{}); !errors.Is(err, manifest.ErrInvalidManifest) {
		t.Errorf("%+v, %v", r, err)
	}
}
