package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestManifestTypes: documents that are neither images nor indexes are neither stored nor pushed.
func TestManifestTypes(t *testing.T) {
	p := rt.New(t)
	for name, doc := range map[string][2]string{
		"any":   {"application/json", `{"secret":"words"}`},
		"other": {"application/vnd.example.note+json", `{"schemaVersion":2,"config":{},"layers":[]}`},
		"own": {"application/json",
			strings.Replace(rt.SmallManifest(""), "vnd.oci.image.manifest.v1", "vnd.example.note", 1)},
		"two": {ocispec.MediaTypeImageIndex, rt.SmallManifest("")},
		"no":  {ocispec.MediaTypeImageManifest, "<html>"},
		"listed": {ocispec.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[` +
			entry(t, p, digest.SHA256, "application/vnd.example.note+json", `{"schemaVersion":2}`) + `]}`},
	} {
		p.PutManifest("team/model", name, doc[0], []byte(doc[1]))
		s := rt.NewStore(t)
		_, err := newClient(t).Pull(t.Context(), s, p.Name("team/model:"+name), PullOptions{})
		if !errors.Is(err, manifest.ErrUnknownManifest) && !errors.Is(err, manifest.ErrInvalidManifest) ||
			remote.Temporary(err) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if (name == "other" || name == "own" || name == "listed") &&
			!strings.Contains(err.Error(), `"application/vnd.example.note+json" is neither an image nor an index`) {
			t.Errorf("%s: %v", name, err)
		}
		if list, err := s.List(t.Context()); err != nil || len(list) > 0 {
			t.Errorf("%s: stored as %v, %v", name, list, err)
		}
		_, err = s.PutRaw(t.Context(), p.Name("team/model:"+name), doc[0], []byte(doc[1]), store.PutOptions{})
		if err == nil && name != "listed" {
			t.Errorf("%s: the store accepted it", name)
		}
	}
	before := p.Count("PUT", rt.AnyRoute) + p.Count("POST", rt.AnyRoute)
	r := repositoryAt(t, newClient(t), p.Host()+"/team/model", remote.Push)
	b := []byte(`{"secret":"words"}`)
	_, err := r.PutManifest(t.Context(), "carried-out", remote.Manifest{MediaType: ocispec.MediaTypeImageManifest,
		Digest: digest.FromBytes(b), Bytes: b})
	if !errors.Is(err, manifest.ErrInvalidManifest) || p.Count("PUT", rt.AnyRoute)+p.Count("POST", rt.AnyRoute) != before {
		t.Errorf("pushed: %v", err)
	}
}

// entry stores a manifest under a digest with this algorithm, and returns an index's descriptor of it.
func entry(t *testing.T, p *rt.Peer, a digest.Algorithm, mediaType, doc string) string {
	t.Helper()
	d := a.FromString(doc)
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.InRepo("team/model").Manifests[string(d)] = rt.PeerManifest{MediaType: mediaType, Bytes: []byte(doc)}
	return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d}`, mediaType, d, len(doc))
}

// TestDigestAlgorithms: a child of an index is verified with the algorithm of its digest, whatever the registry's
// headers say.
func TestDigestAlgorithms(t *testing.T) {
	for _, a := range []digest.Algorithm{digest.SHA256, digest.SHA512, digest.SHA384} {
		t.Run(string(a), func(t *testing.T) {
			p := rt.New(t)
			img := serve(t, p, testFiles)
			child := entry(t, p, a, ocispec.MediaTypeImageManifest, string(img.bytes))
			d := p.PutManifest("team/model", "latest", ocispec.MediaTypeImageIndex,
				[]byte(`{"schemaVersion":2,"manifests":[`+child+`]}`))
			n := p.Name("team/model@" + string(d))
			_, err := newClient(t).Pull(t.Context(), rt.NewStore(t), n, PullOptions{})
			if a == digest.SHA384 {
				if err == nil || !strings.Contains(err.Error(), "algorithm sha384, where sha256 and sha512 are supported") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			// The same size and one other byte. The registry sends the digest of the altered manifest.
			p.On("GET", rt.ManifestRoute, func(x *rt.Exchange) {
				b := []byte(strings.Replace(string(img.bytes), `"annotations"`, `"annotationz"`, 1))
				x.W.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
				x.W.Header().Set("Docker-Content-Digest", string(digest.FromBytes(b)))
				x.W.Write(b)
			}).Of(string(a.FromBytes(img.bytes)))
			s := rt.NewStore(t)
			_, err = newClient(t).Pull(t.Context(), s, n, PullOptions{})
			if !errors.Is(err, remote.ErrDigest) || !strings.Contains(err.Error(), string(a)+":") {
				t.Errorf("other bytes: %v", err)
			}
			if list, _ := s.List(t.Context()); len(list) > 0 {
				t.Errorf("stored as %v", list)
			}
		})
	}
	p := rt.New(t)
	p.PutManifest("team/model", "latest", ocispec.MediaTypeImageManifest, []byte(rt.SmallManifest("")))
	r := repositoryAt(t, newClient(t), p.Host()+"/team/model", remote.Pull)
	for _, d := range []string{"md5:" + strings.Repeat("a", 32), "sha512:" + strings.Repeat("a", 64)} {
		p.On("GET", rt.ManifestRoute, func(x *rt.Exchange) { x.W.Write([]byte(rt.SmallManifest(""))) })
		if _, err := r.GetManifest(context.Background(), d); !errors.Is(err, manifest.ErrInvalidManifest) {
			t.Errorf("%s: %v", d, err)
		}
	}
	p.On("GET", rt.ManifestRoute, func(x *rt.Exchange) {
		x.W.Header().Set("Docker-Content-Digest", string(digest.SHA512.FromString("other")))
		x.W.WriteHeader(http.StatusOK)
		x.W.Write([]byte(rt.SmallManifest("")))
	})
	if _, err := r.GetManifest(context.Background(), "latest"); !errors.Is(err, remote.ErrDigest) {
		t.Errorf("a tag with a wrong sha512 digest header: %v", err)
	}
}

// TestIndexDescriptor: the size and media type in an index must match the manifest, like its digest.
func TestIndexDescriptor(t *testing.T) {
	p := rt.New(t)
	img := serve(t, p, testFiles)
	for _, tt := range []struct {
		mediaType string
		size      int
		want      error
	}{
		{ocispec.MediaTypeImageManifest, len(img.bytes), nil},
		{ocispec.MediaTypeImageManifest, len(img.bytes) + 1, remote.ErrDigest},
		{ocispec.MediaTypeImageIndex, len(img.bytes), manifest.ErrInvalidManifest},
	} {
		p.PutManifest("team/model", "latest", ocispec.MediaTypeImageIndex,
			fmt.Appendf(nil, `{"schemaVersion":2,"manifests":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
				tt.mediaType, img.digest, tt.size))
		if _, err := newClient(t).Pull(t.Context(), rt.NewStore(t), img.name, PullOptions{}); !errors.Is(err, tt.want) ||
			tt.want == nil && err != nil {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
