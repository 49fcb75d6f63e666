package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

// Pieces are the blob's bytes in order, those that were written ahead last, with zeros between.
func TestPieces(t *testing.T) {
	for _, c := range []struct {
		name   string
		from   int64
		write  []string
		ahead  map[int64]string
		pieces []string
	}{
		{"nothing", 0, nil, nil, nil},
		{"less than a piece", 3, []string{"a", "bc"}, nil, []string{"abc"}},
		{"whole pieces", 8, []string{"abcdefgh"}, nil, []string{"abcd", "efgh"}},
		{"a rest", 9, []string{"abc", "def", "ghi"}, nil, []string{"abcd", "efgh", "i"}},
		{"ahead", 2, []string{"ab"}, map[int64]string{4: "e", 2: "cd"}, []string{"abcd", "e"}},
		{"a gap", 3, []string{"ab"}, map[int64]string{3: "d", 6: "g"}, []string{"ab\x00d", "\x00\x00g"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := storetest.NewStore(t)
			in := openIngest(t, s)
			var got []string
			b := in.NewPieces("w", 4, c.from, func(path string, bytes int64) error {
				p, err := os.ReadFile(path)
				if int64(len(p)) != bytes {
					t.Errorf("%q: %d bytes", p, bytes)
				}
				got = append(got, string(p))
				return errors.Join(err, os.Remove(path))
			})
			defer b.Abort()
			for at, text := range c.ahead {
				if _, err := b.WriteAt([]byte(text), at); err != nil {
					t.Fatal(err)
				}
			}
			for _, text := range c.write {
				if _, err := b.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := b.WriteAt([]byte("x"), c.from-1); err == nil {
				t.Error("WriteAt writes where Write does")
			}
			d, n, err := b.Finish(t.Context())
			var want []byte
			for i, p := range c.pieces {
				if i >= len(got) || got[i] != p {
					t.Errorf("pieces %q, want %q", got, c.pieces)
				}
				want = append(want, p...)
			}
			if err != nil || d != digest.FromBytes(want) || n != int64(len(want)) || len(got) != len(c.pieces) {
				t.Errorf("%s, %d bytes, %v; pieces %q, want %q", d, n, err, got, c.pieces)
			}
			wantNoPartials(t, s.Root())
		})
	}
}

// wantNoPartials checks that a store has no file of a blob that is being written.
func wantNoPartials(t *testing.T, root string) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(root, "ingest", "create-*", "blob-*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// What fails leaves no file.
func TestPiecesFail(t *testing.T) {
	s := storetest.NewStore(t)
	in := openIngest(t, s)
	failed := errors.New("the test's")
	b := in.NewPieces("w", 4, 100, func(path string, _ int64) error { return errors.Join(failed, os.Remove(path)) })
	if _, err := b.WriteAt([]byte("ahead"), 100); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Write([]byte("abcdef")); n != 4 || !errors.Is(err, failed) {
		t.Errorf("%d, %v", n, err)
	}
	b.Abort()
	wantNoPartials(t, s.Root())
	b = in.NewPieces("w", 1<<20, 100, nil)
	if _, err := b.WriteAt(bytes.Repeat([]byte{1}, 100), 100); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := b.Finish(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	wantNoPartials(t, s.Root())
}

// A blob that only another place has is in the journal of the next run.
func TestAddReleased(t *testing.T) {
	s := storetest.NewStore(t)
	in := openIngest(t, s)
	d := digest.FromString("text")
	if err := in.AddReleased("w", d, 4, "note", "place"); err != nil {
		t.Fatal(err)
	}
	if !in.Released("w") || in.Note("w") != "note" {
		t.Errorf("released: %v, note %q", in.Released("w"), in.Note("w"))
	}
	in.Close()
	again := openIngest(t, s)
	if got, n, ok := again.Sent("w", "place"); !ok || got != d || n != 4 {
		t.Errorf("%s, %d, %v", got, n, ok)
	}
}
