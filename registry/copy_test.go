package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// copyClient returns a client that never waits, with small timeouts of downloads.
func copyClient(t testing.TB) *Client {
	c := newClient(t, func(o *Options) { o.Concurrency, o.Connection.Attempts = 2, 12 })
	c.tune = testTuning
	return c
}

// An image moves to another registry, with its referrers and theirs, and is as before. A second copy sends nothing.
func TestCopyBetweenRegistries(t *testing.T) {
	to := map[string]string{
		"peer":               rt.New(t).Host(),
		"peer without API":   func() string { p := rt.New(t); p.NoReferrers = true; return p.Host() }(),
		"olareg":             olaregHost(t, nil, nil),
		"olareg without API": olaregHost(t, withoutAPI, nil),
	}
	from, s, c := rt.New(t), rt.NewStore(t), copyClient(t)
	name, want := rt.PutModel(t, s, "m", 3*mib, 70000, 0, 8)
	signature := rt.Attach(t, s, want, reportType, "signed")
	below := rt.Attach(t, s, signature.Digest, "text/plain", "about it")
	if _, err := c.Push(t.Context(), s, name, from.Name("team/m:v1"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	for registry, host := range to {
		t.Run(registry, func(t *testing.T) {
			dst := mustName(t, host+"/other/m:v2")
			got, err := c.Copy(t.Context(), from.Name("team/m:v1"), dst, PushOptions{ChunkSize: mib})
			if err != nil || got != want {
				t.Fatalf("%s, %v, want %s", got, err, want)
			}
			wantReferrers(t, c, dst, want, "", signature)
			wantReferrers(t, c, dst, signature.Digest, "", below)
			check := rt.NewStore(t)
			if r, err := c.Pull(t.Context(), check, dst, PullOptions{}); err != nil || r.Digest != want {
				t.Errorf("pulled %+v, %v", r, err)
			}
			_, served := from.Traffic()
			got, err = c.Copy(t.Context(), from.Name("team/m@"+want.String()), dst, PushOptions{})
			if err != nil || got != want {
				t.Errorf("%s, %v", got, err)
			}
			if _, again := from.Traffic(); again != served {
				t.Errorf("a second copy read %d bytes", again-served)
			}
			plain := mustName(t, host+"/plain/m:v2")
			if _, err := c.Copy(t.Context(), from.Name("team/m:v1"), plain, PushOptions{NoReferrers: true}); err != nil {
				t.Error(err)
			}
			wantReferrers(t, c, plain, want, "")
		})
	}
}

// Within a registry, blobs are mounted; they are streamed if the registry does not.
func TestCopyMounts(t *testing.T) {
	for _, mounts := range []bool{true, false} {
		p, s, c := rt.New(t), rt.NewStore(t), copyClient(t)
		name, want := rt.PutModel(t, s, "m", 3*mib, 70000, 8)
		p.Serve(s, name, "team/m", "v1")
		if !mounts {
			p.On("POST", rt.BeginRoute, func(x *rt.Exchange) { x.R.URL.RawQuery = ""; x.Handle() })
		}
		for _, dst := range []manifest.Name{p.Name("other/m:v1"), p.Name("team/m:v2")} {
			if got, err := c.Copy(t.Context(), p.Name("team/m:v1"), dst, PushOptions{}); err != nil || got != want {
				t.Fatalf("%s: %s, %v", dst, got, err)
			}
			p.Check(dst.Path, dst.Tag, want)
		}
		if received, _ := p.Traffic(); (received == 0) != mounts {
			t.Errorf("mounts %v: %d bytes were sent", mounts, received)
		}
		if open := p.OpenSessions(); len(open) > 0 {
			t.Errorf("uploads are left: %v", open)
		}
	}
}

// A destination that fails as in TestPushFaults gets the same image from a registry.
func TestCopyToFaults(t *testing.T) {
	s := rt.NewStore(t)
	usual, _ := rt.PutModel(t, s, "usual", 3*64*kib+500, 7000, 100)
	for _, f := range allFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			name := usual
			if f.sizes != nil {
				name, _ = rt.PutModel(t, s, strings.NewReplacer(" ", "-", ",", "").Replace(f.name), f.sizes...)
			}
			from, to, c := rt.New(t), rt.New(t), copyClient(t)
			want := from.Serve(s, name, "team/m", "v1")
			f.set(t, to)
			if f.chunk == 0 {
				f.chunk = 64 * kib
			}
			got, err := c.Copy(t.Context(), from.Name("team/m:v1"), to.Name("team/m:v1"),
				PushOptions{ChunkSize: f.chunk, Stall: f.stall})
			if f.want != nil || f.text != "" {
				if err == nil || to.Manifest("team/m", "v1") != nil {
					t.Errorf("%s, %v, want %v", got, err, f.want)
				}
				return
			}
			if err != nil || got != want {
				t.Fatalf("%s, %v, want %s; requests:\n%s", got, err, want, strings.Join(to.Log(), "\n"))
			}
			to.Check("team/m", "v1", want)
			if open := to.OpenSessions(); len(open) > 0 && !f.mayLeaveOpen {
				t.Errorf("open sessions: %v", open)
			}
		})
	}
}

