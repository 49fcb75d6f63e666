package registry

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// index responds with a page of a list of referrers.
func index(next string, descs ...ocispec.Descriptor) rt.Action {
	return func(x *rt.Exchange) {
		x.W.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		if next != "" {
			x.W.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next"`, next))
		}
		idx := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: descs}
		idx.SchemaVersion = 2
		_ = json.NewEncoder(x.W).Encode(idx)
	}
}

// TestReferrersResponses covers error responses, and malformed and unusual lists.
func TestReferrersResponses(t *testing.T) {
	subject := digest.FromString("subject")
	one, two := referrerOf("one"), referrerOf("two")
	page := "/v2/m/referrers/" + string(subject) + "?page=2"
	tests := []struct {
		name      string
		responses []rt.Action // of the referrers API, in order; the last one repeats
		want      []ocispec.Descriptor
		wantErr   string
	}{
		{"404", []rt.Action{rt.RefuseWith(404, "NAME_UNKNOWN")}, []ocispec.Descriptor{two}, ""},
		{"400", []rt.Action{rt.RefuseWith(400, "UNSUPPORTED")}, []ocispec.Descriptor{two}, ""},
		{"405", []rt.Action{rt.RefuseWith(405, "UNSUPPORTED")}, []ocispec.Descriptor{two}, ""},
		{"406", []rt.Action{rt.Respond(406)}, []ocispec.Descriptor{two}, ""},
		{"501", []rt.Action{rt.Respond(501)}, []ocispec.Descriptor{two}, ""},
		{"an HTML page", []rt.Action{rt.Respond(200, "Content-Type", "text/html; charset=utf-8")}, []ocispec.Descriptor{two},
			""},
		{"no type", []rt.Action{rt.Respond(200, "Content-Type", "")}, []ocispec.Descriptor{two}, ""},
		{"type with parameters", []rt.Action{func(x *rt.Exchange) {
			rec := httptest.NewRecorder()
			index("", one)(&rt.Exchange{Peer: x.Peer, W: rec, R: x.R})
			rec.Header().Set("Content-Type", ocispec.MediaTypeImageIndex+"; charset=utf-8")
			x.Replay(rec, rec.Body.Bytes())
		}}, []ocispec.Descriptor{one}, ""},
		{"403", []rt.Action{rt.RefuseWith(403, "DENIED")}, []ocispec.Descriptor{two}, ""},
		{"403 for ever, and no tag", []rt.Action{rt.RefuseWith(403, "DENIED")}, nil, "403 Forbidden: DENIED"},
		{"410", []rt.Action{rt.Respond(410)}, []ocispec.Descriptor{two}, ""},
		{"500 twice", []rt.Action{rt.Respond(500), rt.Respond(500), index("", one)}, []ocispec.Descriptor{one}, ""},
		{"500 for ever", []rt.Action{rt.Respond(500)}, nil, "500 Internal"},
		{"cut", []rt.Action{rt.CutResponse(20), index("", one)}, []ocispec.Descriptor{one}, ""},
		{"not JSON", []rt.Action{rt.Respond(200, "Content-Type", ocispec.MediaTypeImageIndex)}, nil, "invalid manifest"},
		{"two pages", []rt.Action{index(page, one), index("", two)}, []ocispec.Descriptor{one, two}, ""},
		{"a second page that fails once", []rt.Action{index(page, one), rt.Respond(503), index("", two)},
			[]ocispec.Descriptor{one, two}, ""},
		{"a second page that is not there", []rt.Action{index(page, one), rt.RefuseWith(404, "NOT_FOUND")}, nil, "404"},
		{"a second page that is not there, and no tag", []rt.Action{index(page, one), rt.Respond(404)}, nil, "404"},
		{"a second page that is a proxy's", []rt.Action{index(page, one), rt.Respond(200, "Content-Type", "text/html")}, nil,
			"not an image index"},
		{"pages without end", []rt.Action{index(page, one)}, nil, "lead back"},
		{"a page elsewhere", []rt.Action{index("https://elsewhere.example/v2/", one)}, nil, "on another host"},
		{"an empty list", []rt.Action{index("")}, []ocispec.Descriptor{two}, ""},
		{"an empty list, and no tag", []rt.Action{index("")}, nil, ""},
		{"listed twice", []rt.Action{index("", one, one)}, []ocispec.Descriptor{one}, ""},
		{"no digests", []rt.Action{index("", ocispec.Descriptor{Digest: "sha256:../../x"}, ocispec.Descriptor{}, one)},
			[]ocispec.Descriptor{one}, ""},
		{"odd sizes", []rt.Action{index("", ocispec.Descriptor{Digest: two.Digest, Size: -1},
			ocispec.Descriptor{Digest: subject, Size: 1 << 40}, one)}, []ocispec.Descriptor{one}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := rt.New(t)
			p.On(http.MethodGet, rt.ReferrersRoute, tt.responses[len(tt.responses)-1])
			for i, a := range slices.Backward(tt.responses[:len(tt.responses)-1]) {
				_ = i
				p.Once(http.MethodGet, rt.ReferrersRoute, a)
			}
			idx := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{two}}
			idx.SchemaVersion = 2
			b, err := json.Marshal(idx)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(tt.name, "no tag") {
				p.PutManifest("m", remote.ReferrersTag(subject), ocispec.MediaTypeImageIndex, b)
			}
			got, err := newClient(t).Referrers(t.Context(), p.Name("m"), subject, "")
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v, want an error with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %v, want %v", got, tt.want)
			}
			for i := range got {
				if got[i].Digest != tt.want[i].Digest {
					t.Errorf("%d: %s, want %s", i, got[i].Digest, tt.want[i].Digest)
				}
			}
		})
	}
}

