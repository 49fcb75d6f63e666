package fetch

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ingotml/ingot/manifest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/waiting"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// slowSource is a registry that is silent for a while before it sends a blob.
type slowSource struct {
	wait    time.Duration
	content string
}

func (s slowSource) RoundTrip(req *http.Request) (*http.Response, error) {
	r := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}
	if strings.Contains(req.URL.Path, "/blobs/") {
		if err := remote.Sleep(req.Context(), s.wait); err != nil {
			return nil, err
		}
		r.ContentLength, r.Body = int64(len(s.content)), io.NopCloser(strings.NewReader(s.content))
	}
	return r, nil
}

// TestSlowSource: the time that a source takes is no stall of the destination's request.
func TestSlowSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := slowSource{45 * time.Second, "content"}
		c, err := remote.New(remote.Options{Transport: source, Keychain: rt.AnonymousKeychain(), Mirrors: []remote.Mirror{}})
		if err != nil {
			t.Fatal(err)
		}
		name, err := manifest.ParseName("registry.example.com/team/model:v1")
		if err != nil {
			t.Fatal(err)
		}
		repo, err := c.Repository(name, remote.Pull)
		if err != nil {
			t.Fatal(err)
		}
		watch := (&waiting.Host{}).New(0).Watch(t.Context(), 30*time.Second, 1)
		defer watch.Stop()
		d := ocispec.Descriptor{Digest: digest.FromString(source.content), Size: int64(len(source.content))}
		r := Copy(repo, Tuned, Blob{Descriptor: d}).Open(watch.Context(), 0, d.Size)
		defer r.Close()
		b, err := io.ReadAll(r)
		if err != nil || string(b) != source.content || watch.Context().Err() != nil {
			t.Errorf("%q, %v, %v", b, err, watch.Cause(watch.Context().Err()))
		}
	})
}

// TestCopiedDigest: the digest of a copied blob is compared however its bytes are read again after a failure.
func TestCopiedDigest(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 10)
	type piece struct{ at, end int64 }
	for what, pieces := range map[string][]piece{
		"once":                     {{0, 40}, {40, 100}},
		"again from the begin":     {{0, 40}, {0, 40}, {40, 100}},
		"again in larger pieces":   {{0, 40}, {0, 60}, {60, 100}},
		"again in smaller pieces":  {{0, 40}, {20, 30}, {30, 45}, {45, 100}},
		"again from a middle":      {{0, 40}, {25, 70}, {70, 100}},
		"again after the last one": {{0, 99}, {90, 100}},
	} {
		for _, damaged := range []bool{false, true} {
			d := ocispec.Descriptor{Digest: digest.FromBytes(content), Size: int64(len(content))}
			if damaged {
				d.Digest = digest.FromString("other")
			}
			b := newCopied(&Fetcher{}, Blob{Descriptor: d})
			var err error
			for _, p := range pieces {
				if err != nil {
					t.Fatalf("%s: %v before the last piece", what, err)
				}
				err = b.passed(content[p.at:p.end], p.at)
			}
			if errors.Is(err, remote.ErrDigest) != damaged {
				t.Errorf("%s, damaged: %t: %v", what, damaged, err)
			}
		}
	}
}
