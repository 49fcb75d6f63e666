package registry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// total returns the size of all blobs of a model.
func total(t testing.TB, s *store.Store, name manifest.Name) (sum int64) {
	t.Helper()
	raw, err := s.ResolveRaw(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := manifest.Blobs(raw.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		sum += b.Size
	}
	return sum
}

// leftovers lists the files that unfinished transfers left in a store.
func leftovers(t testing.TB, s *store.Store) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.Root(), "ingest"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestPush(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 0, 1, 3000, 40*1000, 3*mib, 100)
	c := newClient(t)
	opts := PushOptions{ChunkSize: mib}
	got, err := c.Push(t.Context(), s, name, p.Name("deep/path/to/m:v1"), opts)
	if err != nil || got != want {
		t.Fatalf("pushed %s, %v, want %s", got, err, want)
	}
	p.Check("deep/path/to/m", "v1", want)
	if n := p.Count("PATCH", rt.UploadRoute); n != 3 {
		t.Errorf("%d chunks for a blob of three chunks", n)
	}
	received, _ := p.Traffic()
	if sum := total(t, s, name); received != sum {
		t.Errorf("%d bytes were sent of %d", received, sum)
	}
	if left := append(p.OpenSessions(), leftovers(t, s)...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	requests := len(p.Log())
	if got, err := c.Push(t.Context(), s, name, p.Name("deep/path/to/m:v1"), opts); err != nil || got != want {
		t.Errorf("again: %s, %v", got, err)
	}
	if n := len(p.Log()) - requests; n != 1+7 {
		t.Errorf("%d requests where the registry has the model, want one for it and each blob: %q", n, p.Log()[requests:])
	}
	if got, err := c.Push(t.Context(), s, name, p.Name("deep/path/to/m:v2"), opts); err != nil || got != want {
		t.Errorf("another tag: %s, %v", got, err)
	}
	p.Check("deep/path/to/m", "v2", want)
	if again, _ := p.Traffic(); again != received {
		t.Errorf("another tag sent %d bytes", again-received)
	}
}

func TestPushByDigest(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 10)
	other := digest.FromString("other")
	_, err := newClient(t).Push(t.Context(), s, name, p.Name("m@"+string(other)), PushOptions{})
	if !errors.Is(err, remote.ErrDigest) {
		t.Errorf("a name with another digest: %v", err)
	}
	got, err := newClient(t).Push(t.Context(), s, name, p.Name("m@"+string(want)), PushOptions{})
	if err != nil || got != want {
		t.Errorf("its own digest: %s, %v", got, err)
	}
	p.Check("m", string(want), want)
}

func TestPushRefusals(t *testing.T) {
	s := rt.NewStore(t)
	name, _ := rt.PutModel(t, s, "m", 10)
	local := name
	local.Path = "elsewhere"
	if _, err := newClient(t).Push(t.Context(), s, name, local, PushOptions{}); !errors.Is(err, remote.ErrNoHost) {
		t.Errorf("a local name: %v", err)
	}
	p := rt.New(t)
	_, err := newClient(t).Push(t.Context(), s, local, p.Name("m"), PushOptions{})
	if !errors.Is(err, manifest.ErrNotFound) {
		t.Errorf("no such model: %v", err)
	}
}

// TestPushListedTwice: a blob that two layers reference is uploaded once.
func TestPushListedTwice(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	d, n, err := s.PutBytes(t.Context(), rt.Noise(1, 5000))
	if err != nil {
		t.Fatal(err)
	}
	img := manifest.Image{Config: manifest.Config{ModelType: "llama"}, Layers: []manifest.Layer{
		{Kind: manifest.KindTensor, Name: "a", Digest: d, Size: n},
		{Kind: manifest.KindTensor, Name: "b", Digest: d, Size: n},
	}}
	name := manifest.Name{Path: "m", Tag: "latest"}
	want, err := s.Put(t.Context(), name, img)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newClient(t).Push(t.Context(), s, name, p.Name("m"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("m", "latest", want)
	if posts := p.Count("POST", rt.BeginRoute); posts != 2 { // and the config
		t.Errorf("%d uploads for two blobs", posts)
	}
}

// TestPushConcurrently: concurrent pushes of one model do not interfere.
func TestPushConcurrently(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 18*mib, 3000)
	var wait sync.WaitGroup
	for range 3 {
		c := newClient(t)
		wait.Go(func() {
			if _, err := c.Push(t.Context(), s, name, p.Name("m"), PushOptions{ChunkSize: 4 * mib}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	p.Check("m", "latest", want)
	if left := append(p.OpenSessions(), leftovers(t, s)...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestPushIndex: an index is pushed with those of its manifests that the store has.
func TestPushIndex(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, child := rt.PutModel(t, s, "m", 3000)
	raw, err := s.ResolveRaw(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	index := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[`+
		`{"mediaType":%q,"digest":%q,"size":%d}]}`,
		raw.Descriptor.MediaType, child, len(raw.Bytes))
	all := manifest.Name{Path: "all", Tag: "latest"}
	want, err := s.PutRaw(t.Context(), all, "application/vnd.oci.image.index.v1+json", []byte(index),
		store.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newClient(t).Push(t.Context(), s, all, p.Name("all"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("all", "latest", want)
	p.Check("all", string(child), child)
}

// TestPushFormat: a manifest that is encoded for the push has a config that the store lacks.
func TestPushFormat(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, stored := rt.PutModel(t, s, "m", 3000, 100)
	got, err := newClient(t).Push(t.Context(), s, name, p.Name("m"), PushOptions{Format: manifest.FormatOllama})
	if err != nil || got == stored {
		t.Fatalf("pushed %s, %v, the store has %s", got, err, stored)
	}
	p.Check("m", "latest", got)
	if m := string(p.Manifest("m", "latest")); !strings.Contains(m, "application/vnd.ollama.image.tensor") {
		t.Errorf("manifest %s", m)
	}
	if got, err = newClient(t).Push(t.Context(), s, name, p.Name("m"),
		PushOptions{Format: manifest.FormatModelPack}); err != nil || got != stored {
		t.Errorf("pushed %s, %v, want %s", got, err, stored)
	}
	if _, err = newClient(t).Push(t.Context(), s, name, p.Name("m"), PushOptions{Format: "tar"}); err == nil {
		t.Error("pushed in an unknown format")
	}
}
