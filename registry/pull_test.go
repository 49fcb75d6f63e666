package registry

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// testTuning makes the blobs of these tests large ones.
var testTuning = tuning{singleBelow: 64 << 10, minPart: 100_000, maxPart: 100_000,
	stallTimeout: 300 * time.Millisecond, headerTimeout: time.Second, buffer: 16 << 10}

func newPullClient(t testing.TB, change ...func(*Options)) *Client {
	t.Helper()
	c := newClient(t, change...)
	c.tune = testTuning
	return c
}

func newEmptyStore(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// image is an image on a peer.
type image struct {
	name   manifest.Name
	bytes  []byte
	digest digest.Digest
	blobs  [][]byte // config first
}

// serve stores an image with these files as layers on a peer, as team/model:latest.
func serve(t testing.TB, p *rt.Peer, files map[string][]byte) *image {
	t.Helper()
	img := &image{name: p.Name("team/model"), blobs: [][]byte{[]byte("{}")}}
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: ocispec.Descriptor{MediaType: "application/vnd.example.config", Digest: digest.FromString("{}"), Size: 2}}
	var paths []string
	for path := range files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		b := files[path]
		img.blobs = append(img.blobs, b)
		m.Layers = append(m.Layers, ocispec.Descriptor{
			MediaType: "application/vnd.example.file", Digest: digest.FromBytes(b), Size: int64(len(b)),
			Annotations: map[string]string{modelspec.AnnotationFilepath: path}})
	}
	for _, b := range img.blobs {
		p.PutBlob("team/model", b)
	}
	img.bytes, _ = json.MarshalIndent(m, "", "   ") // unlike any encoder of ours
	img.digest = p.PutManifest("team/model", "latest", ocispec.MediaTypeImageManifest, img.bytes)
	return img
}

