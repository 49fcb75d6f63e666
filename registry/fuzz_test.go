package registry

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// FuzzIndex: every descriptor taken from an index, an image or a list of referrers has a digest that can be verified.
func FuzzIndex(f *testing.F) {
	child := func(d digest.Digest, more string) string {
		return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":2%s}`, ocispec.MediaTypeImageManifest, d, more)
	}
	all := strings.Join([]string{
		child(digest.FromString("{}"), `,"platform":{"os":"linux"}`),
		child(digest.SHA512.FromString("{}"), `,"artifactType":"application/spdx+json"`),
		child(digest.FromString("a"), `,"annotations":{"vnd.docker.reference.type":"attestation-manifest"}`),
	}, ",")
	f.Add(ocispec.MediaTypeImageIndex, fmt.Appendf(nil, `{"schemaVersion":2,"manifests":[%s]}`, all), "*.json")
	f.Add("application/vnd.docker.distribution.manifest.list.v2+json",
		fmt.Appendf(nil, `{"schemaVersion":2,"manifests":[%s]}`, all), "")
	f.Add(ocispec.MediaTypeImageManifest, []byte(smallManifest("x")), "")
	layer := fmt.Sprintf(`{"mediaType":"application/vnd.ollama.image.tensor","name":"draft.w","digest":%q,"size":3,`+
		`"annotations":{"org.cncf.model.filepath":"a/b.json"}}`,
		digest.FromString("abc"))
	f.Add("application/vnd.docker.distribution.manifest.v2+json",
		fmt.Appendf(nil, `{"schemaVersion":2,"config":{"digest":%q,"size":2},"layers":[%s]}`,
			digest.FromString("{}"), layer), "b.*")
	f.Fuzz(func(t *testing.T, mediaType string, b []byte, glob string) {
		var page ocispec.Index
		if json.Unmarshal(b, &page) == nil {
			list, err := cleanReferrers(page.Manifests, glob)
			for _, d := range list {
				if err == nil && (manifest.CheckDigest(d.Digest) != nil || d.Size < 0 || d.Size > manifest.MaxManifestSize) {
					t.Fatalf("referrer %+v", d)
				}
			}
		}
		kind, err := manifest.CheckType(mediaType, b)
		if err != nil {
			return
		}
		m := &Manifest{MediaType: kind, Digest: digest.FromBytes(b), Bytes: b}
		list, err := images(m)
		if err != nil || len(list) > limits.IndexManifests || list != nil && !manifest.IsIndex(kind) {
			t.Fatalf("%d images of a %s, %v", len(list), kind, err)
		}
		for _, d := range list {
			if err := manifest.CheckDigest(d.Digest); err != nil {
				t.Fatal(err)
			}
			_ = checkIndexEntry(d, m)
		}
		opts := PullOptions{NoDraft: len(glob)%2 == 0}
		if glob != "" {
			opts.Only = []string{glob}
		}
		wanted, skipped, err := selectLayers(b, opts)
		blobs, bad := manifest.Blobs(b)
		if err == nil && (bad != nil || len(wanted)+len(skipped) != len(blobs)) {
			t.Fatalf("%d wanted, %d not, of %d; %v", len(wanted), len(skipped), len(blobs), bad)
		}
	})
}

// FuzzAddress: a redirect to any Location is refused or leads to an allowed address, and no text about it contains its
// secrets.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"/v2/x?state=s3cret", "https://cdn.example/x?s=s3cret-s3cret#y",
		"http://u:s3cret@10.0.0.1/", "//169.254.169.254/x", "https://[::ffff:7f00:1]:80/",
		"http://[fe80::1%25eth0]/", "https://registry.example:443/", "HTTPS://REGISTRY.example/x", "http://127.1/",
		"https://localhost./", "\x00", "http://a b/?c"} {
		f.Add(s)
	}
	from := &url.URL{Scheme: "https", Host: "registry.example", Path: "/v2/x"}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := newConn(connOptions{Mirrors: []Mirror{}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := c.newHost("registry.example")
		if err != nil {
			t.Fatal(err)
		}
		req := &http.Request{Method: http.MethodGet, URL: from, Header: http.Header{}}
		next, err := h.redirected(req, &http.Response{StatusCode: 302, Header: http.Header{"Location": {s}},
			Body: http.NoBody, Request: req})
		if err != nil || next == nil {
			return
		}
		if next.URL.User != nil || next.URL.Scheme != "https" || next.URL.Host == "" {
			t.Fatalf("%q leads to %s", s, next.URL)
		}
		class, addr := c.literal(next.URL)
		if err := h.checkLiteral(next.URL); err == nil && class != 0 && class != publicAddress && !h.owns(next.URL) {
			t.Fatalf("%q is allowed: %s, %s", s, class, addr)
		}
		if text := displayURL(next.URL); strings.Contains(text, "?") ||
			strings.Contains(redactURLs(text), "@") && next.URL.Path == "" {
			t.Fatalf("%q is displayed as %s", s, text)
		}
	})
}
