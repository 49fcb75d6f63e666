package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// JSON members of images and indexes.
var (
	configMember = fmt.Sprintf(`"schemaVersion":2,"config":{"mediaType":"application/x-config","digest":%q,"size":2}`,
		digest.FromString("{}"))
	imageMembers = configMember + `,"layers":[]`
	indexMembers = `"schemaVersion":2,"manifests":[]`
)

func TestCheckType(t *testing.T) {
	const oci, list = ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex
	for _, tt := range []struct {
		name, received, own, members string
		want                         string
		err                          error
		says                         string
	}{
		{"image", oci, oci, imageMembers, oci, nil, ""},
		{"image with a parameter", oci + "; charset=utf-8", oci, imageMembers, oci, nil, ""},
		{"index", list, list, indexMembers, list, nil, ""},
		{"docker's image", manifest.DockerManifest, manifest.DockerManifest, imageMembers, manifest.DockerManifest, nil, ""},
		{"docker's list", manifest.DockerList, manifest.DockerList, indexMembers, manifest.DockerList, nil, ""},
		{"only its own media type", "text/plain; charset=utf-8", manifest.DockerManifest, imageMembers,
			manifest.DockerManifest, nil, ""},
		{"only the received media type", oci, "", imageMembers, oci, nil, ""},
		{"no type, image", "application/json", "", imageMembers, oci, nil, ""},
		{"no type, index", "", "", indexMembers, list, nil, ""},
		{"null layers", oci, oci, configMember + `,"layers":null`, oci, nil, ""},
		{"an artifact", oci, oci, imageMembers + `,"artifactType":"application/spdx+json"`, oci, nil, ""},

		{"another type", "application/vnd.cyclonedx+json", "", imageMembers, "", manifest.ErrUnknownManifest,
			`"application/vnd.cyclonedx+json"`},
		{"another media type of its own", "", "application/x-secrets", imageMembers, "", manifest.ErrUnknownManifest,
			`"application/x-secrets" is neither an image nor an index`},
		{"docker's schema 1", "application/vnd.docker.distribution.manifest.v1+prettyjws", "", `"schemaVersion":1`, "",
			manifest.ErrUnknownManifest, "v1+prettyjws"},
		{"the withdrawn artifact manifest", "application/vnd.oci.artifact.manifest.v1+json", "", imageMembers, "",
			manifest.ErrUnknownManifest, "artifact"},
		{"two types", oci, manifest.DockerManifest, imageMembers, "", manifest.ErrInvalidManifest,
			oci + `, but its mediaType is "` + manifest.DockerManifest},
		{"an index received as an image", oci, list, indexMembers, "", manifest.ErrInvalidManifest, oci},
		{"another kind received as an image", oci, "application/x-note", imageMembers, "", manifest.ErrInvalidManifest,
			"application/x-note"},
		{"both", oci, oci, imageMembers + `,"manifests":[]`, "", manifest.ErrInvalidManifest, "no manifests"},
		{"both, as an index", list, list, indexMembers + `,"layers":[]`, "", manifest.ErrInvalidManifest,
			"neither config nor layers"},
		{"index with a config", list, list, indexMembers + `,"config":{}`, "", manifest.ErrInvalidManifest,
			"neither config nor layers"},
		{"no config", oci, oci, `"schemaVersion":2,"layers":[]`, "", manifest.ErrInvalidManifest, "needs config"},
		{"no layers", oci, oci, configMember, "", manifest.ErrInvalidManifest, "needs config and layers"},
		{"no manifests", list, list, `"schemaVersion":2`, "", manifest.ErrInvalidManifest, "needs manifests"},
		{"schema version", oci, oci, strings.Replace(imageMembers, `n":2`, `n":1`, 1), "", manifest.ErrInvalidManifest,
			"schema version 1"},
		{"any JSON", "application/json", "", `"secret":"words"`, "", manifest.ErrInvalidManifest, "schema version"},
		{"layers of the wrong JSON type", oci, oci, configMember + `,"layers":{}`, "", manifest.ErrInvalidManifest,
			"manifest: "},
		{"a child of another algorithm", list, list,
			`"schemaVersion":2,"manifests":[{"digest":"sha384:` + strings.Repeat("a", 96) + `","size":1}]`, "",
			manifest.ErrInvalidManifest, "algorithm sha384"},
		{"a child of an unknown algorithm", list, list,
			`"schemaVersion":2,"manifests":[{"digest":"md5:` + strings.Repeat("a", 32) + `","size":1}]`, "",
			manifest.ErrInvalidManifest,
			"md5"},
		{"a child without a digest", list, list, `"schemaVersion":2,"manifests":[{"size":1}]`, "",
			manifest.ErrInvalidManifest,
			`digest ""`},
		{"a child with a negative size", list, list,
			fmt.Sprintf(`"schemaVersion":2,"manifests":[{"digest":%q,"size":-1}]`, digest.FromString("x")), "",
			manifest.ErrInvalidManifest, "-1 bytes"},
	} {
		doc := "{" + tt.members + "}"
		if tt.own != "" {
			doc = fmt.Sprintf(`{"mediaType":%q,%s}`, tt.own, tt.members)
		}
		got, err := manifest.CheckType(tt.received, []byte(doc))
		if !errors.Is(err, tt.err) || tt.err == nil && err != nil || got != tt.want || err != nil &&
			!strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %q, %v; want %q, %v with %q", tt.name, got, err, tt.want, tt.err, tt.says)
		}
	}
	for _, bad := range []string{"", "[]", `"text"`, "null", "1", "{"} {
		if kind, err := manifest.CheckType(oci, []byte(bad)); !errors.Is(err, manifest.ErrInvalidManifest) {
			t.Errorf("%q: %q, %v", bad, kind, err)
		}
	}
}

// TestManifestLimits checks that each limit itself is accepted, and one more is rejected.
func TestManifestLimits(t *testing.T) {
	blobs := func(n int, size int64) []byte {
		var b strings.Builder
		fmt.Fprintf(&b, `{"schemaVersion":2,"config":{"digest":%q,"size":1},"layers":[`, digest.FromString("config"))
		for i := 1; i < n; i++ {
			if i > 1 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"digest":"sha256:%064x","size":%d}`, i, size)
		}
		b.WriteString("]}")
		return []byte(b.String())
	}
	index := func(n int) []byte {
		item := fmt.Sprintf(`{"digest":%q,"size":1}`, digest.FromString("x"))
		return []byte(`{"schemaVersion":2,"manifests":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]}")
	}
	for _, tt := range []struct {
		name  string
		check func(over int) error
	}{
		{"blobs", func(over int) error { _, err := manifest.Blobs(blobs(limits.ManifestBlobs+over, 1)); return err }},
		{"size", func(over int) error { _, err := manifest.Blobs(blobs(2, limits.BlobSize+int64(over))); return err }},
		{"index", func(over int) error { _, err := manifest.CheckType("", index(limits.IndexManifests+over)); return err }},
		{"manifest", func(over int) error {
			doc := "{" + imageMembers
			_, err := manifest.CheckType("", []byte(doc+strings.Repeat(" ", manifest.MaxManifestSize-len(doc)-1+over)+"}"))
			return err
		}},
	} {
		if err := tt.check(0); err != nil {
			t.Errorf("%s at the limit: %v", tt.name, err)
		}
		if err := tt.check(1); !errors.Is(err, manifest.ErrTooLarge) {
			t.Errorf("%s beyond: %v", tt.name, err)
		}
	}
}
