package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const reportType = "application/vnd.example.report"

// wantReferrers compares the referrers that a repository lists, in any order.
func wantReferrers(t testing.TB, c *Client, name manifest.Name, subject digest.Digest, artifactType string,
	want ...ocispec.Descriptor) {
	t.Helper()
	got, err := c.Referrers(t.Context(), name, subject, artifactType)
	if err != nil {
		t.Fatal(err)
	}
	digests := func(list []ocispec.Descriptor) []string {
		var all []string
		for _, d := range list {
			all = append(all, fmt.Sprintf("%s %s %d", d.Digest, d.ArtifactType, d.Size))
		}
		slices.Sort(all)
		return all
	}
	if g, w := digests(got), digests(want); !slices.Equal(g, w) {
		t.Errorf("listed\n%s\nwant\n%s", strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
}

// olaregHost starts olareg, which conforms to the specification. change edits its configuration, and around wraps its
// handler.
func olaregHost(t testing.TB, change func(*config.Config), around func(http.Handler) http.Handler) string {
	t.Helper()
	conf := config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}}
	if change != nil {
		change(&conf)
	}
	registry := olareg.New(conf)
	var handler http.Handler = registry
	if around != nil {
		handler = around(registry)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Close()
		registry.Close()
	})
	return strings.TrimPrefix(server.URL, "http://")
}

func mustName(t testing.TB, s string) manifest.Name {
	t.Helper()
	n, err := manifest.ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// withoutAPI disables the referrers API, as in older registries.
func withoutAPI(c *config.Config) { c.API.Referrer.Enabled = new(bool) }

func TestReferrersRoundTrip(t *testing.T) {
	hosts := map[string]string{
		"olareg":             olaregHost(t, nil, nil),
		"olareg without API": olaregHost(t, withoutAPI, nil),
		"olareg in pages":    olaregHost(t, func(c *config.Config) { c.API.Referrer.Limit = 700 }, nil),
		"peer":               rt.New(t).Host(),
		"peer without API":   func() string { p := rt.New(t); p.NoReferrers = true; return p.Host() }(),
	}
	for registry, host := range hosts {
		t.Run(registry, func(t *testing.T) {
			s, c := rt.NewStore(t), newClient(t)
			_, subject := rt.PutModel(t, s, "model", 100)
			name := mustName(t, host+"/deep/er/model")
			wantReferrers(t, c, name, subject, "")
			one, two := rt.Attach(t, s, subject, reportType, "one"), rt.Attach(t, s, subject, "text/plain", "two")
			below := rt.Attach(t, s, one.Digest, reportType, "about one")
			n, err := c.PushReferrers(t.Context(), s, name, subject)
			if err != nil || n != 3 {
				t.Fatalf("pushed %d, %v, want 3", n, err)
			}
			wantReferrers(t, c, name, subject, "", one, two)
			wantReferrers(t, c, name, subject, reportType, one)
			wantReferrers(t, c, name, subject, "application/none")
			wantReferrers(t, c, name, one.Digest, "", below)

			three := rt.Attach(t, s, subject, reportType, "three")
			if n, err := c.PushReferrers(t.Context(), s, name, subject); err != nil || n != 4 {
				t.Fatalf("pushed %d, %v, want 4", n, err)
			}
			wantReferrers(t, c, name, subject, "", one, two, three)
			wantReferrers(t, c, mustName(t, host+"/another"), subject, "")
		})
	}
}

func referrerOf(text string) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: reportType,
		Digest: digest.FromString(text), Size: int64(len(text))}
}

func TestResolve(t *testing.T) {
	p := rt.New(t)
	s, c := rt.NewStore(t), newClient(t)
	name, d := rt.PutModel(t, s, "model", 10)
	p.Serve(s, name, "m", "v1")
	for _, path := range []string{"m:v1", "m@" + string(d)} {
		m, err := c.Resolve(t.Context(), p.Name(path))
		if err != nil || m.Digest != d || m.MediaType != ocispec.MediaTypeImageManifest {
			t.Errorf("%s: %+v, %v, want %s", path, m, err, d)
		}
	}
	if _, err := c.Resolve(t.Context(), p.Name("m:v2")); !errors.Is(err, remote.ErrNotFound) {
		t.Errorf("another tag: %v, want ErrNotFound", err)
	}
	if _, err := c.Resolve(t.Context(), name); !errors.Is(err, remote.ErrNoHost) {
		t.Errorf("a local name: %v, want ErrNoHost", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Resolve(ctx, p.Name("m:v1")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestPushReferrersBeforeTheTag: referrers are pushed before the tag, so a client that sees the tag finds the
// signature. A push of a model that the registry has adds new referrers.
func TestPushReferrersBeforeTheTag(t *testing.T) {
	p := rt.New(t)
	s := rt.NewStore(t)
	name, d := rt.PutModel(t, s, "model", 10)
	var done []digest.Digest
	c := newClient(t, func(o *Options) {
		o.Events = func(e Event) {
			if e.Kind == Done {
				done = append(done, e.Digest)
			}
		}
	})
	one := rt.Attach(t, s, d, reportType, "one")
	p.On(http.MethodPut, rt.ManifestRoute, func(x *rt.Exchange) {
		if x.Manifest("m", string(one.Digest)) == nil {
			t.Error("the tag was pushed before the report")
		}
		x.Handle()
	}).Of("v1")
	if _, err := c.Push(t.Context(), s, name, p.Name("m:v1"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("m", "v1", d)
	wantReferrers(t, c, p.Name("m"), d, "", one)
	if !slices.Contains(done, digest.FromString("one")) {
		t.Errorf("no event of the report's blob among %v", done)
	}

	two := rt.Attach(t, s, d, reportType, "two")
	if _, err := c.Push(t.Context(), s, name, p.Name("m:v1"), PushOptions{NoReferrers: true}); err != nil {
		t.Fatal(err)
	}
	wantReferrers(t, c, p.Name("m"), d, "", one)
	done = nil
	if _, err := c.Push(t.Context(), s, name, p.Name("m:v1"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	wantReferrers(t, c, p.Name("m"), d, "", one, two)
	if !slices.Equal(done, []digest.Digest{digest.FromString("two")}) {
		t.Errorf("sent again: %v", done)
	}
}