// A source that fails for a while does not matter. One that fails for good ends the copy, without a name.
func TestCopyFromFaults(t *testing.T) {
	const size = 3*64*kib + 500
	ranges := func(x *rt.Exchange) { x.R.Header.Del("Range"); x.Handle() }
	for _, f := range []struct {
		name string
		do   rt.Action
		left int // requests; -1: all
		want error
		text string
	}{
		{"cut", rt.CutResponse(1000), 5, nil, ""},
		{"unavailable", rt.Respond(http.StatusServiceUnavailable), 5, nil, ""},
		{"busy", rt.Respond(http.StatusTooManyRequests, "Retry-After", "1"), 5, nil, ""},
		{"hangs", rt.Hang, 2, nil, ""},
		{"no ranges", ranges, -1, nil, ""},
		{"no ranges, cut", func(x *rt.Exchange) {
			x.R.Header.Del("Range")
			if x.N < 4 {
				rt.CutResponse(70_000)(x)
				return
			}
			x.Handle()
		}, -1, nil, ""},
		{"gone", rt.RefuseWith(http.StatusNotFound, "BLOB_UNKNOWN"), -1, remote.ErrNotFound, "read from http://"},
		{"denied", rt.RefuseWith(http.StatusForbidden, "DENIED"), -1, errAny, "DENIED"},
		{"always unavailable", rt.Respond(http.StatusServiceUnavailable), -1, errAny, "503"},
		{"always cut", rt.CutResponse(0), -1, errAny, "read from http://"},
		{"other bytes", rt.Flip(5), -1, remote.ErrDigest, "the registry sent content with digest sha256:"},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			from, to, s, c := rt.New(t), rt.New(t), rt.NewStore(t), copyClient(t)
			name, _ := rt.PutModel(t, s, "m", size, 7000)
			want := from.Serve(s, name, "team/m", "v1")
			from.On("GET", rt.BlobRoute, f.do).Times(f.left)
			got, err := c.Copy(t.Context(), from.Name("team/m:v1"), to.Name("team/m:v1"), PushOptions{ChunkSize: 64 * kib})
			if f.want == nil {
				if err != nil || got != want {
					t.Fatalf("%s, %v, want %s\n%s", got, err, want, strings.Join(from.Log(), "\n"))
				}
				to.Check("team/m", "v1", want)
				return
			}
			if err == nil || f.want != errAny && !errors.Is(err, f.want) || !strings.Contains(err.Error(), f.text) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %v with %q in one line", err, f.want, f.text)
			}
			if to.Manifest("team/m", "v1") != nil {
				t.Error("the manifest is there")
			}
			// Those of the other blobs may be open: they end with the first, maybe before the answer that names the session.
			if open := to.OpenSessions(); len(open) >= uploadsPerSlot*c.opts.Concurrency {
				t.Errorf("open sessions: %v", open)
			}
		})
	}
}

