package readahead

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// origin serves files from memory and counts.
type origin struct {
	files map[string][]byte

	mu       sync.Mutex
	requests int
	bytes    int64
	fail     error
}

func (o *origin) fetch(ctx context.Context, file string, p []byte, offset int64) error {
	o.mu.Lock()
	o.requests++
	o.bytes += int64(len(p))
	err := o.fail
	o.mu.Unlock()
	if err != nil {
		return err
	}
	if n := copy(p, o.files[file][offset:]); n < len(p) {
		return errors.New("read past the end")
	}
	return ctx.Err()
}

func newOrigin(sizes map[string]int) *origin {
	o := &origin{files: map[string][]byte{}}
	r := rand.New(rand.NewPCG(1, 1))
	for _, name := range []string{"a", "b", "c"} {
		o.files[name] = make([]byte, sizes[name])
		for i := range o.files[name] {
			o.files[name][i] = byte(r.Uint32())
		}
	}
	return o
}

func newReader(t *testing.T, o *origin, opts Options) *Reader {
	t.Helper()
	r := New(t.Context(), o.fetch, opts)
	t.Cleanup(r.Close)
	return r
}

// read reads ranges by several goroutines, in pieces, and compares them.
func read(t *testing.T, r *Reader, o *origin, list []Range, readers int) {
	t.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
				g := list[i]
				for at := g.Begin; at < g.End; {
					p := make([]byte, min(g.End-at, 700_001))
					if err := r.ReadAt(t.Context(), g.File, int64(len(o.files[g.File])), p, at); err != nil {
						t.Error(err)
						return
					}
					if !bytes.Equal(p, o.files[g.File][at:at+int64(len(p))]) {
						t.Errorf("%v at %d: other bytes", g, at)
						return
					}
					at += int64(len(p))
				}
			}
		})
	}
	group.Wait()
}

// pieces divides a file into ranges after a header.
func pieces(file string, header, size, piece int64) []Range {
	var out []Range
	for at := header; at < size; at += piece {
		out = append(out, Range{file, at, min(at+piece, size)})
	}
	return out
}

// Announced ranges are requested once each, in few requests, and files are hashed on the way.
func TestInOrder(t *testing.T) {
	o := newOrigin(map[string]int{"a": 9 << 20, "b": 3<<20 + 1, "c": 100})
	r := newReader(t, o, Options{Memory: 8 << 20})
	var list []Range
	for _, name := range []string{"a", "b", "c"} {
		r.Check(name, int64(len(o.files[name])), sha256.Sum256(o.files[name]))
		list = append(list, pieces(name, 50, int64(len(o.files[name])), 300_000)...)
	}
	r.Expect(list)
	read(t, r, o, list, 3)
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o.bytes != 12<<20+101 || o.requests > 30 {
		t.Errorf("%d bytes in %d requests", o.bytes, o.requests)
	}
	if left := r.Unchecked(); len(left) > 0 {
		t.Errorf("unchecked: %v", left)
	}
	if r.used != 0 {
		t.Errorf("%d bytes are held", r.used)
	}
}

// A reader that does not keep to the order gets its bytes all the same, in any memory.
func TestOutOfOrder(t *testing.T) {
	for _, memory := range []int64{1, 1 << 20, 64 << 20} {
		o := newOrigin(map[string]int{"a": 5 << 20, "b": 2 << 20})
		r := newReader(t, o, Options{Memory: memory})
		list := append(pieces("a", 0, 5<<20, 200_000), pieces("b", 0, 2<<20, 50_000)...)
		r.Check("a", 5<<20, sha256.Sum256(o.files["a"]))
		r.Expect(list)
		shuffled := slices.Clone(list)
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(list), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		read(t, r, o, shuffled, 4)
		read(t, r, o, list[:10], 2) // again
		if err := r.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A wrong byte is found, and ends the reads.
func TestMismatch(t *testing.T) {
	o := newOrigin(map[string]int{"a": 1 << 20})
	want := sha256.Sum256(o.files["a"])
	o.files["a"][1<<20-1] ^= 1
	r := newReader(t, o, Options{})
	list := pieces("a", 8, 1<<20, 1<<20)
	r.Check("a", 1<<20, want)
	r.Expect(list)
	_ = r.ReadAt(t.Context(), "a", 1<<20, make([]byte, 100), 8)
	m, ok := Mismatch(r.Wait(t.Context()))
	if !ok || m.File != "a" || m.Want != want || m.Have != sha256.Sum256(o.files["a"]) {
		t.Errorf("%v", m)
	}
	if _, ok := Mismatch(r.ReadAt(t.Context(), "a", 1<<20, make([]byte, 100), 8)); !ok {
		t.Error("reads go on")
	}
}

// Bytes that nobody reads are not requested, and the file is not checked, unless all of it is asked for.
func TestGaps(t *testing.T) {
	for _, all := range []bool{false, true} {
		o := newOrigin(map[string]int{"a": 4 << 20})
		r := newReader(t, o, Options{All: all})
		list := []Range{{"a", 1000, 1 << 20}, {"a", 3 << 20, 4<<20 - 5}}
		r.Check("a", 4<<20, sha256.Sum256(o.files["a"]))
		r.Expect(list)
		read(t, r, o, list, 1)
		if err := r.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if want := map[bool]int64{false: 2<<20 - 1005, true: 4 << 20}[all]; o.bytes != want {
			t.Errorf("all %v: %d bytes were requested, want %d", all, o.bytes, want)
		}
		if left := r.Unchecked(); all == slices.Contains(left, "a") {
			t.Errorf("all %v: unchecked %v", all, left)
		}
	}
}

// An order that would hold too much for the checksum gives it up, or reads the file a second time.
func TestHold(t *testing.T) {
	for _, all := range []bool{false, true} {
		o := newOrigin(map[string]int{"a": 8 << 20})
		r := newReader(t, o, Options{Memory: 2 << 20, All: all})
		list := pieces("a", 0, 8<<20, 512<<10)
		slices.Reverse(list)
		r.Check("a", 8<<20, sha256.Sum256(o.files["a"]))
		r.Expect(list)
		read(t, r, o, list, 2)
		if err := r.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if want := map[bool]int64{false: 8 << 20, true: 16 << 20}[all]; o.bytes != want {
			t.Errorf("all %v: %d bytes, want %d", all, o.bytes, want)
		}
	}
}

// Short reads that nobody announced are served from blocks: scales and adapters are read again and again.
func TestBlocks(t *testing.T) {
	o := newOrigin(map[string]int{"a": 3 << 20})
	r := newReader(t, o, Options{})
	for range 5 {
		read(t, r, o, pieces("a", 0, 3<<20, 10_000), 4)
	}
	if o.requests != 3 {
		t.Errorf("%d requests, want 3", o.requests)
	}
}

// The source's error ends all reads, and a context ends one.
func TestErrors(t *testing.T) {
	o := newOrigin(map[string]int{"a": 1 << 20})
	o.fail = errors.New("gone")
	r := newReader(t, o, Options{})
	r.Expect(pieces("a", 0, 1<<20, 1<<20))
	if err := r.ReadAt(t.Context(), "a", 1<<20, make([]byte, 10), 0); !errors.Is(err, o.fail) {
		t.Error(err)
	}
	slow := New(t.Context(), func(ctx context.Context, _ string, _ []byte, _ int64) error {
		<-ctx.Done()
		return ctx.Err()
	}, Options{})
	defer slow.Close()
	slow.Expect([]Range{{"a", 0, 10}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := slow.ReadAt(ctx, "a", 10, make([]byte, 10), 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
