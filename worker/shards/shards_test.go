package shards

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// served serves an image on loopback and returns a source of it, and the number of bytes of bodies that it has sent.
func served(t *testing.T, s *store.Store, entry *store.Entry) (*Source, *atomic.Int64) {
	t.Helper()
	h, err := Handler(s, entry.Digest)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(counted{w, &sent}, r)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	source := NewSource(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	})
	t.Cleanup(source.Close)
	return source, &sent
}

type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return c.ResponseWriter.Write(b)
}

func folder(t *testing.T, own *store.Store) *Folder {
	t.Helper()
	f, err := Open(own)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func emptyStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// same checks that a rank reads the same bytes from its parts as from the whole image. It returns the number of divided
// blobs of which the worker has ranges only.
func same(t *testing.T, whole *store.Store, got Shard, at Place) (partial int) {
	t.Helper()
	config, err := processor.Files{Store: got.Store, Image: got.Image}.Config()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := shard.Divide(config, at.Stages, at.Rank, at.Size)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range got.Image.Layers {
		want, err := os.ReadFile(whole.BlobPath(l.Digest))
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(got.Store.BlobPath(l.Digest))
		if err != nil {
			t.Fatal(err)
		}
		ranges := []shard.Range{{End: l.Size}}
		if own, divided := parts[l.Name]; divided && l.Kind == manifest.KindTensor {
			b, err := blob.Read(bytes.NewReader(want), l.Size, l.Name)
			if err == nil {
				ranges, err = load.Ranges(b, own)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range ranges {
			if !bytes.Equal(have[r.Begin:r.End], want[r.Begin:r.End]) {
				t.Fatalf("rank %d of %d: bytes %d to %d of %s differ", at.Rank, at.Size, r.Begin, r.End, l.Name)
			}
		}
		if !bytes.Equal(have, want) {
			partial++
		}
	}
	return partial
}

// Workers fetch their parts and nothing else, once, and every byte that they read is that of the image.
func TestPrepare(t *testing.T) {
	for name, p := range map[string]recipe.Precision{"plain": {}, "packed": {Type: quantize.Int4}, "nvfp4": {
		Type: quantize.NVFP4}} {
		t.Run(name, func(t *testing.T) {
			s, entry := converttest.PackAs(t, modeltest.Dir("demo"), "demo", p)
			source, sent := served(t, s, entry)
			own := emptyStore(t)
			f := folder(t, own)
			f.small = 1 << 10 // the tensors of a model for tests are small
			for _, c := range []struct {
				at   Place
				most float64 // of the image that is fetched
			}{{Place{Rank: 1, Size: 2}, 0.75}, {Place{Rank: 3, Size: 4}, 0.5},
				{Place{Rank: 1, Size: 2, Stages: shard.Stages{3, 2}}, 0.5}} {
				before := sent.Load()
				var last, all int64
				got, err := f.Prepare(t.Context(), entry.Digest, c.at, source, func(done, total int64) {
					last, all = max(last, done), total
				})
				if err != nil {
					t.Fatal(err)
				}
				partial := same(t, s, got, c.at)
				share := float64(got.Fetched) / float64(entry.Image.Size())
				t.Logf("rank %d of %d: fetched %.2f of the image; %d blobs in part", c.at.Rank, c.at.Size, share, partial)
				if share > c.most || c.at.Rank == 1 && (partial < 5 || last != got.Fetched || all != last) {
					t.Errorf("fetched %d bytes of %d, reported %d of %d", got.Fetched, entry.Image.Size(), last, all)
				}
				if over := sent.Load() - before - got.Fetched; over > 2<<20 { // headers
					t.Errorf("rank 0 sent %d bytes more than were fetched", over)
				}
			}
			before := sent.Load()
			again, err := f.Prepare(t.Context(), entry.Digest, Place{Rank: 1, Size: 2}, source, nil)
			if err != nil || again.Fetched != 0 {
				t.Errorf("the second time %d bytes were fetched, %v", again.Fetched, err)
			}
			same(t, s, again, Place{Rank: 1, Size: 2})
			if n := sent.Load() - before; n > 0 {
				t.Errorf("the second time rank 0 sent %d bytes", n)
			}
		})
	}
}

// What a worker has already is not fetched: the whole image, or blobs of it.
func TestOwnBlobs(t *testing.T) {
	s, entry := converttest.PackAs(t, modeltest.Dir("demo"), "demo", recipe.Precision{})
	source, sent := served(t, s, entry)
	got, err := folder(t, s).Prepare(t.Context(), entry.Digest, Place{Rank: 1, Size: 2}, source, nil)
	if err != nil || got.Store != s || sent.Load() != 0 {
		t.Errorf("a store with the image: %d bytes were sent, %v", sent.Load(), err)
	}
	own := emptyStore(t)
	if err := own.MakeBlobsDir(); err != nil {
		t.Fatal(err)
	}
	var linked int64
	for _, l := range entry.Image.Layers {
		if l.Kind == manifest.KindTensor {
			b, err := os.ReadFile(s.BlobPath(l.Digest))
			if err == nil {
				err = os.WriteFile(own.BlobPath(l.Digest), b, 0o444)
			}
			if err != nil {
				t.Fatal(err)
			}
			linked += l.Size
		}
	}
	got, err = folder(t, own).Prepare(t.Context(), entry.Digest, Place{Rank: 1, Size: 2}, source, nil)
	if err != nil || got.Fetched > entry.Image.Size()-linked {
		t.Errorf("a store with the tensors: %d bytes were fetched, %v", got.Fetched, err)
	}
	if n := same(t, s, got, Place{Rank: 1, Size: 2}); n > 0 {
		t.Errorf("%d blobs differ", n)
	}
}

// Parts that were damaged on the worker's disk are fetched again; a damaged blob of rank 0 is an error.
func TestDamaged(t *testing.T) {
	s, entry := converttest.PackAs(t, modeltest.Dir("demo"), "demo", recipe.Precision{})
	source, _ := served(t, s, entry)
	own := emptyStore(t)
	prepare := func(from *Source) (Shard, error) {
		f := folder(t, own) // as another process
		f.small = 1 << 10
		return f.Prepare(t.Context(), entry.Digest, Place{Rank: 1, Size: 2}, from, nil)
	}
	got, err := prepare(source)
	if err != nil {
		t.Fatal(err)
	}
	const name = "model.layers.0.mlp.down_proj.weight"
	l, ok := entry.Image.Find(manifest.KindTensor, name)
	if !ok {
		t.Fatalf("the model has no %s", name)
	}
	path := got.Store.BlobPath(l.Digest)
	flip := func(path string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-1] ^= 1 // of the last column, which rank 1 has
		runtimetest.Rewrite(t, path, b)
	}
	flip(path)
	again, err := prepare(source)
	if err != nil || again.Fetched == 0 || again.Fetched > l.Size {
		t.Errorf("after damage %d bytes were fetched, %v", again.Fetched, err)
	}
	same(t, s, again, Place{Rank: 1, Size: 2})

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	flip(s.BlobPath(l.Digest))
	fresh, _ := served(t, s, entry) // rank 0 checks a blob once
	if _, err := prepare(fresh); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged blob of rank 0: %v", err)
	}
}

// A connection that ends in the middle is an error, and what has arrived before is kept.
func TestInterrupted(t *testing.T) {
	s, entry := converttest.PackAs(t, modeltest.Dir("demo"), "demo", recipe.Precision{})
	h, err := Handler(s, entry.Digest)
	if err != nil {
		t.Fatal(err)
	}
	own := emptyStore(t)
	prepare := func(most int) (Shard, error) {
		var requests atomic.Int64
		near, far := make(chan net.Conn, Connections), make(chan net.Conn, Connections)
		for range Connections {
			a, b := net.Pipe()
			near, far = push(near, a), push(far, b)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if int(requests.Add(1)) > most {
				panic(http.ErrAbortHandler)
			}
			h.ServeHTTP(w, r)
		})}
		go server.Serve(NewListener(far))
		defer server.Close()
		source := NewSource(func(ctx context.Context) (net.Conn, error) {
			select {
			case c := <-near:
				return c, nil
			default:
				return nil, io.ErrClosedPipe
			}
		})
		defer source.Close()
		f := folder(t, own)
		f.small = 1 << 10
		return f.Prepare(t.Context(), entry.Digest, Place{Rank: 1, Size: 2}, source, nil)
	}
	if _, err := prepare(60); err == nil {
		t.Fatal("an interrupted fetch succeeded")
	}
	got, err := prepare(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	same(t, s, got, Place{Rank: 1, Size: 2})
}

func push(c chan net.Conn, one net.Conn) chan net.Conn {
	c <- one
	return c
}

// Only the image's own blobs are served, and only to be read.
func TestHandlerRefuses(t *testing.T) {
	s, entry := converttest.PackAs(t, modeltest.Dir("demo"), "demo", recipe.Precision{})
	other, _, err := s.PutBytes(t.Context(), []byte("of another image"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := Handler(s, entry.Digest)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	go server.Serve(l)
	defer server.Close()
	for path, want := range map[string]int{
		"/v2/model/manifests/" + string(entry.Digest): http.StatusOK,
		"/v2/model/blobs/" + string(other):            http.StatusNotFound,
		"/v2/model/manifests/latest":                  http.StatusNotFound,
		"/v2/model/blobs/../../server-secret":         http.StatusNotFound,
		"/v2/other/manifests/" + string(entry.Digest): http.StatusNotFound,
		"/v2/model/blobs/uploads/" + string(other):    http.StatusNotFound,
	} {
		response, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %s", path, response.Status)
		}
	}
	response, err := http.Post("http://"+l.Addr().String()+"/v2/model/blobs/uploads/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("an upload: %s", response.Status)
	}
}
