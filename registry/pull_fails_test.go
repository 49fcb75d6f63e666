package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
)

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
