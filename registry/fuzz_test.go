package registry

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/choose"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
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
	f.Add(ocispec.MediaTypeImageManifest, []byte(rt.SmallManifest("x")), "")
	layer := fmt.Sprintf(`{"mediaType":"application/vnd.ollama.image.tensor","name":"draft.w","digest":%q,"size":3,`+
		`"annotations":{"org.cncf.model.filepath":"a/b.json"}}`,
		digest.FromString("abc"))
	f.Add("application/vnd.docker.distribution.manifest.v2+json",
		fmt.Appendf(nil, `{"schemaVersion":2,"config":{"digest":%q,"size":2},"layers":[%s]}`,
			digest.FromString("{}"), layer), "b.*")
	f.Fuzz(func(t *testing.T, mediaType string, b []byte, glob string) {
		var page ocispec.Index
		if json.Unmarshal(b, &page) == nil {
			list, err := remote.CleanReferrers(page.Manifests, glob)
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
		m := &remote.Manifest{MediaType: kind, Digest: digest.FromBytes(b), Bytes: b}
		list, err := choose.Images(m)
		if err != nil || len(list) > limits.IndexManifests || list != nil && !manifest.IsIndex(kind) {
			t.Fatalf("%d images of a %s, %v", len(list), kind, err)
		}
		for _, d := range list {
			if err := manifest.CheckDigest(d.Digest); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = choose.Model(m, func(digest.Digest) (*remote.Manifest, error) { return m, nil }, digest.Digest.String)
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
