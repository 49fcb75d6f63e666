package registry

import (
	"context"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	rt "github.com/ingotml/ingot/registry/registrytest"
)

// A pull that waits for a registry keeps no collection and no repair out, whatever it waits for. They spare what it has
// fetched, parts included, and remove it when the pull is given up.
func TestPruneWhilePulling(t *testing.T) {
	for name, route := range map[string]rt.Route{"for the manifest": rt.ManifestRoute, "for a blob": rt.BlobRoute} {
		t.Run(name, func(t *testing.T) {
			p, from, s := rt.New(t), rt.NewStore(t), rt.NewStore(t)
			model, _ := rt.PutModel(t, from, "m", 100, 200, 300)
			d := p.Serve(from, model, "m", "latest")
			waits, goesOn := make(chan struct{}, 10), make(chan struct{})
			rule := p.On("GET", route, func(x *rt.Exchange) {
				waits <- struct{}{}
				<-goesOn
				x.Handle()
			})
			if route == rt.BlobRoute {
				rule.After(2) // others are there then, or on the way
			}
			garbage, _, err := s.PutBytes(t.Context(), []byte("garbage"))
			if err != nil {
				t.Fatal(err)
			}
			store.Waits(time.Second, time.Minute)(s)
			pulled := make(chan error, 1)
			go func() {
				_, err := newPullClient(t).Pull(context.WithoutCancel(t.Context()), s, p.Name("m"), PullOptions{})
				pulled <- err
			}()
			<-waits
			for _, o := range []collect.PruneOptions{{}, {Unfinished: true}} {
				if _, err := collect.Prune(t.Context(), s, o); err != nil {
					t.Errorf("prune: %v", err)
				}
			}
			if s.HasBlob(garbage, 7) {
				t.Error("the garbage is still there")
			}
			if r, err := fsck.Run(t.Context(), s, fsck.Options{Repair: true}); err != nil || !r.OK() || len(r.Problems) > 0 {
				t.Errorf("repair: %+v, %v", r.Problems, err)
			}
			close(goesOn)
			if err := <-pulled; err != nil {
				t.Fatal(err)
			}
			entry, err := s.ReadEntry(p.Name("m"), d)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.CheckPresent(entry, true); err != nil {
				t.Error(err)
			}
			if fetched := p.Count("GET", rt.BlobRoute); fetched != len(entry.Image.Layers)+1 {
				t.Errorf("%d requests for blobs", fetched)
			}
		})
	}
}
