package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

// longText returns n bytes without a short period.
func longText(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func openPartial(t *testing.T, s *store.Store, b []byte) *ingest.Partial {
	t.Helper()
	p, err := ingest.OpenPartial(t.Context(), s, digest.FromBytes(b), int64(len(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// writeAt writes b[from:to] at its offset.
func writeAt(t *testing.T, p *ingest.Partial, b []byte, from, to int) {
	t.Helper()
	if n, err := p.WriteAt(b[from:to], int64(from)); err != nil || n != to-from {
		t.Fatalf("%d to %d: %d bytes, %v", from, to, n, err)
	}
}

func wantBlob(t *testing.T, s *store.Store, b []byte) {
	t.Helper()
	got, err := s.ReadBlob(digest.FromBytes(b), int64(len(b)))
	if err != nil || !bytes.Equal(got, b) {
		t.Fatalf("blob of %d bytes: %d bytes, %v", len(b), len(got), err)
	}
	if info, err := os.Stat(s.BlobPath(digest.FromBytes(b))); err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left := storetest.Files(t, s, "ingest"); len(left) > 0 {
		t.Errorf("left in ingest: %v", left)
	}
}

func TestPartialInAnyOrder(t *testing.T) {
	s := storetest.NewStore(t)
	b := longText(100_000)
	for _, test := range []struct {
		name   string
		follow bool
		pieces [][2]int
	}{
		{"in order", false, [][2]int{{0, 40_000}, {40_000, 100_000}}},
		{"backwards", false, [][2]int{{70_000, 100_000}, {30_000, 70_000}, {0, 30_000}}},
		{"twice and overlapping", true, [][2]int{{10, 50_000}, {0, 60_000}, {0, 60_000}, {59_000, 100_000}}},
		{"one byte", true, [][2]int{{0, 99_999}, {99_999, 100_000}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := openPartial(t, s, b)
			followed := make(chan error, 1)
			if test.follow {
				go func() { followed <- p.Follow(t.Context()) }()
			} else {
				followed <- nil
			}
			for _, r := range test.pieces {
				writeAt(t, p, b, r[0], r[1])
			}
			if err := <-followed; err != nil || len(p.Missing()) > 0 || p.Have() != p.Size() {
				t.Fatal(err, p.Missing(), p.Have())
			}
			if err := p.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantBlob(t, s, b)
			if _, err := ingest.OpenPartial(t.Context(), s, digest.FromBytes(b), int64(len(b)),
				nil); !errors.Is(err, manifest.ErrHave) {
				t.Errorf("again: %v", err)
			}
			if err := os.Remove(s.BlobPath(digest.FromBytes(b))); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Goroutines write ranges concurrently while Follow hashes.
func TestPartialInParallel(t *testing.T) {
	s := storetest.NewStore(t)
	b := longText(3 << 20)
	p := openPartial(t, s, b)
	var g sync.WaitGroup
	g.Go(func() {
		if err := p.Follow(t.Context()); err != nil {
			t.Error(err)
		}
	})
	const part = 100_000
	for at := 0; at < len(b); at += part {
		g.Go(func() {
			for off := at; off < min(at+part, len(b)); off += 7_000 {
				if _, err := p.WriteAt(b[off:min(off+7_000, at+part, len(b))], int64(off)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	g.Wait()
	if err := p.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantBlob(t, s, b)
}

// The next run finds exactly the ranges that an earlier one wrote, in any order.
func TestPartialResumes(t *testing.T) {
	s := storetest.NewStore(t)
	b := longText(5 << 20)
	p := openPartial(t, s, b)
	writeAt(t, p, b, 0, 1000)
	p.Close()

	p = openPartial(t, s, b)
	if got, want := p.Missing(), []ingest.Range{{1000, 5 << 20}}; !slices.Equal(got, want) {
		t.Errorf("missing %v, want %v", got, want)
	}
	writeAt(t, p, b, 2<<20, 4<<20)
	p.Close()

	p = openPartial(t, s, b)
	if got, want := p.Missing(), []ingest.Range{{1000, 2 << 20}, {4 << 20, 5 << 20}}; !slices.Equal(got, want) {
		t.Errorf("missing %v, want %v", got, want)
	}
	for _, r := range p.Missing() {
		writeAt(t, p, b, int(r.Start), int(r.End))
	}
	if err := p.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantBlob(t, s, b)
}

// Journal entries beyond the end of the file, and torn or invalid lines, do not count.
func TestPartialJournal(t *testing.T) {
	s := storetest.NewStore(t)
	b := longText(1000)
	path := s.Path(store.IngestDir, digest.FromBytes(b).Encoded())
	for _, test := range []struct {
		journal string
		want    []ingest.Range
	}{
		{"0 100\n300 500\n", []ingest.Range{{100, 300}, {500, 1000}}},
		{"0 100\n300 99999999\n", []ingest.Range{{100, 300}, {600, 1000}}},
		{"0 100\n300 50", []ingest.Range{{100, 1000}}},
		{"x y\n-5 10\n10 5\n\n\n 7 8\n0 1\n", []ingest.Range{{1, 1000}}},
		{"", []ingest.Range{{0, 1000}}},
		{"0 600\n0 200\n100 300\n", []ingest.Range{{600, 1000}}},
	} {
		if err := errors.Join(os.WriteFile(path+ingest.PartSuffix, b[:600], 0o444),
			os.WriteFile(path+ingest.RangesSuffix, []byte(test.journal), 0o644)); err != nil {
			t.Fatal(err)
		}
		p := openPartial(t, s, b)
		if got := p.Missing(); !slices.Equal(got, test.want) {
			t.Errorf("%q: missing %v, want %v", test.journal, got, test.want)
		}
		p.Discard()
	}
	if left := storetest.Files(t, s, "ingest"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestPartialRefusesWrongBytes(t *testing.T) {
	s := storetest.NewStore(t)
	b := longText(1000)
	p := openPartial(t, s, b)
	wrong := bytes.Clone(b)
	wrong[500] ^= 1
	writeAt(t, p, wrong, 0, 1000)
	writeAt(t, p, b, 0, 1000) // no effect: these bytes are already present
	err := p.Commit(t.Context())
	var mismatch *ingest.MismatchError
	if !errors.As(err, &mismatch) || !errors.Is(err, manifest.ErrCorrupt) || mismatch.Got != digest.FromBytes(wrong) ||
		mismatch.Want != digest.FromBytes(b) || mismatch.Size != 1000 {
		t.Errorf("%v", err)
	}
	if got := append(storetest.Files(t, s, "ingest"), storetest.Files(t, s, "blobs/sha256")...); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
	p = openPartial(t, s, b)
	if _, err := p.WriteAt(b, 1); !errors.Is(err, manifest.ErrTooLarge) {
		t.Errorf("beyond the end: %v", err)
	}
	writeAt(t, p, b, 0, 999)
	if err := p.Commit(t.Context()); !errors.Is(err, manifest.ErrBlobMissing) {
		t.Errorf("a byte short: %v", err)
	}
	p = openPartial(t, s, b)
	if got := p.Have(); got != 999 {
		t.Errorf("%d bytes are present, want 999", got)
	}
}

// Bytes on disk that change between two runs are detected.
func TestPartialTrustsNothing(t *testing.T) {
	s := storetest.NewStore(t)
	b := longText(1000)
	p := openPartial(t, s, b)
	writeAt(t, p, b, 0, 900)
	p.Close()
	path := s.Path(store.IngestDir, digest.FromBytes(b).Encoded()+ingest.PartSuffix)
	wrong := bytes.Clone(b[:900])
	wrong[0]++
	if err := os.WriteFile(path, wrong, 0o644); err != nil {
		t.Fatal(err)
	}
	p = openPartial(t, s, b)
	writeAt(t, p, b, 900, 1000)
	if err := p.Commit(t.Context()); !errors.Is(err, manifest.ErrCorrupt) {
		t.Errorf("%v", err)
	}
}

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

func TestPartialOddities(t *testing.T) {
	s := storetest.NewStore(t)
	p := openPartial(t, s, nil)
	if err := p.Commit(t.Context()); err != nil {
		t.Error("an empty blob:", err)
	}
	wantBlob(t, s, nil)
	for _, d := range []digest.Digest{"", "sha256:../../x", "sha512:00"} {
		if _, err := ingest.OpenPartial(t.Context(), s, d, 1, nil); err == nil {
			t.Errorf("%q was opened", d)
		}
	}
	if _, err := ingest.OpenPartial(t.Context(), s, testKey, -1, nil); err == nil {
		t.Error("a negative size was accepted")
	}
	// The file is too long, as if another manifest gave another size.
	b := longText(100)
	if err := os.WriteFile(s.Path(store.IngestDir, digest.FromBytes(b).Encoded()+ingest.PartSuffix),
		append(bytes.Clone(b), "more"...),
		0o644); err != nil {
		t.Fatal(err)
	}
	p = openPartial(t, s, b)
	if err := p.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	wantBlob(t, s, b)
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
	if _, err := ingest.Pulling(t.Context(), s, manifestBytes); err != nil {
		t.Fatal(err)
	}
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
	done, err := ingest.Pulling(t.Context(), s, manifestBytes)
	if err != nil {
		t.Fatal(err)
	}
	done()
	collect()
	if _, err := ingest.Pulling(t.Context(), s,
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

// Direct and cached writes give the same blob.
func TestPartialAlignment(t *testing.T) {
	s := storetest.NewStore(t)
	for _, size := range []int{4096, 4097, 3*4096 - 1, 200_000} {
		for _, first := range []int{1, 4096, 5000, 8192} {
			b := make([]byte, size) // aligned, as large allocations are
			copy(b, longText(size))
			b[0], b[1] = byte(first), byte(first>>8)
			p := openPartial(t, s, b)
			at := min(first, size)
			writeAt(t, p, b, 0, at)
			for at < size {
				end := min(at+8192-at%4096, size)
				writeAt(t, p, b, at, end)
				at = end
			}
			if err := p.Commit(t.Context()); err != nil {
				t.Fatalf("%d bytes, %d first: %v", size, first, err)
			}
			wantBlob(t, s, b)
		}
	}
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
	done, err := ingest.Pulling(t.Context(), s, []byte(`{"layers":[`+strings.Join(layers, ",")+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	done()
	want := []string{digest.FromBytes(half).Encoded() + ingest.PartSuffix}
	if got := storetest.Files(t, s, "ingest"); !slices.Equal(got, want) {
		t.Errorf("left in ingest: %v, want %v", got, want)
	}
}
