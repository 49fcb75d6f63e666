package registry

import (
	"net/url"
	"sync"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/ingest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/opencontainers/go-digest"
)

// TestSessionScheme: a push with TLS does not resume a session that was opened without TLS.
func TestSessionScheme(t *testing.T) {
	plain, secure := rt.New(t), rt.NewUnstarted(t)
	secure.Server.Config.ErrorLog = rt.Quiet()
	secure.Server.StartTLS()
	var names sync.Map
	names.Store("registry.example:80", plain.Host())
	names.Store("registry.example:443", secure.Host())
	s := rt.NewStore(t)
	name, want := rt.PutModel(t, s, "model", 5000)
	dst, err := manifest.ParseName("registry.example/team/m:v1")
	if err != nil {
		t.Fatal(err)
	}
	push := func(change func(*Options)) error {
		c := newClient(t, func(o *Options) { o.Connection.Attempts = 1 }, change)
		resolveTo(c, nil, &names)
		_, err := c.Push(t.Context(), s, name, dst, PushOptions{ChunkSize: 1000})
		return err
	}
	plain.On("PATCH", rt.UploadRoute, rt.RefuseWith(403, "DENIED")).After(2)
	if err := push(func(o *Options) { o.Connection.PlainHTTP = true }); err == nil {
		t.Fatal("the push without TLS succeeded")
	}
	// The failed push may still have a request under way to plain.
	unwanted := rt.New(t)
	names.Store("registry.example:80", unwanted.Host())
	if err := push(func(o *Options) { o.Connection.Insecure = true }); err != nil {
		t.Fatal(err)
	}
	secure.Check("team/m", "v1", want)
	if log := unwanted.Log(); len(log) > 0 {
		t.Errorf("requests without TLS: %q", log)
	}
}

func TestSessionRecords(t *testing.T) {
	s := rt.NewStore(t)
	d := digest.FromString("blob")
	repo := func(scheme, addr string) string { return scheme + "://" + addr }
	for _, tt := range []struct {
		at         string
		begun, now string
		want       bool
	}{
		{"https://reg.example/up", repo("https", "reg.example"), repo("https", "reg.example"), true},
		{"https://cdn.example/up", repo("https", "reg.example"), repo("https", "reg.example"), true},
		{"http://reg.example/up", repo("http", "reg.example"), repo("http", "reg.example"), true},
		{"https://cdn.example/up", repo("http", "reg.example"), repo("http", "reg.example"), true},
		{"http://reg.example/up", repo("http", "reg.example"), repo("https", "reg.example"), false},
		{"https://reg.example/up", repo("http", "reg.example"), repo("https", "reg.example"), false},
		{"https://reg.example/up", repo("https", "reg.example"), repo("http", "reg.example"), false},
		// ingot itself writes no such record
		{"http://reg.example/up", repo("https", "reg.example"), repo("https", "reg.example"), false},
		{"https://reg.example/up", repo("https", "reg.example"), repo("https", "reg.example:5000"), false},
		{"ftp://reg.example/up", repo("http", "reg.example"), repo("http", "reg.example"), false},
	} {
		note, err := ingest.OpenSession(s, d)
		if err != nil {
			t.Fatal(err)
		}
		x := &session{note: note}
		u, err := url.Parse(tt.at)
		if err != nil {
			t.Fatal(err)
		}
		x.save(u, sessionRecord{Registry: tt.begun, Digest: d})
		if at, _ := x.load(tt.now); (at != nil) != tt.want {
			t.Errorf("%s, opened at %s: resumed %v at %s", tt.at, tt.begun, at, tt.now)
		}
		x.remove()
	}
}
