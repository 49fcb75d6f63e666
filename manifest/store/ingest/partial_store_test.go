package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

func TestPartialIsFetchedOnce(t *testing.T) {
	s := storetest.NewStore(t)
	b := longText(1000)
	p := openPartial(t, s, b)
	waits := make(chan struct{})
	second := make(chan error)
	go func() {
		_, err := ingest.OpenPartial(t.Context(), s, digest.FromBytes(b), 1000, func() { close(waits) })
		second <- err
	}()
	<-waits
	writeAt(t, p, b, 0, 1000)
	if err := p.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, manifest.ErrHave) {
		t.Errorf("the second got %v", err)
	}
	wantBlob(t, s, b)

	// If the holder gives up, the waiting process resumes from what it wrote.
	b = longText(2000)
	p = openPartial(t, s, b)
	writeAt(t, p, b, 0, 500)
	got := make(chan int64)
	waits = make(chan struct{})
	go func() {
		q, err := ingest.OpenPartial(t.Context(), s, digest.FromBytes(b), 2000, func() { close(waits) })
		if err != nil {
			t.Error(err)
			got <- -1
			return
		}
		defer q.Close()
		got <- q.Have()
	}()
	<-waits
	p.Close()
	if n := <-got; n != 500 {
		t.Errorf("the second found %d bytes", n)
	}

	p = openPartial(t, s, b)
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := ingest.OpenPartial(ctx, s, digest.FromBytes(b), 2000, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a cancelled wait: %v", err)
	}
}

func TestPullingKeepsBlobs(t *testing.T) {
	s := storetest.NewStore(t)
	store.Clock(time.Now)(s)
	layer := storetest.PutBlob(t, s, "a", "fetched already")
	config, _, err := s.PutBytes(t.Context(), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	manifestBytes := fmt.Appendf(nil, `{"config":{"digest":%q,"size":2},"layers":[{"digest":%q,"size":%d}]}`, config,
		layer.Digest, layer.Size)
	_, end, err := ingest.Pulling(t.Context(), s, manifestBytes)
	if err != nil {
		t.Fatal(err)
	}
	end() // the pull is interrupted
	b := longText(100)
	p := openPartial(t, s, b)
	writeAt(t, p, b, 50, 100)
	p.Close()
	collect := func(want ...string) {
		t.Helper()
		if _, err := collect.Prune(t.Context(), s, collect.PruneOptions{}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range append(storetest.Files(t, s, "ingest"), storetest.Files(t, s, "blobs/sha256")...) {
			got = append(got, strings.NewReplacer(digest.FromBytes(b).Encoded(), "P", layer.Digest.Encoded(), "layer",
				config.Encoded(), "config", digest.FromBytes(manifestBytes).Encoded(), "M").Replace(name))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("kept %v, want %v", got, want)
		}
	}
	collect("P.part", "P.ranges", "config", "layer", "pull-M")
	store.Clock(func() time.Time { return time.Now().Add(ingest.Age - time.Hour) })(s)
	collect("P.part", "P.ranges", "config", "layer", "pull-M")
	store.Clock(func() time.Time { return time.Now().Add(ingest.Age + time.Hour) })(s)
	collect() // the blobs are removed with the manifest that refers to them

	store.Clock(time.Now)(s)
	done, end, err := ingest.Pulling(t.Context(), s, manifestBytes)
	if err != nil {
		t.Fatal(err)
	}
	done()
	end()
	collect()
	if _, _, err := ingest.Pulling(t.Context(), s,
		[]byte(`{"layers":[{"digest":"x"}]}`)); !errors.Is(err, manifest.ErrInvalidManifest) {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"x.part", ".pull-1-2"} {
		if err := os.WriteFile(s.Path(store.IngestDir, name), []byte("no manifest"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	collect("x.part") // an unknown name
}

// TestPullingClears checks that the end of a pull removes the ingest files of complete blobs, which a process killed
// right after a rename leaves. It keeps those of incomplete blobs.
func TestPullingClears(t *testing.T) {
	s := storetest.NewStore(t)
	whole, half := longText(1000), longText(2000)
	p := openPartial(t, s, whole)
	writeAt(t, p, whole, 0, len(whole))
	if err := p.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = openPartial(t, s, half)
	writeAt(t, p, half, 0, 1000)
	p.Close()
	for _, suffix := range []string{ingest.PartSuffix, ingest.RangesSuffix, ingest.PartLockSuffix} {
		if err := os.WriteFile(s.Path(store.IngestDir, digest.FromBytes(whole).Encoded()+suffix), []byte("x"),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	var layers []string
	for _, b := range [][]byte{whole, half} {
		layers = append(layers, fmt.Sprintf(`{"digest":%q,"size":%d}`, digest.FromBytes(b), len(b)))
	}
	done, end, err := ingest.Pulling(t.Context(), s, []byte(`{"layers":[`+strings.Join(layers, ",")+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	done()
	end()
	want := []string{digest.FromBytes(half).Encoded() + ingest.PartSuffix}
	if got := storetest.Files(t, s, "ingest"); !slices.Equal(got, want) {
		t.Errorf("left in ingest: %v, want %v", got, want)
	}
}
