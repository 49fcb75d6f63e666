package encoding

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
)

func TestDecode(t *testing.T) {
	text, err := os.ReadFile("../testdata/modelpack-manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile("../testdata/modelpack-config.json")
	if err != nil {
		t.Fatal(err)
	}
	if img, err := Decode(text, config); err != nil || len(img.Layers) == 0 {
		t.Errorf("%d layers, %v", len(img.Layers), err)
	}
	for _, damaged := range [][]byte{append(config, ' '), []byte(strings.Replace(string(config), "0", "1", 1))} {
		if _, err := Decode(text, damaged); !errors.Is(err, manifest.ErrCorrupt) {
			t.Errorf("another config: %v", err)
		}
	}
}

func TestParse(t *testing.T) {
	const digest = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
	pack := func(version, digest, size string) string {
		return `{"schemaVersion":` + version + `,"mediaType":"application/vnd.oci.image.manifest.v1+json",` +
			`"artifactType":"application/vnd.cncf.model.manifest.v1+json",` +
			`"config":{"mediaType":"application/vnd.cncf.model.config.v1+json","digest":"` + digest + `","size":` + size + `}}`
	}
	for text, want := range map[string]error{
		pack("2", digest, "2"):           nil,
		pack("1", digest, "2"):           manifest.ErrInvalidManifest,
		pack("2", "md5:00", "2"):         manifest.ErrInvalidManifest,
		pack("2", digest, "-1"):          manifest.ErrTooLarge,
		pack("2", digest, "99999999999"): manifest.ErrTooLarge,
		"{":                              manifest.ErrInvalidManifest,
		`{"schemaVersion":2}`:            manifest.ErrUnknownManifest,
		strings.Repeat(" ", manifest.MaxManifestSize+1): manifest.ErrTooLarge,
	} {
		m, err := Parse([]byte(text))
		if !errors.Is(err, want) || want == nil && m.Format != manifest.FormatModelPack {
			t.Errorf("%.200s: %q, %v, want %v", text, m.Format, err, want)
		}
	}
}
