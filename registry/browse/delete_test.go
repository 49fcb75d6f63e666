package browse_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/browse"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func plan(t testing.TB, c *registry.Client, n string) *browse.Deletion {
	t.Helper()
	d, err := browse.PlanDeletion(t.Context(), c, name(t, n))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// keepTags deletes a manifest, but not its tags.
func keepTags(x *rt.Exchange) {
	x.Mu.Lock()
	delete(x.InRepo(x.Repo).Manifests, x.Ref)
	x.Mu.Unlock()
	x.W.WriteHeader(http.StatusAccepted)
}

func TestDelete(t *testing.T) {
	c, warned := client(t, true)
	for registry, host := range hosts(t) {
		t.Run(registry, func(t *testing.T) {
			d, one, two := pushed(t, c, host, "v1", "v2", "v3")
			digests := []string{string(d), string(one.Digest), string(two.Digest), remote.ReferrersTag(d),
				remote.ReferrersTag(one.Digest)}

			// One of three tags.
			p := plan(t, c, host+"/team/m:v1")
			if p.Whole || p.TagsUnknown != nil || !slices.Equal(p.Tags, []string{"v2", "v3"}) || len(p.Attached) > 0 {
				t.Errorf("%+v", p)
			}
			if err := p.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantGone(t, c, host, "v1")
			if img, err := browse.Inspect(t.Context(), c, name(t, host+"/team/m:v2")); err != nil || img.Manifest.Digest != d {
				t.Errorf("v2: %+v, %v", img, err)
			}

			// The manifest with all tags.
			p = plan(t, c, host+"/team/m@"+string(d))
			if !p.Whole || !slices.Equal(p.Tags, []string{"v2", "v3"}) || len(p.Attached) != 2 || p.Size < 3070 {
				t.Errorf("%+v", p)
			}
			if err := p.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantTags(t, c, host)
			wantGone(t, c, host, digests...)

			// The last tag takes the manifest along.
			pushed(t, c, host, "v1")
			if p = plan(t, c, host+"/team/m:v1"); !p.Whole || len(p.Tags) > 0 || len(p.Attached) != 2 {
				t.Errorf("%+v", p)
			}
			if err := p.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantTags(t, c, host)
			wantGone(t, c, host, digests...)

			// An artifact leaves the list of its subject.
			pushed(t, c, host, "v1")
			if err := plan(t, c, host+"/team/m@"+string(one.Digest)).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantGone(t, c, host, string(one.Digest), string(two.Digest))
			if list, err := c.Referrers(t.Context(), name(t, host+"/team/m"), d, ""); err != nil || len(list) > 0 {
				t.Errorf("attached %+v, %v", list, err)
			}
			if _, err := browse.PlanDeletion(t.Context(), c, name(t, host+"/team/m:v9")); !errors.Is(err, remote.ErrNotFound) {
				t.Errorf("another tag: %v", err)
			}
		})
	}
	if len(*warned) > 0 {
		t.Errorf("warned %q", *warned)
	}
}

