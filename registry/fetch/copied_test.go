package fetch

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

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
