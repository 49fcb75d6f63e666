package manifest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/encoding"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// FuzzManifest checks with arbitrary manifests, indexes and configs that accepted input respects the limits, and that
// every function that parses manifests returns a result or one of its documented errors.
func FuzzManifest(f *testing.F) {
	packed, packedConfig, err := manifest.EncodeModelPack(sampleImage())
	if err != nil {
		f.Fatal(err)
	}
	img, blobs := storetest.OllamaImage()
	theirs, ollamaConfig, err := ollama.Encode(img, blobs.Read)
	if err != nil {
		f.Fatal(err)
	}
	artifact, err := manifest.EncodeArtifact(manifest.Artifact{Type: "application/spdx+json",
		Subject: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(packed),
			Size: int64(len(packed))},
		Layers: []ocispec.Descriptor{{MediaType: "application/json", Digest: digest.FromString("x"), Size: 1}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ocispec.MediaTypeImageManifest, packed, packedConfig)
	f.Add(manifest.DockerManifest, theirs, ollamaConfig)
	f.Add("", artifact, []byte("{}"))
	f.Add(manifest.DockerManifest, []byte("{"+imageMembers+"}"), []byte("{}"))
	child := fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":2,"platform":{"os":"linux","architecture":"arm64"}}`,
		ocispec.MediaTypeImageManifest, digest.FromString("{}"))
	for _, kind := range []string{ocispec.MediaTypeImageIndex, manifest.DockerList} {
		f.Add(kind, fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"manifests":[%s]}`, kind, child), []byte(nil))
	}
	f.Add("text/plain", []byte(strings.Replace(string(theirs), `"mediaType"`, `"MediaType"`, 1)), ollamaConfig)
	f.Fuzz(func(t *testing.T, mediaType string, b, config []byte) {
		kind, err := manifest.CheckType(mediaType, b)
		if err != nil && !errors.Is(err, manifest.ErrUnknownManifest) && !errors.Is(err, manifest.ErrInvalidManifest) &&
			!errors.Is(err, manifest.ErrTooLarge) {
			t.Fatalf("undocumented error: %v", err)
		}
		if err == nil {
			if again, err := manifest.CheckType(kind, b); err != nil || again != kind {
				t.Fatalf("the second call for %q returns %q, %v", kind, again, err)
			}
		}
		list, err := manifest.Blobs(b)
		seen := map[digest.Digest]bool{}
		for _, d := range list {
			if !manifest.ValidDigest(d.Digest) || d.Size < 0 || d.Size > limits.BlobSize || seen[d.Digest] ||
				len(list) > limits.ManifestBlobs {
				t.Fatalf("blob %+v of %d", d, len(list))
			}
			seen[d.Digest] = true
		}
		if err != nil && list != nil {
			t.Fatalf("blobs with %v", err)
		}
		_, _ = manifest.ReferrerDescriptor(kind, b)
		decode(t, b, config)
		// Correct the config's digest, because a fuzzer cannot find a matching one.
		var doc map[string]json.RawMessage
		if json.Unmarshal(b, &doc) != nil || doc["config"] == nil {
			return
		}
		var c ocispec.Descriptor
		if json.Unmarshal(doc["config"], &c) != nil {
			return
		}
		c.Digest, c.Size = digest.FromBytes(config), int64(len(config))
		if doc["config"], err = json.Marshal(c); err != nil {
			return
		}
		if b, err = json.Marshal(doc); err == nil {
			decode(t, b, config)
		}
	})
}

// decode checks that an image which Decode accepts is valid.
func decode(t *testing.T, b, config []byte) {
	img, err := encoding.Decode(b, config)
	if err != nil {
		return
	}
	if err := img.Check(); err != nil {
		t.Fatalf("decoded an invalid image: %v", err)
	}
}