// Registries that delete less, or otherwise.
func TestDeleteRefused(t *testing.T) {
	byTag := func(do rt.Action) func(*rt.Peer) {
		return func(p *rt.Peer) {
			p.On("DELETE", rt.ManifestRoute, func(x *rt.Exchange) {
				if strings.Contains(x.Ref, ":") {
					x.Handle()
					return
				}
				do(x)
			})
		}
	}
	byDigest := func(do rt.Action) func(*rt.Peer) {
		return func(p *rt.Peer) {
			p.On("DELETE", rt.ManifestRoute, func(x *rt.Exchange) {
				if strings.Contains(x.Ref, ":") {
					do(x)
					return
				}
				x.Handle()
			})
		}
	}
	never := func(do rt.Action) func(*rt.Peer) {
		return func(p *rt.Peer) { p.On("DELETE", rt.AnyRoute, do) }
	}
	for _, c := range []struct {
		name string
		tags []string // pushed; v1 is deleted
		set  func(*rt.Peer)
		want error  // nil: success, unless text is set
		text string // of the error, or of the only warning
	}{
		{"no tags, but manifests", []string{"v1"}, byTag(rt.RefuseWith(405, "UNSUPPORTED")), nil, ""},
		{"no tags", []string{"v1", "v2"}, byTag(rt.RefuseWith(405, "UNSUPPORTED")), remote.ErrUnsupported, "@sha256:"},
		{"no tags, 400", []string{"v1", "v2"}, byTag(rt.RefuseWith(400, "DIGEST_INVALID")), remote.ErrUnsupported,
			"tagged v2"},
		{"no tags, 404", []string{"v1", "v2"}, byTag(rt.RefuseWith(404, "NOT_FOUND")), remote.ErrUnsupported, "tagged v2"},
		{"no manifests, but tags", []string{"v1"}, byDigest(rt.RefuseWith(405, "UNSUPPORTED")), nil, ""},
		{"tags keep the manifest", []string{"v1"}, byDigest(keepTags), nil, ""},
		{"tags keep the manifest for good", []string{"v1"}, func(p *rt.Peer) {
			p.On("DELETE", rt.ManifestRoute, func(x *rt.Exchange) {
				if strings.Contains(x.Ref, ":") {
					keepTags(x)
					return
				}
				x.Fail(405, "UNSUPPORTED")
			})
		}, browse.ErrNoDeletion, "the tag v1 keeps"},
		{"nothing, 405", []string{"v1"}, never(rt.RefuseWith(405, "UNSUPPORTED")), browse.ErrNoDeletion, "405"},
		{"nothing, two tags", []string{"v1", "v2"}, never(rt.RefuseWith(405, "UNSUPPORTED")), browse.ErrNoDeletion, "405"},
		{"nothing, 404", []string{"v1"}, never(rt.RefuseWith(404, "NOT_FOUND")), browse.ErrNoDeletion, "404"},
		{"nothing, 501", []string{"v1"}, never(rt.Respond(501)), browse.ErrNoDeletion, "501"},
		{"denied", []string{"v1"}, never(rt.RefuseWith(403, "DENIED")), remote.ErrUnauthorized, "DENIED"},
		{"no credentials", []string{"v1"}, never(rt.Respond(401, "WWW-Authenticate", `Basic realm="x"`)),
			remote.ErrUnauthorized, "requires credentials"},
		{"locked", []string{"v1"}, never(rt.RefuseWith(409, "CONFLICT")), nil, "409"},
		{"unavailable", []string{"v1"}, never(rt.Respond(503)), nil, "503"},
		{"unavailable once", []string{"v1"}, func(p *rt.Peer) { p.Once("DELETE", rt.AnyRoute, rt.Respond(503)) }, nil, ""},
		{"tags cannot be listed", []string{"v1", "v2"}, func(p *rt.Peer) {
			p.On("GET", rt.TagsRoute, rt.RefuseWith(403, "DENIED"))
		}, nil, ""},
		{"tags cannot be listed or deleted", []string{"v1", "v2"}, func(p *rt.Peer) {
			p.On("GET", rt.TagsRoute, rt.RefuseWith(403, "DENIED"))
			byTag(rt.RefuseWith(405, "UNSUPPORTED"))(p)
		}, remote.ErrUnsupported, "may have other tags"},
		{"a tag takes all along", []string{"v1", "v2"}, byTag(func(x *rt.Exchange) {
			x.Ref = string(digest.FromBytes(x.Manifest(x.Repo, x.Ref)))
			x.Handle()
		}), nil, "the registry deleted the manifest with its other tags: v2"},
		{"artifacts cannot be listed", []string{"v1"}, func(p *rt.Peer) { p.On("", rt.ReferrersRoute, rt.Respond(500)) }, nil,
			"warning: what is attached"},
		{"artifacts cannot be deleted", []string{"v1"}, func(p *rt.Peer) {
			p.On("DELETE", rt.ManifestRoute, func(x *rt.Exchange) {
				if x.N > 0 {
					rt.RefuseWith(405, "UNSUPPORTED")(x)
					return
				}
				x.Handle()
			})
		}, nil, "warning: 127.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := rt.New(t)
			cl, warned := client(t, false)
			d, _, _ := pushed(t, cl, p.Host(), c.tags...)
			c.set(p)
			deletion, err := browse.PlanDeletion(t.Context(), cl, name(t, p.Host()+"/team/m:v1"))
			if err == nil {
				err = deletion.Run(t.Context())
			}
			text, isWarning := strings.CutPrefix(c.text, "warning: ")
			switch {
			case isWarning || c.text == "":
				if err != nil {
					t.Fatal(err)
				}
				p.Reset()
				if p.Manifest("team/m", "v1") != nil {
					t.Error("the tag is there")
				}
				for _, other := range c.tags[1:] {
					p.Check("team/m", other, d)
				}
				if got := strings.Join(*warned, "\n"); isWarning != (len(*warned) == 1) || !strings.Contains(got, text) {
					t.Errorf("warned %q, want %q", got, text)
				}
			case err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), text) ||
				strings.Contains(err.Error(), "\n"):
				t.Errorf("%v, want %v with %q", err, c.want, text)
			case p.Manifest("team/m", "v1") == nil && !strings.Contains(text, "deleted the manifest"):
				t.Error("it is deleted")
			}
		})
	}
}

// A tag that was moved after the question stays.
func TestDeleteMoved(t *testing.T) {
	p := rt.New(t)
	c, _ := client(t, false)
	pushed(t, c, p.Host(), "v1", "v2")
	d := plan(t, c, p.Host()+"/team/m:v1")
	other := []byte(rt.SmallManifest("new"))
	p.PutManifest("team/m", "v1", ocispec.MediaTypeImageManifest, other)
	if err := d.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "by now") {
		t.Error(err)
	}
	if !bytes.Equal(p.Manifest("team/m", "v1"), other) {
		t.Error("the new image is gone")
	}
}

// An artifact with a tag of its own stays.
func TestDeleteKeepsTagged(t *testing.T) {
	p := rt.New(t)
	c, _ := client(t, false)
	d, one, two := pushed(t, c, p.Host(), "v1")
	p.PutManifest("team/m", "report", ocispec.MediaTypeImageManifest, p.Manifest("team/m", string(one.Digest)))
	if err := plan(t, c, p.Host()+"/team/m:v1").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.Manifest("team/m", "report") == nil || p.Manifest("team/m", string(d)) != nil ||
		p.Manifest("team/m", string(two.Digest)) != nil {
		t.Error("the tagged artifact is gone, or others are there")
	}
}

// A canceled command ends at once, and is no warning.
func TestCanceled(t *testing.T) {
	p := rt.New(t)
	c, warned := client(t, false)
	pushed(t, c, p.Host(), "v1")
	for _, route := range []rt.Route{rt.ManifestRoute, rt.TagsRoute, rt.ReferrersRoute} {
		ctx, cancel := context.WithCancel(t.Context())
		p.Reset()
		p.On("", route, func(x *rt.Exchange) {
			cancel()
			rt.Slowly(time.Second)(x)
		})
		if _, err := browse.PlanDeletion(ctx, c, name(t, p.Host()+"/team/m:v1")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", route, err)
		}
	}
	if len(*warned) > 0 || p.Count(http.MethodDelete, rt.AnyRoute) > 0 {
		t.Errorf("warned %q, or something was deleted", *warned)
	}
}