// checkWhole fails the test unless a store has exactly this image, byte for byte.
func (img *image) checkWhole(t testing.TB, s *store.Store) {
	t.Helper()
	raw, err := s.ResolveRaw(context.Background(), img.name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(raw.Bytes, img.bytes) || raw.Descriptor.Digest != img.digest {
		t.Errorf("the manifest is %s, not %s", raw.Descriptor.Digest, img.digest)
	}
	want := map[string]bool{img.digest.Encoded(): true}
	for _, b := range img.blobs {
		want[digest.FromBytes(b).Encoded()] = true
		if got, err := s.ReadBlob(digest.FromBytes(b), 1<<30); err != nil || !bytes.Equal(got, b) {
			t.Errorf("blob of %d bytes: %d bytes, %v", len(b), len(got), err)
		}
	}
	if got := listing(t, s, "blobs/sha256"); len(got) != len(want) {
		t.Errorf("%d blobs, want %d: %v", len(got), len(want), got)
	}
	if got := listing(t, s, "ingest"); len(got) > 0 {
		t.Errorf("left in ingest: %v", got)
	}
}

// checkAbsent fails the test if a store has the image's name, or a blob that does not match its digest.
func (img *image) checkAbsent(t testing.TB, s *store.Store) {
	t.Helper()
	if _, err := s.ResolveRaw(context.Background(), img.name); !errors.Is(err, manifest.ErrNotFound) {
		t.Errorf("the name is there: %v", err)
	}
	for _, name := range listing(t, s, "blobs/sha256") {
		if _, err := s.ReadBlob(digest.Digest("sha256:"+name), 1<<30); err != nil {
			t.Error(err)
		}
	}
}

func listing(t testing.TB, s *store.Store, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.Root(), dir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

var testFiles = map[string][]byte{
	"config.json":                []byte(`{"model_type":"x"}`),
	"model-a.safetensors":        rt.Noise(7, 1_000_000),
	"model-b.safetensors":        rt.Noise(7, 40_000),
	"model-c.safetensors":        rt.Noise(7, 130_000),
	"draft/config.json":          []byte("a draft"),
	"model-draft.x.safetensors":  rt.Noise(7, 5_000),
	"tokenizer/vocabulary.json":  []byte("{ }"),
	"empty.txt":                  {},
	"same-as-config/config.json": []byte(`{"model_type":"x"}`), // a digest that two layers share
}

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
	if asked := p.Log()[before:]; len(asked) != 1 || !strings.HasPrefix(asked[0], "HEAD manifest ") {
		t.Errorf("again: %q", asked)
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

// TestPullRecovers: a pull succeeds despite all kinds of temporary faults.
func TestPullRecovers(t *testing.T) {
	large, small := testFiles["model-a.safetensors"], testFiles["model-b.safetensors"]
	largeRef, smallRef := string(digest.FromBytes(large)), string(digest.FromBytes(small))
	type test struct {
		name string
		set  func(p *rt.Peer)
	}
	tests := []test{
		{"500 twice", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, rt.RefuseWith(500, "UNKNOWN")).Times(2)
		}},
		{"500 in the middle", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, rt.RefuseWith(503, "UNAVAILABLE")).After(4).Times(3)
		}},
		{"429 with Retry-After", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, rt.Respond(429, "Retry-After", "7")).Times(3)
		}},
		{"manifest 502", func(p *rt.Peer) { p.Once("GET", rt.ManifestRoute, rt.Respond(502)) }},
		{"HEAD not allowed", func(p *rt.Peer) { p.On("HEAD", rt.AnyRoute, rt.Respond(405)) }},
		{"200 instead of 206", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) { x.R.Header.Del("Range"); x.Handle() })
		}},
		{"200 instead of 206, cut", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) { x.R.Header.Del("Range"); x.Handle() })
			p.On("GET", rt.BlobRoute,
				func(x *rt.Exchange) { x.R.Header.Del("Range"); rt.CutResponse(400_000)(x) }).Of(largeRef).Times(2)
		}},
		{"wrong Content-Range", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
				if x.R.Header.Get("Range") == "" {
					x.Handle()
					return
				}
				x.W.Header().Set("Content-Range", fmt.Sprintf("bytes 1-100000/%d", len(large)))
				x.W.WriteHeader(206)
				x.W.Write(large[1:100_001])
			}).Of(largeRef)
		}},
		{"no Content-Range", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
				if x.R.Header.Get("Range") == "" {
					x.Handle()
					return
				}
				x.W.WriteHeader(206)
				x.W.Write(large[:100_000])
			}).Of(largeRef)
		}},
		{"416 to every part", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
				if x.R.Header.Get("Range") == "" {
					x.Handle()
					return
				}
				rt.Respond(416)(x)
			})
		}},
		{"ETags that differ", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
				x.W.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprint(x.N)))
				x.Handle()
			})
		}},
		{"less than requested", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
				var from, to int
				if n, _ := fmt.Sscanf(x.R.Header.Get("Range"), "bytes=%d-%d", &from, &to); n == 2 {
					x.R.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, min(to, from+29_999)))
				}
				x.Handle()
			})
		}},
		{"altered once", func(p *rt.Peer) { p.Once("GET", rt.BlobRoute, rt.Flip(17)).Of(smallRef) }},
		{"a part altered once", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, rt.Flip(17)).Of(largeRef).After(3).Times(1)
		}},
		{"longer once", func(p *rt.Peer) {
			p.Once("GET", rt.BlobRoute, func(x *rt.Exchange) { x.W.Write(append(bytes.Clone(small), "more"...)) }).Of(smallRef)
		}},
		{"longer once, in pieces", func(p *rt.Peer) {
			p.Once("GET", rt.BlobRoute, func(x *rt.Exchange) {
				x.W.Write(small)
				http.NewResponseController(x.W).Flush()
				x.W.Write([]byte("more"))
			}).Of(smallRef)
		}},
		{"shorter once", func(p *rt.Peer) {
			p.Once("GET", rt.BlobRoute, func(x *rt.Exchange) { x.W.Write(small[:1000]) }).Of(smallRef)
		}},
		{"shorter once, in pieces", func(p *rt.Peer) {
			p.Once("GET", rt.BlobRoute, func(x *rt.Exchange) {
				http.NewResponseController(x.W).Flush()
				x.W.Write(small[:1000])
			}).Of(smallRef)
		}},
		{"without a length", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
				http.NewResponseController(x.W).Flush()
				x.W.Write(x.Blob(x.Repo, digest.Digest(x.Ref)))
			})
		}},
		{"connections are closed after each request", func(p *rt.Peer) {
			p.On("", rt.AnyRoute, func(x *rt.Exchange) { x.W.Header().Set("Connection", "close"); x.Handle() })
		}},
		{"unrequested gzip", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
				x.W.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(x.W)
				z.Write(x.Blob(x.Repo, digest.Digest(x.Ref)))
				z.Close()
			})
		}},
		{"Content-Encoding gzip without gzip", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) { x.W.Header().Set("Content-Encoding", "gzip"); x.Handle() })
		}},
		{"stalls in the middle", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, stall(5_000)).Of(smallRef).Times(2)
			p.On("GET", rt.BlobRoute, stall(50_000)).Of(largeRef).After(2).Times(1)
		}},
		{"no response", func(p *rt.Peer) { p.Once("GET", rt.BlobRoute, rt.Slowly(time.Minute)) }},
		{"a slow part", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, drip).Of(largeRef).After(1).Times(1)
		}},
	}
	for tenth := range 11 {
		tests = append(tests,
			test{fmt.Sprintf("cut at %d tenths",
				tenth), func(p *rt.Peer) {
				p.Once("GET", rt.BlobRoute, rt.CutResponse(tenth*len(small)/10)).Of(smallRef)
			}},
			test{fmt.Sprintf("each part cut at %d tenths",
				tenth), func(p *rt.Peer) {
				p.On("GET", rt.BlobRoute, oncePerPart(rt.CutResponse(tenth*10_000))).Of(largeRef)
			}})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := rt.New(t)
			img := serve(t, p, testFiles)
			test.set(p)
			s := newEmptyStore(t)
			if _, err := newPullClient(t).Pull(t.Context(), s, img.name, PullOptions{}); err != nil {
				t.Fatal(err)
			}
			img.checkWhole(t, s)
		})
	}
}

