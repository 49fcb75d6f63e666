package registry

import (
	"sync"
	"testing"

	"github.com/ingotml/ingot/manifest"
	rt "github.com/ingotml/ingot/registry/registrytest"
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
