package registry

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/opencontainers/go-digest"
)

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
		if _, again := seen.LoadOrStore(start/testTuning.MinPart, true); again {
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