// A copy that ends in the middle can be run again, and sends no blob twice.
func TestCopyAgain(t *testing.T) {
	from, to, s, c := rt.New(t), rt.New(t), rt.NewStore(t), copyClient(t)
	name, want := rt.PutModel(t, s, "m", 40_000, 30_000, 20_000, 10_000)
	from.Serve(s, name, "team/m", "v1")
	ctx, cancel := context.WithCancel(t.Context())
	to.On("PUT", rt.UploadRoute, func(x *rt.Exchange) {
		if x.N == 2 {
			cancel()
		}
		x.Handle()
	})
	src, dst := from.Name("team/m:v1"), to.Name("team/m:v1")
	if _, err := c.Copy(ctx, src, dst, PushOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if got, err := c.Copy(t.Context(), src, dst, PushOptions{}); err != nil || got != want {
		t.Fatal(got, err)
	}
	to.Check("team/m", "v1", want)
	// Two uploads at a time may have been interrupted.
	if received, _ := to.Traffic(); received > total(t, s, name)+70_000 {
		t.Errorf("%d bytes of %d were sent", received, total(t, s, name))
	}
}

// An index is copied with the images that the source has of those that it lists.
func TestCopyIndex(t *testing.T) {
	from, to, s, c := rt.New(t), rt.New(t), rt.NewStore(t), copyClient(t)
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	for i := range 2 {
		name, want := rt.PutModel(t, s, fmt.Sprintf("m%d", i), 3000+i, 8)
		from.Serve(s, name, "team/m", fmt.Sprintf("part%d", i))
		b := from.Manifest("team/m", want.String())
		index.Manifests = append(index.Manifests, ocispec.Descriptor{
			MediaType: ocispec.MediaTypeImageManifest, Digest: want, Size: int64(len(b)),
		})
	}
	b, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	want := from.PutManifest("team/m", "all", ocispec.MediaTypeImageIndex, b)
	got, err := c.Copy(t.Context(), from.Name("team/m:all"), to.Name("m:all"), PushOptions{})
	if err != nil || got != want {
		t.Fatal(got, err)
	}
	if !bytes.Equal(to.Manifest("m", "all"), b) {
		t.Error("the index differs")
	}
	for _, m := range index.Manifests {
		to.Check("m", m.Digest.String(), m.Digest)
	}
}

// The manifests of a copy are bounded: they are in memory together.
func TestCopyManifests(t *testing.T) {
	p, s, c := rt.New(t), rt.NewStore(t), copyClient(t)
	name, d := rt.PutModel(t, s, "m", 8)
	p.Serve(s, name, "team/m", "v1")
	r, err := c.conn.Repository(p.Name("team/m"), remote.Pull)
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(p.Manifest("team/m", "v1")))
	source := &copySource{c: c, r: r, read: limits.CopyManifests - size}
	if _, err := source.Manifest(t.Context(), d); err != nil {
		t.Errorf("up to the limit: %v", err)
	}
	if _, err := source.Manifest(t.Context(), d); !errors.Is(err, manifest.ErrTooLarge) {
		t.Errorf("beyond the limit: %v", err)
	}
}

// A name without a registry, an image that does not exist, and another encoding are refused.
func TestCopyRefuses(t *testing.T) {
	p, s, c := rt.New(t), rt.NewStore(t), copyClient(t)
	name, _ := rt.PutModel(t, s, "m", 8)
	p.Serve(s, name, "team/m", "v1")
	for _, f := range []struct {
		src, dst manifest.Name
		opts     PushOptions
		want     error
	}{
		{mustName(t, "m"), p.Name("m"), PushOptions{}, remote.ErrNoHost},
		{p.Name("team/m:v1"), mustName(t, "m"), PushOptions{}, remote.ErrNoHost},
		{p.Name("team/m:v9"), p.Name("m"), PushOptions{}, remote.ErrNotFound},
		{p.Name("team/m:v1"), p.Name("m@" + digest.FromString("x").String()), PushOptions{}, remote.ErrDigest},
		{p.Name("team/m:v1"), p.Name("m"), PushOptions{Format: manifest.FormatOllama}, errors.ErrUnsupported},
	} {
		if _, err := c.Copy(t.Context(), f.src, f.dst, f.opts); !errors.Is(err, f.want) {
			t.Errorf("%s to %s: %v, want %v", f.src, f.dst, err, f.want)
		}
	}
}
