// Package certificate is the format of quality certificates: how far an image was measured to be from its base.
//
// A certificate is the predicate of an in-toto statement whose subject is the image's manifest, so that it names both
// images, the texts and the figures by what they contain. It has no time and no path: the same comparison gives the
// same bytes.
//
// Contract: [Parse] accepts only what a comparison can have found. Whether the signature of a statement is valid, and
// whether its subject is the image, is for package registry to check.
package certificate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/opencontainers/go-digest"
)

// PredicateType is the type of the statement.
const PredicateType = "https://github.com/ingotml/ingot/quality/v1"

// Errors for [errors.Is].
var (
	ErrCertificate = errors.New("bad certificate")
	ErrOverlap     = errors.New("the calibration has seen the text")
	ErrNone        = errors.New("no certificate meets the requirements")
)

// Certificate says what a comparison over a text found.
type Certificate struct {
	Program     string         `json:"program"`
	Weights     digest.Digest  `json:"weights"` // identity of the image's weights, see package statistics
	Base        Image          `json:"base"`
	Text        Text           `json:"text"`
	Calibration []Calibration  `json:"calibration,omitempty"` // that the codes of the image depend on
	Options     Options        `json:"options"`
	Figures     quality.Report `json:"figures"`
}

// Image identifies an image.
type Image struct {
	Digest  digest.Digest `json:"digest"` // of the manifest
	Weights digest.Digest `json:"weights"`
}

// Text identifies the text that both models read.
type Text struct {
	Digest digest.Digest `json:"digest"`
	Bytes  int           `json:"bytes"`
	// Chosen is set if the types of the image were chosen by figures over this text, which flatters them.
	Chosen bool `json:"chosen,omitempty"`
}

// TextOf describes a text.
func TextOf(text string) Text { return Text{Digest: digest.FromString(text), Bytes: len(text)} }

// Calibration identifies statistics of inputs, and the text that they were measured over.
type Calibration struct {
	Statistics digest.Digest `json:"statistics"`
	Text       digest.Digest `json:"text"`
}

// Options are those of the comparison.
type Options struct {
	Float32 bool   `json:"float32,omitempty"`
	KVType  string `json:"kv_type,omitempty"`
	Window  int    `json:"window"` // tokens
	Engine  string `json:"engine"` // version and device
}

// Encode returns the predicate.
func (c *Certificate) Encode() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return manifest.Marshal(c)
}

// Parse parses the predicate of a statement about the image whose manifest has the given digest.
func Parse(b []byte, image digest.Digest) (*Certificate, error) {
	var c Certificate
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrCertificate, err)
	}
	if c.Base.Digest == image {
		return nil, fmt.Errorf("%w: it compares the image with itself", ErrCertificate)
	}
	return &c, c.check()
}

func (c *Certificate) check() error {
	for what, d := range map[string]digest.Digest{
		"weights": c.Weights, "base": c.Base.Digest, "the base's weights": c.Base.Weights, "text": c.Text.Digest,
	} {
		if !manifest.ValidDigest(d) {
			return fmt.Errorf("%w: %s: %q is not a sha256 digest", ErrCertificate, what, manifest.Clip(string(d)))
		}
	}
	for _, s := range c.Calibration {
		if !manifest.ValidDigest(s.Statistics) || !manifest.ValidDigest(s.Text) {
			return fmt.Errorf("%w: the digests of the calibration are damaged", ErrCertificate)
		}
		if s.Text == c.Text.Digest {
			return fmt.Errorf("%w: the calibration read the same text", ErrCertificate)
		}
	}
	f := c.Figures
	for _, e := range []quality.Estimate{f.Perplexity, f.BasePerplexity, f.PerplexityRatio, f.MeanKL, f.Top1, f.Flips} {
		if !(e.Error >= 0) || !(e.Value >= 0) || math.IsInf(e.Value+e.Error, 0) {
			return fmt.Errorf("%w: %v +- %v is not the result of a measurement", ErrCertificate, e.Value, e.Error)
		}
	}
	ratio := f.Perplexity.Value / f.BasePerplexity.Value
	switch {
	case f.Tokens < 1 || f.Perplexity.Value < 1 || f.BasePerplexity.Value < 1,
		!(math.Abs(ratio-f.PerplexityRatio.Value) <= 1e-6*ratio),
		!(f.MedianKL >= 0 && f.MedianKL <= f.KL99 && f.KL99 <= f.MaxKL && f.MeanKL.Value <= f.MaxKL),
		f.Top1.Value > 1 || f.Flips.Value > 1-f.Top1.Value+1e-9:
		return fmt.Errorf("%w: its figures contradict each other", ErrCertificate)
	}
	return nil
}

// Meets returns nil if the mean divergence is at most maxKL, and the base is the given one, or any if none is given.
func (c *Certificate) Meets(maxKL float64, base digest.Digest) error {
	if base != "" && c.Base.Digest != base {
		return fmt.Errorf("it compares with %s, not %s", c.Base.Digest, base)
	}
	if !(c.Figures.MeanKL.Value <= maxKL) {
		return fmt.Errorf("its mean divergence of %.3g nats exceeds %.3g", c.Figures.MeanKL.Value, maxKL)
	}
	return nil
}