// TestReferrersAPIOnce: a registry without the API is asked for it once, unless its answer may be about a repository.
func TestReferrersAPIOnce(t *testing.T) {
	for _, c := range []struct {
		do       rt.Action
		requests int
	}{
		{rt.Respond(404), 1}, {rt.Respond(405), 1}, {rt.Respond(501), 1},
		{rt.RefuseWith(404, "NAME_UNKNOWN"), 3}, {rt.Respond(403), 3},
	} {
		p, client := rt.New(t), newClient(t)
		p.On("GET", rt.ReferrersRoute, c.do)
		for i := range 3 {
			_, _ = client.Referrers(t.Context(), p.Name(fmt.Sprint("m", i)), digest.FromString("subject"), "")
		}
		if got := p.Count("GET", rt.ReferrersRoute); got != c.requests {
			t.Errorf("asked %d times, want %d", got, c.requests)
		}
	}
}

// TestReferrersTagConcurrently: concurrent updates of the referrers tag lose no entries.
func TestReferrersTagConcurrently(t *testing.T) {
	host := olaregHost(t, withoutAPI, nil)
	name := mustName(t, host+"/m")
	s := rt.NewStore(t)
	_, subject := rt.PutModel(t, s, "model", 10)
	var all []ocispec.Descriptor
	var wg sync.WaitGroup
	for i := range 6 {
		own := rt.NewStore(t)
		rt.PutModel(t, own, "model", 10)
		all = append(all, rt.Attach(t, own, subject, reportType, fmt.Sprint("report ", i)))
		c := newClient(t)
		c.conn.Sleep = remote.Sleep
		wg.Go(func() {
			if _, err := c.PushReferrers(t.Context(), own, name, subject); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wantReferrers(t, newClient(t), name, subject, "", all...)
}

// TestReferrersTagOverwritten: another client, which had read the index earlier, writes it after us. Our entry is added
// again, and theirs is kept.
func TestReferrersTagOverwritten(t *testing.T) {
	p := rt.New(t)
	p.NoReferrers = true
	s, c := rt.NewStore(t), newClient(t)
	_, subject := rt.PutModel(t, s, "model", 10)
	ours, theirs := rt.Attach(t, s, subject, reportType, "ours"), referrerOf("theirs")
	p.Once(http.MethodPut, rt.ManifestRoute, func(x *rt.Exchange) {
		x.Record()
		idx := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{theirs},
			Annotations: map[string]string{"by": "them"}}
		idx.SchemaVersion = 2
		b, _ := json.Marshal(idx)
		x.PutManifest(x.Repo, x.Ref, ocispec.MediaTypeImageIndex, b)
		x.W.WriteHeader(http.StatusCreated)
	}).Of(remote.ReferrersTag(subject))
	if _, err := c.PushReferrers(t.Context(), s, p.Name("m"), subject); err != nil {
		t.Fatal(err)
	}
	wantReferrers(t, c, p.Name("m"), subject, "", ours, theirs)
	if got := string(p.Manifest("m", remote.ReferrersTag(subject))); !strings.Contains(got, `"by":"them"`) {
		t.Errorf("their annotation is gone: %s", got)
	}
}

// TestReferrersTagIfMatch: if the registry sends ETags, the index is replaced only if it is unchanged.
func TestReferrersTagIfMatch(t *testing.T) {
	p := rt.New(t)
	p.NoReferrers = true
	s, c := rt.NewStore(t), newClient(t)
	_, subject := rt.PutModel(t, s, "model", 10)
	tag := remote.ReferrersTag(subject)
	first, second := rt.Attach(t, s, subject, reportType, "first"), referrerOf("second")
	seed := func(descs ...ocispec.Descriptor) {
		idx := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: descs}
		idx.SchemaVersion = 2
		b, err := json.Marshal(idx)
		if err != nil {
			t.Error(err)
		}
		p.PutManifest("m", tag, ocispec.MediaTypeImageIndex, b)
	}
	seed()
	etag := func() string { return `"` + digest.FromBytes(p.Manifest("m", tag)).Encoded() + `"` }
	p.On(http.MethodGet, rt.ManifestRoute, func(x *rt.Exchange) {
		x.W.Header().Set("ETag", etag())
		x.Handle()
	}).Of(tag)
	refused := 0
	p.On(http.MethodPut, rt.ManifestRoute, func(x *rt.Exchange) {
		if x.N == 0 {
			seed(second) // another client updates the index first
		}
		if x.R.Header.Get("If-Match") != etag() {
			refused++
			rt.Respond(http.StatusPreconditionFailed)(x)
			return
		}
		x.Handle()
	}).Of(tag)
	if _, err := c.PushReferrers(t.Context(), s, p.Name("m"), subject); err != nil {
		t.Fatal(err)
	}
	if refused != 1 {
		t.Errorf("%d requests were refused, want 1", refused)
	}
	wantReferrers(t, c, p.Name("m"), subject, "", first, second)
}

func TestReferrersTagFaults(t *testing.T) {
	tests := []struct {
		name    string
		setup   func(p *rt.Peer, tag string)
		wantErr string // empty: success
	}{
		{"500 to the read", func(p *rt.Peer, tag string) {
			p.Once(http.MethodGet, rt.ManifestRoute, rt.Respond(500)).Of(tag)
		}, ""},
		{"500 to the write", func(p *rt.Peer, tag string) {
			p.Once(http.MethodPut, rt.ManifestRoute, rt.Respond(500)).Of(tag)
		}, ""},
		{"cut after the write", func(p *rt.Peer, tag string) {
			p.Once(http.MethodPut, rt.ManifestRoute, rt.CutAfter).Of(tag)
		}, ""},
		{"changes for ever", func(p *rt.Peer, tag string) {
			p.On(http.MethodPut, rt.ManifestRoute, func(x *rt.Exchange) {
				p.PutManifest("m", tag, ocispec.MediaTypeImageIndex,
					fmt.Appendf(nil, `{"schemaVersion":2,"manifests":[],"annotations":{"n":"%d"}}`, x.N))
				rt.Respond(412)(x)
			}).Of(tag)
		}, "keeps changing"},
		{"is immutable", func(p *rt.Peer, tag string) {
			p.On(http.MethodPut, rt.ManifestRoute, rt.RefuseWith(412, "PRECONDITION")).Of(tag).Times(2)
		}, "412 Precondition Failed: PRECONDITION"},
		{"tags cannot be written",
			func(p *rt.Peer, tag string) {
				p.On(http.MethodPut, rt.ManifestRoute, rt.RefuseWith(403, "DENIED")).Of(tag)
			}, "DENIED"},
		{"the tag is a manifest", func(p *rt.Peer, tag string) {
			p.PutManifest("m", tag, ocispec.MediaTypeImageManifest, []byte(`{"schemaVersion":2}`))
		}, "is not an image index"},
		{"the tag is not JSON",
			func(p *rt.Peer, tag string) {
				p.PutManifest("m", tag, ocispec.MediaTypeImageIndex, []byte(`{`))
			}, "invalid manifest"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := rt.New(t)
			p.NoReferrers = true
			s, c := rt.NewStore(t), newClient(t)
			_, subject := rt.PutModel(t, s, "model", 10)
			desc := rt.Attach(t, s, subject, reportType, "report")
			tt.setup(p, remote.ReferrersTag(subject))
			_, err := c.PushReferrers(t.Context(), s, p.Name("m"), subject)
			if tt.wantErr == "" {
				if err != nil {
					t.Fatal(err)
				}
				wantReferrers(t, c, p.Name("m"), subject, "", desc)
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got %v, want an error with %q", err, tt.wantErr)
			}
		})
	}
}