// oncePerPart applies do to the first request for each part, and handles the others normally. So a worker cannot use up
// its attempts.
func oncePerPart(do rt.Action) rt.Action {
	var seen sync.Map
	return func(x *rt.Exchange) {
		var start int64
		fmt.Sscanf(x.R.Header.Get("Range"), "bytes=%d-", &start)
		if _, again := seen.LoadOrStore(start/testTuning.minPart, true); again {
			x.Handle()
			return
		}
		do(x)
	}
}

// stall sends n bytes of the response's body and then nothing.
func stall(n int) rt.Action {
	return func(x *rt.Exchange) {
		rec := x.Record()
		body := rec.Body.Bytes()
		x.Replay(rec, body[:min(n, len(body))])
		_ = http.NewResponseController(x.W).Flush()
		select {
		case <-x.R.Context().Done():
		case <-time.After(10 * time.Second):
		}
	}
}

// drip sends a response a few bytes at a time, until the client disconnects.
func drip(x *rt.Exchange) {
	rec := x.Record()
	body := rec.Body.Bytes()
	x.Replay(rec, nil)
	for len(body) > 0 && x.R.Context().Err() == nil {
		n := min(10, len(body))
		x.W.Write(body[:n])
		_ = http.NewResponseController(x.W).Flush()
		body = body[n:]
		time.Sleep(10 * time.Millisecond)
	}
}

