package ingest_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
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
