package registry

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ingotml/ingot/manifest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
)

func TestPushMounts(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	base, _ := rt.PutModel(t, s, "base", 3000, 5000)
	if _, err := newClient(t).Push(t.Context(), s, base, p.Name("team/base"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	tuned, want := rt.PutModel(t, s, "tuned", 3000, 5000, 7000)
	before, _ := p.Traffic()
	var mounted int
	c := newClient(t, func(o *Options) {
		o.Events = func(e Event) {
			if e.Kind == Mounted {
				mounted++
			}
		}
	})
	if _, err := c.Push(t.Context(), s, tuned, p.Name("other/tuned"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("other/tuned", "latest", want)
	after, _ := p.Traffic()
	if sent := after - before; mounted != 2 || sent >= 3000+5000 {
		t.Errorf("%d blobs were mounted and %d bytes sent, want 2 and the third blob", mounted, sent)
	}
	if open := p.OpenSessions(); len(open) > 0 {
		t.Errorf("uploads are left: %v", open)
	}

	// A source repository that lost its blobs, or that may not be read, does not fail the push.
	for d := range p.Repos["team/base"].Blobs {
		p.DropBlob("team/base", d)
	}
	third, want := rt.PutModel(t, s, "third", 3000, 5000, 7000, 8)
	p.On("POST", rt.BeginRoute, func(x *rt.Exchange) {
		if x.R.URL.Query().Get("from") == "other/tuned" {
			rt.RefuseWith(http.StatusForbidden, "DENIED")(x)
			return
		}
		x.Handle()
	})
	if _, err := c.Push(t.Context(), s, third, p.Name("third"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("third", "latest", want)
	if open := p.OpenSessions(); len(open) > 0 {
		t.Errorf("uploads are left: %v", open)
	}
}

func TestPushMountsAnonymously(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	p.AnonymousMount = true
	name, want := rt.PutModel(t, s, "m", 3000, 5000)
	p.Serve(s, name, "somebody/else", "x")
	if _, err := newClient(t).Push(t.Context(), s, name, p.Name("mine"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("mine", "latest", want)
	if received, _ := p.Traffic(); received != 0 {
		t.Errorf("%d bytes were sent", received)
	}
}

// TestPushMonolithic: registries that are known to take no chunks get each blob in a single request.
func TestPushMonolithic(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 3*mib)
	c := newClient(t)
	repositoryAt(t, c, p.Host()+"/m", remote.Push).Learn(func(a *remote.Abilities) { a.NoChunks = true })
	p.Once("PUT", rt.UploadRoute, rt.CutRequest(2*mib, true)).After(1)
	if _, err := c.Push(t.Context(), s, name, p.Name("m"), PushOptions{ChunkSize: mib}); err != nil {
		t.Fatal(err)
	}
	p.Check("m", "latest", want)
	if n := p.Count("PATCH", rt.UploadRoute); n != 0 {
		t.Errorf("%d chunks were sent", n)
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// newOlareg starts olareg, a registry that passes the conformance tests of the specification.
func newOlareg(t testing.TB) (host string) {
	t.Helper()
	reg := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	server := httptest.NewServer(reg)
	t.Cleanup(func() {
		server.Close()
		_ = reg.Close()
	})
	return server.Listener.Addr().String()
}

func TestPushToOlareg(t *testing.T) {
	host, s := newOlareg(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 0, 1, 5*mib, 70000)
	c := newClient(t)
	for _, path := range []string{"/m:v1", "/m:v1", "/m:v2", "/a/b/c/d/m:v1"} {
		dst, err := manifest.ParseName(host + path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Push(t.Context(), s, name, dst, PushOptions{ChunkSize: mib}); err != nil || got != want {
			t.Fatalf("%s: %s, %v, want %s", dst, got, err, want)
		}
		r, err := c.conn.Repository(dst, remote.Pull)
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.GetManifest(t.Context(), dst.Tag)
		if err != nil || m.Digest != want {
			t.Errorf("%s: %v, %v", dst, m, err)
		}
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}