// TestPullFails: permanent faults give one error, and nothing wrong becomes visible.
func TestPullFails(t *testing.T) {
	large, small := testFiles["model-a.safetensors"], testFiles["model-b.safetensors"]
	altered := bytes.Clone(small)
	altered[17] ^= 1
	for _, test := range []struct {
		name string
		set  func(p *rt.Peer)
		is   error
		says []string
	}{
		{"no such tag", func(p *rt.Peer) {
			p.On("", rt.ManifestRoute, rt.RefuseWith(404, "MANIFEST_UNKNOWN"))
		}, remote.ErrNotFound,
			[]string{"team/model", "MANIFEST_UNKNOWN"}},
		{"no such blob", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, rt.RefuseWith(404, "BLOB_UNKNOWN")).Of(string(digest.FromBytes(small)))
		}, remote.ErrNotFound,
			[]string{string(digest.FromBytes(small)), "model-b.safetensors", "404"}},
		{"no such large blob", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, rt.RefuseWith(404, "BLOB_UNKNOWN")).Of(string(digest.FromBytes(large)))
		}, remote.ErrNotFound,
			[]string{string(digest.FromBytes(large)), "404"}},
		{"denied", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, rt.RefuseWith(403, "DENIED"))
		}, remote.ErrUnauthorized, []string{"DENIED"}},
		{"altered", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, rt.Flip(17)).Of(string(digest.FromBytes(small)))
		}, remote.ErrDigest,
			[]string{string(digest.FromBytes(small)), string(digest.FromBytes(altered)), "40000 bytes"}},
		{"altered parts", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, rt.Flip(17)).Of(string(digest.FromBytes(large)))
		}, remote.ErrDigest,
			[]string{string(digest.FromBytes(large)), "1000000 bytes"}},
		{"shorter", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) { x.W.Write(small[:1000]) }).Of(string(digest.FromBytes(small)))
		}, remote.ErrDigest, []string{"1000 bytes", "40000"}},
		{"longer in pieces", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
				x.W.Write(small)
				http.NewResponseController(x.W).Flush()
				x.W.Write([]byte("more"))
			}).Of(string(digest.FromBytes(small)))
		}, remote.ErrDigest, []string{"more than the 40000"}},
		{"always 500", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, rt.RefuseWith(500, "UNKNOWN"))
		}, nil, []string{"500"}},
		{"always cut at the same place", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) { x.R.Header.Del("Range"); rt.CutResponse(3000)(x) })
		}, remote.ErrInterrupted, nil},
		{"an unrequested encoding", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
				x.W.Header().Set("Content-Encoding", "br")
				x.W.Write([]byte("x"))
			})
		}, remote.ErrUnsupported, []string{`"br"`}},
		{"damaged gzip", func(p *rt.Peer) {
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
				x.W.Header().Set("Content-Encoding", "gzip")
				x.W.Write([]byte("x"))
			})
		}, remote.ErrInterrupted, nil},
		{"a manifest of another digest", func(p *rt.Peer) {
			p.On("GET", rt.ManifestRoute, func(x *rt.Exchange) {
				x.W.Header().Set("Docker-Content-Digest", string(digest.FromString("x")))
				x.W.Write([]byte(`{"layers":[]}`))
			})
		}, remote.ErrDigest, nil},
		{"an invalid manifest", func(p *rt.Peer) {
			p.On("GET", rt.ManifestRoute,
				func(x *rt.Exchange) {
					x.W.Write([]byte(`{"layers":[{"digest":"sha256:../../etc/passwd","size":3}]}`))
				})
		}, manifest.ErrInvalidManifest, nil},
		{"larger than any disk", func(p *rt.Peer) {
			p.On("GET", rt.ManifestRoute, func(x *rt.Exchange) {
				var layers []string // each of the maximum size
				for i := range 2000 {
					layers = append(layers, fmt.Sprintf(`{"digest":%q,"size":%d}`,
						digest.FromString(fmt.Sprint(i)), int64(limits.BlobSize)))
				}
				fmt.Fprintf(x.W, `{"schemaVersion":2,"config":{"digest":%q,"size":2},"layers":[%s]}`,
					digest.FromString("{}"), strings.Join(layers, ","))
			})
		}, manifest.ErrNoSpace, []string{"INGOT_HOME"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := rt.New(t)
			img := serve(t, p, testFiles)
			test.set(p)
			s := newEmptyStore(t)
			_, err := newPullClient(t).Pull(t.Context(), s, img.name, PullOptions{})
			if err == nil {
				t.Fatal("no error")
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%v is not: %v", err, test.is)
			}
			for _, word := range test.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v does not say %q", err, word)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("several lines: %v", err)
			}
			img.checkAbsent(t, s)
		})
	}
}

// TestPullFollowsRedirects: blobs are fetched from where the registry redirects to, in parts if that server supports
// range requests.
func TestPullFollowsRedirects(t *testing.T) {
	for _, ranges := range []bool{true, false} {
		t.Run(fmt.Sprint("ranges ", ranges), func(t *testing.T) {
			p := rt.New(t)
			img := serve(t, p, testFiles)
			var mu sync.Mutex
			parts := 0
			store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "" {
					t.Error("credentials went to another host")
				}
				if !ranges {
					r.Header.Del("Range")
				}
				mu.Lock()
				if r.Header.Get("Range") != "" {
					parts++
				}
				mu.Unlock()
				blob := p.Blob("team/model", digest.Digest(strings.TrimPrefix(r.URL.Path, "/")))
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(blob))
			}))
			defer store.Close()
			p.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
				rt.Respond(307, "Location", store.URL+"/"+x.Ref+"?signature=secret")(x)
			})
			s := newEmptyStore(t)
			if _, err := newPullClient(t).Pull(t.Context(), s, img.name, PullOptions{}); err != nil {
				t.Fatal(err)
			}
			img.checkWhole(t, s)
			if ranges != (parts == 12) { // ten of one blob, two of the other
				t.Errorf("%d parts", parts)
			}
		})
	}
}

