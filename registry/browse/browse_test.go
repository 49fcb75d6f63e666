package browse_test

import (
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/browse"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// client returns a client and where it appends its warnings.
func client(t testing.TB, strict bool) (*registry.Client, *[]string) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv(remote.IdentityEnv, "")
	var warned []string
	c, err := registry.New(registry.Options{
		Connection: remote.Options{Strict: strict, Attempts: 2, Mirrors: []remote.Mirror{}, Keychain: rt.AnonymousKeychain()},
		Events: func(e registry.Event) {
			if e.Kind == registry.Warned {
				warned = append(warned, e.Err.Error())
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, &warned
}

// hosts are registries of several kinds, all empty.
func hosts(t testing.TB) map[string]string {
	t.Helper()
	list := map[string]string{
		"peer":             rt.New(t).Host(),
		"peer without API": func() string { p := rt.New(t); p.NoReferrers = true; return p.Host() }(),
	}
	for name, api := range map[string]bool{"olareg": true, "olareg without API": false} {
		conf := config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}}
		conf.API.Referrer.Enabled = &api
		conf.API.DeleteEnabled = new(bool)
		*conf.API.DeleteEnabled = true
		reg := olareg.New(conf)
		server := httptest.NewServer(reg)
		t.Cleanup(func() {
			server.Close()
			_ = reg.Close()
		})
		list[name] = strings.TrimPrefix(server.URL, "http://")
	}
	return list
}

func name(t testing.TB, s string) manifest.Name {
	t.Helper()
	n, err := manifest.ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// pushed pushes a model with an artifact, and one attached to that, under some tags.
func pushed(
	t testing.TB, c *registry.Client, host string, tags ...string,
) (d digest.Digest, one, two ocispec.Descriptor) {
	t.Helper()
	s := rt.NewStore(t)
	model, d := rt.PutModel(t, s, "m", 3000, 70)
	one = rt.Attach(t, s, d, "text/plain", "one")
	two = rt.Attach(t, s, one.Digest, "text/plain", "two")
	for _, tag := range tags {
		if _, err := c.Push(t.Context(), s, model, name(t, host+"/team/m:"+tag), registry.PushOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return d, one, two
}

func wantTags(t testing.TB, c *registry.Client, host string, want ...string) {
	t.Helper()
	got, err := browse.Tags(t.Context(), c, name(t, host+"/team/m"))
	if errors.Is(err, remote.ErrNotFound) { // with its last manifest the repository may go
		got, err = nil, nil
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("tags %q, %v, want %q", got, err, want)
	}
}

// wantGone checks that a repository has none of these.
func wantGone(t testing.TB, c *registry.Client, host string, refs ...string) {
	t.Helper()
	r, err := c.Repository(name(t, host+"/team/m"), remote.Pull)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs {
		if _, err := r.GetManifest(t.Context(), ref); !errors.Is(err, remote.ErrNotFound) {
			t.Errorf("%s: %v, want none", ref, err)
		}
	}
}

func TestInspect(t *testing.T) {
	c, warned := client(t, true)
	for registry, host := range hosts(t) {
		t.Run(registry, func(t *testing.T) {
			d, one, two := pushed(t, c, host, "v1")
			for _, ref := range []string{":v1", "@" + string(d)} {
				img, err := browse.Inspect(t.Context(), c, name(t, host+"/team/m"+ref))
				if err != nil {
					t.Fatal(err)
				}
				if img.Manifest.Digest != d || img.Unknown != nil || img.Format != manifest.FormatModelPack ||
					img.Model.Config.ModelType != "llama" || len(img.Model.Layers) != 2 || len(img.Config) == 0 {
					t.Errorf("%+v", img)
				}
				list, err := img.Referrers(t.Context())
				if err != nil || len(list) != 1 || list[0].Digest != one.Digest || len(list[0].Referrers) != 1 ||
					list[0].Referrers[0].Digest != two.Digest {
					t.Errorf("attached %+v, %v", list, err)
				}
			}
			if _, err := browse.Inspect(t.Context(), c, name(t, host+"/team/m:v2")); !errors.Is(err, remote.ErrNotFound) {
				t.Errorf("another tag: %v", err)
			}
		})
	}
	if len(*warned) > 0 {
		t.Errorf("warned %q", *warned)
	}
}

// A store and a registry describe an image in the same way.
func TestStored(t *testing.T) {
	s := rt.NewStore(t)
	model, d := rt.PutModel(t, s, "m", 3000)
	one := rt.Attach(t, s, d, "text/plain", "one")
	img, err := browse.Stored(t.Context(), s, model)
	if err != nil || img.Manifest.Digest != d || img.Unknown != nil || len(img.Model.Layers) != 1 {
		t.Fatalf("%+v, %v", img, err)
	}
	if list, err := img.Referrers(t.Context()); err != nil || len(list) != 1 || list[0].Digest != one.Digest {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := browse.Stored(t.Context(), s, name(t, "other")); !errors.Is(err, manifest.ErrNotFound) {
		t.Error(err)
	}
}

// What is no model image, or lacks its config, is described all the same.
func TestInspectOthers(t *testing.T) {
	p := rt.New(t)
	c, _ := client(t, true)
	index := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`
	p.PutManifest("m", "index", ocispec.MediaTypeImageIndex, []byte(index))
	p.PutManifest("m", "small", ocispec.MediaTypeImageManifest, []byte(rt.SmallManifest("x")))
	p.PutManifest("m", "not-json", ocispec.MediaTypeImageManifest, []byte("{"))
	for tag, want := range map[string]string{"index": "has no config", "small": "404 Not Found"} {
		img, err := browse.Inspect(t.Context(), c, p.Name("m:"+tag))
		if err != nil || img.Unknown == nil || img.Unreadable == nil || !strings.Contains(img.Unreadable.Error(), want) {
			t.Errorf("%s: %+v, %v", tag, img, err)
		}
	}
	if _, err := browse.Inspect(t.Context(), c, p.Name("m:not-json")); !errors.Is(err, manifest.ErrInvalidManifest) {
		t.Errorf("not JSON: %v", err)
	}

	// A config with other bytes is not used.
	d, _, _ := pushed(t, c, p.Host(), "v1")
	p.On("GET", rt.BlobRoute, rt.Flip(1))
	img, err := browse.Inspect(t.Context(), c, p.Name("team/m@"+string(d)))
	if err != nil || !errors.Is(img.Unreadable, remote.ErrDigest) || !errors.Is(img.Unknown, remote.ErrDigest) {
		t.Errorf("another config: %+v, %v", img, err)
	}
	p.On("GET", rt.ManifestRoute, rt.Flip(1))
	if _, err := browse.Inspect(t.Context(), c, p.Name("team/m:v1")); !errors.Is(err, remote.ErrDigest) {
		t.Errorf("another manifest: %v", err)
	}
}
