package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/manifest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestPull(t *testing.T) {
	p := rt.New(t)
	img := serve(t, p, testFiles)
	s := newEmptyStore(t)
	c := newPullClient(t)
	r, err := c.Pull(t.Context(), s, img.name, PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	img.checkWhole(t, s)
	var size int64
	for _, b := range img.blobs {
		size += int64(len(b))
	}
	size -= int64(len(testFiles["config.json"]))
	if r.Digest != img.digest || r.Name != img.name || r.Bytes != size || r.Saved != 0 || r.Partial != 0 {
		t.Errorf("%+v, want %d bytes", r, size)
	}
	if _, served := p.Traffic(); served != size {
		t.Errorf("%d bytes were sent, want %d", served, size)
	}

	// A second pull makes one request and transfers nothing.
	before := len(p.Log())
	if r, err = c.Pull(t.Context(), s, img.name, PullOptions{}); err != nil || r.Bytes != 0 || r.Saved != size {
		t.Errorf("again: %+v, %v", r, err)
	}
	if requests := p.Log()[before:]; len(requests) != 1 || !strings.HasPrefix(requests[0], "HEAD manifest ") {
		t.Errorf("again: %q", requests)
	}
	img.checkWhole(t, s)

	// A pull of a new version transfers only new blobs and replaces the name.
	files := map[string][]byte{"config.json": testFiles["config.json"],
		"model-a.safetensors": testFiles["model-a.safetensors"], "new": []byte("new")}
	img2 := serve(t, p, files)
	if r, err = c.Pull(t.Context(), s, img.name, PullOptions{}); err != nil || r.Bytes != 3 || r.Digest != img2.digest {
		t.Errorf("a new version: %+v, %v", r, err)
	}
	// The old version can still be pulled by digest, and gets its own tag.
	name := img.name
	name.Tag, name.Digest = "", img.digest
	if r, err = c.Pull(t.Context(), s, name, PullOptions{}); err != nil || r.Bytes != 0 ||
		r.Name.Tag != img.digest.Encoded()[:12] {
		t.Errorf("by digest: %+v, %v", r, err)
	}
	if r, err = c.Pull(t.Context(), s, name, PullOptions{}); err != nil || r.Name.Tag != img.digest.Encoded()[:12] {
		t.Errorf("by digest again: %+v, %v", r, err)
	}
}

// TestPullResumes: a pull resumes an interrupted one.
func TestPullResumes(t *testing.T) {
	p := rt.New(t)
	img := serve(t, p, testFiles)
	s := newEmptyStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var moved int64
	c := newPullClient(t, func(o *Options) {
		o.Events = func(e Event) {
			if e.Kind == Moved && e.Total == 1_000_000 && e.Bytes > 450_000 {
				moved = max(moved, e.Bytes)
				cancel()
			}
		}
	})
	if _, err := c.Pull(ctx, s, img.name, PullOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	img.checkAbsent(t, s)
	_, before := p.Traffic()
	r, err := newPullClient(t).Pull(t.Context(), s, img.name, PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	img.checkWhole(t, s)
	var size int64
	for d := range slices.Values(img.blobs) {
		size += int64(len(d))
	}
	size -= int64(len(testFiles["config.json"])) // stored with the manifest
	// The peer may also have sent bytes of the first pull that nobody read.
	if _, after := p.Traffic(); r.Saved < moved || r.Bytes+r.Saved != size || r.Bytes > after-before {
		t.Errorf("%+v of %d, %d had moved, then %d", r, size, moved, after-before)
	}
}

// TestPullConcurrently: concurrent pulls of one image fetch each blob once.
func TestPullConcurrently(t *testing.T) {
	p := rt.New(t)
	img := serve(t, p, testFiles)
	s := newEmptyStore(t)
	var g sync.WaitGroup
	for range 4 {
		c := newPullClient(t)
		g.Go(func() {
			if _, err := c.Pull(t.Context(), s, img.name, PullOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	img.checkWhole(t, s)
	var size int64
	for d := range slices.Values(img.blobs) {
		size += int64(len(d))
	}
	size -= int64(len(testFiles["config.json"]))
	if _, served := p.Traffic(); served != size {
		t.Errorf("%d bytes were sent for %d", served, size)
	}
}

func TestPullPartial(t *testing.T) {
	p := rt.New(t)
	img := serve(t, p, testFiles)
	c := newPullClient(t)
	for _, test := range []struct {
		opts PullOptions
		want int // blobs
	}{
		{PullOptions{NoDraft: true}, 7},
		{PullOptions{Only: []string{"*.json"}}, 4}, // patterns also match base names
		{PullOptions{Only: []string{"*.json"}, NoDraft: true}, 3},
		{PullOptions{Only: []string{"model-?.safetensors", "empty.txt"}}, 5},
		{PullOptions{Only: []string{"*", "*/*"}}, 9},
	} {
		s := newEmptyStore(t)
		r, err := c.Pull(t.Context(), s, img.name, test.opts)
		if err != nil {
			t.Error(test.opts, err)
			continue
		}
		got := len(listing(t, s, "blobs/sha256")) - 1 // for the manifest
		if got != test.want || r.Partial != 9-got {
			t.Errorf("%v: %d blobs, want %d; %d absent", test.opts, got, test.want, r.Partial)
		}
		if e, err := s.ResolveRaw(t.Context(), img.name); err != nil ||
			(r.Partial > 0) != (e.Descriptor.Annotations["org.ingotml.partial"] != "") {
			t.Errorf("%v: %v, %v", test.opts, e.Descriptor.Annotations, err)
		}
		if r, err = c.Pull(t.Context(), s, img.name, PullOptions{}); err != nil || r.Partial != 0 {
			t.Errorf("%v: completing it: %+v, %v", test.opts, r, err)
		}
		img.checkWhole(t, s)
		if e, err := s.ResolveRaw(t.Context(), img.name); err != nil ||
			e.Descriptor.Annotations["org.ingotml.partial"] != "" {
			t.Errorf("%v: still partial: %v", test.opts, err)
		}
	}
	s := newEmptyStore(t)
	if _, err := c.Pull(t.Context(), s, img.name, PullOptions{Only: []string{"*.gguf"}}); err == nil ||
		!strings.Contains(err.Error(), "*.gguf") {
		t.Errorf("nothing matches: %v", err)
	}
	if _, err := c.Pull(t.Context(), s, img.name, PullOptions{Only: []string{"[a"}}); err == nil {
		t.Error("a broken pattern")
	}
	img.checkAbsent(t, s)
}

// TestSelectLayers: layers are selected by the names that each encoding gives them.
func TestSelectLayers(t *testing.T) {
	layer := func(n int, rest string) string {
		return fmt.Sprintf(`{"digest":%q,"size":%d%s}`, digest.FromString(fmt.Sprint(n)), n, rest)
	}
	m := []byte(`{"config":` + layer(1, "") + `,"layers":[` + strings.Join([]string{
		layer(2, `,"name":"model.norm.weight"`), // Ollama's encoding
		layer(3, `,"name":"draft.norm.weight"`),
		layer(4, `,"annotations":{"org.cncf.model.filepath":"model-draft.norm.weight.safetensors"}`), // other tools' encoding
		layer(5, `,"annotations":{"org.ingotml.tensor":"draft.norm.weight"}`),
		layer(6, `,"annotations":{"org.opencontainers.image.title":"docs/README.md"}`),
		layer(7, ""),
	}, ",") + `]}`)
	for _, test := range []struct {
		opts PullOptions
		want []int64 // sizes
	}{
		{PullOptions{}, []int64{1, 2, 3, 4, 5, 6, 7}},
		{PullOptions{NoDraft: true}, []int64{1, 2, 6, 7}},
		{PullOptions{Only: []string{"*.norm.weight"}}, []int64{1, 2, 3, 5}},
		{PullOptions{Only: []string{"README*", "model.*"}, NoDraft: true}, []int64{1, 2, 6}},
	} {
		wanted, skipped, err := selectLayers(m, test.opts)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, b := range wanted {
			got = append(got, b.Size)
		}
		if !slices.Equal(got, test.want) || len(skipped) != 7-len(got) {
			t.Errorf("%+v: %v and %d others, want %v", test.opts, got, len(skipped), test.want)
		}
	}
}

func TestPullIndex(t *testing.T) {
	p := rt.New(t)
	img := serve(t, p, testFiles)
	other := p.PutManifest("team/model", "", ocispec.MediaTypeImageManifest,
		fmt.Appendf(nil,
			`{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":2},`+
				`"layers":[{"mediaType":"application/octet-stream","digest":%[1]q,"size":2,"annotations":`+
				`{"org.opencontainers.image.title":"other.gguf"}}]}`, digest.FromString("{}")))
	index := func(digests ...digest.Digest) {
		var list []string
		for _, d := range digests {
			list = append(list, fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d}`,
				ocispec.MediaTypeImageManifest, d, len(p.Manifest("team/model", string(d)))))
		}
		list = append(list, fmt.Sprintf(`{"digest":%q,"annotations":{"vnd.docker.reference.type":"attestation-manifest"}}`,
			digest.FromString("absent")))
		p.PutManifest("team/model", "latest", ocispec.MediaTypeImageIndex,
			fmt.Appendf(nil, `{"schemaVersion":2,"manifests":[%s]}`, strings.Join(list, ",")))
	}
	index(img.digest)
	s := newEmptyStore(t)
	if r, err := newPullClient(t).Pull(t.Context(), s, img.name, PullOptions{}); err != nil || r.Digest != img.digest {
		t.Errorf("%+v, %v", r, err)
	}
	img.checkWhole(t, s)
	index(img.digest, other)
	_, err := newPullClient(t).Pull(t.Context(), newEmptyStore(t), img.name, PullOptions{})
	if err == nil || !strings.Contains(err.Error(), "@"+string(img.digest)) ||
		!strings.Contains(err.Error(), "@"+string(other)) {
		t.Errorf("two: %v", err)
	}
	index()
	_, err = newPullClient(t).Pull(t.Context(), newEmptyStore(t), img.name, PullOptions{})
	if !errors.Is(err, manifest.ErrUnknownManifest) {
		t.Errorf("none: %v", err)
	}
}

// TestPullVerify: no blob is fetched if the caller refuses the manifest.
func TestPullVerify(t *testing.T) {
	p := rt.New(t)
	img := serve(t, p, testFiles)
	s := newEmptyStore(t)
	refused := errors.New("not signed")
	_, err := newPullClient(t).Pull(t.Context(), s, img.name,
		PullOptions{Verify: func(_ context.Context, d digest.Digest) error {
			if d != img.digest {
				t.Errorf("Verify got %s", d)
			}
			return refused
		}})
	if !errors.Is(err, refused) || p.Count("GET", rt.BlobRoute) > 0 {
		t.Errorf("%v, %d blobs", err, p.Count("GET", rt.BlobRoute))
	}
	img.checkAbsent(t, s)
}

func TestFetchBlob(t *testing.T) {
	p := rt.New(t)
	img := serve(t, p, testFiles)
	s := newEmptyStore(t)
	for kind, b := range map[string][]byte{"application/vnd.example.file": testFiles["model-a.safetensors"],
		ocispec.MediaTypeImageManifest: img.bytes} {
		desc := ocispec.Descriptor{MediaType: kind, Digest: digest.FromBytes(b), Size: int64(len(b))}
		if err := newPullClient(t).FetchBlob(t.Context(), s, img.name, desc); err != nil {
			t.Fatal(err)
		}
		if got, err := s.ReadBlob(desc.Digest, 1<<30); err != nil || !bytes.Equal(got, b) {
			t.Error(err)
		}
	}
}