// TestPullRetryAfter: a pull waits for the Retry-After of the registry.
func TestPullRetryAfter(t *testing.T) {
	p := rt.New(t)
	img := serve(t, p, map[string][]byte{"a": []byte("a")})
	p.Once("GET", rt.BlobRoute, rt.Respond(429, "Retry-After", "7")).Of(string(digest.FromString("a")))
	c := newPullClient(t)
	var waited []time.Duration
	c.conn.Sleep = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	if _, err := c.Pull(t.Context(), newEmptyStore(t), img.name, PullOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(waited) != 1 || waited[0] < 7*time.Second || waited[0] > 10*time.Second {
		t.Errorf("waited %v", waited)
	}
}

// TestPullRenewsItsToken: a token that expires during a pull is renewed, and the bytes received before are kept.
func TestPullRenewsItsToken(t *testing.T) {
	p := rt.New(t)
	img := serve(t, p, testFiles)
	var mu sync.Mutex
	token, uses, given := 0, 0, 0
	p.On("", rt.AnyRoute, func(x *rt.Exchange) {
		mu.Lock()
		if x.Route == rt.OtherRoute && x.R.URL.Path == "/token" {
			token++
			given++
			uses = 0
			fmt.Fprintf(x.W, `{"token":"t%d"}`, token)
			mu.Unlock()
			return
		}
		ok := x.R.Header.Get("Authorization") == fmt.Sprint("Bearer t", token) && uses < 6
		uses++
		mu.Unlock()
		if !ok {
			x.W.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="test"`, p.Server.URL))
			x.Fail(401, "UNAUTHORIZED")
			return
		}
		x.Handle()
	})
	s := newEmptyStore(t)
	c := newPullClient(t, func(o *Options) { o.Concurrency = 1 })
	if _, err := c.Pull(t.Context(), s, img.name, PullOptions{}); err != nil {
		t.Fatal(err)
	}
	img.checkWhole(t, s)
	if given < 2 {
		t.Errorf("%d token requests: no token expired", given)
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

// TestPullCorruptPartial: corrupt data left by an earlier run is not counted as the registry's fault.
func TestPullCorruptPartial(t *testing.T) {
	p := rt.New(t)
	img := serve(t, p, testFiles)
	large := digest.FromBytes(testFiles["model-a.safetensors"])
	s := newEmptyStore(t)
	partial := filepath.Join(s.Root(), "ingest", large.Encoded()+".part")
	if err := os.WriteFile(partial, rt.Noise(7, 500_001), 0o644); err != nil {
		t.Fatal(err)
	}
	p.Once("GET", rt.BlobRoute, rt.Flip(2)).Of(string(large))
	if _, err := newPullClient(t).Pull(t.Context(), s, img.name, PullOptions{}); err != nil {
		t.Fatal(err)
	}
	img.checkWhole(t, s)
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
				`"layers":[]}`, digest.FromString("{}")))
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

func TestContentRange(t *testing.T) {
	for value, want := range map[string]struct {
		r     ingest.Range
		total int64
		ok    bool
	}{
		"bytes 0-0/1":     {ingest.Range{Start: 0, End: 1}, 1, true},
		"bytes 5-9/*":     {ingest.Range{Start: 5, End: 10}, -1, true},
		" Bytes 5-9/100 ": {ingest.Range{Start: 5, End: 10}, 100, true},
		"bytes */100":     {},
		"bytes 9-5/100":   {},
		"bytes -5/100":    {},
		"items 0-1/2":     {},
		"":                {},
		"bytes 0-1/x":     {},
		"bytes 0-1":       {},
		"bytes 0-9223372036854775807/9223372036854775807": {},
	} {
		r, total, ok := contentRange(value)
		if ok != want.ok || ok && (r != want.r || total != want.total) {
			t.Errorf("%q: %v of %d, %v", value, r, total, ok)
		}
	}
}
