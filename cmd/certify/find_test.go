package certify

import (
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/registry/attest"
	"github.com/ingotml/ingot/runtime/certificate"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/opencontainers/go-digest"
)

// The first certificate that meets a requirement is chosen, and otherwise the error says why each does not.
func TestChoose(t *testing.T) {
	image, base := digest.FromString("image"), digest.FromString("base")
	stating := func(kl float64) *attest.Attestation {
		row := quality.Row{Base: 1, Other: 1.2, KL: kl, Top: true}
		c := certificate.Certificate{
			Weights: digest.FromString("w"), Base: certificate.Image{Digest: base, Weights: digest.FromString("v")},
			Text: certificate.TextOf("text"), Figures: quality.Summarize([]quality.Row{row, row}),
		}
		predicate, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return &attest.Attestation{Predicate: predicate}
	}
	damaged := &attest.Attestation{Predicate: []byte("{}")}
	high, low := stating(0.3), stating(0.1)
	for name, c := range map[string]struct {
		want    Requirement
		found   []*attest.Attestation
		refused []error
		chosen  *attest.Attestation
		why     string
	}{
		"none":         {want: Requirement{MaxKL: 1}, why: "has no certificate"},
		"the first":    {want: Requirement{MaxKL: 1}, found: []*attest.Attestation{damaged, high, low}, chosen: high},
		"a lower one":  {want: Requirement{MaxKL: 0.2, Base: base}, found: []*attest.Attestation{high, low}, chosen: low},
		"all too high": {want: Requirement{MaxKL: 0.01}, found: []*attest.Attestation{high, low}, why: "exceeds 0.01"},
		"another base": {want: Requirement{MaxKL: 1, Base: image}, found: []*attest.Attestation{low}, why: "compares with"},
		"damaged":      {want: Requirement{MaxKL: 1}, found: []*attest.Attestation{damaged}, why: "bad certificate"},
		"refused":      {want: Requirement{MaxKL: 1}, refused: []error{errors.New("another key")}, why: "another key"},
	} {
		got, err := c.want.choose(c.found, c.refused, image)
		if got != c.chosen || (err == nil) != (c.why == "") {
			t.Errorf("%s: %p, %v", name, got, err)
		}
		if err != nil && (!errors.Is(err, certificate.ErrNone) || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
}
