package certify

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/attest"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/certificate"
	"github.com/ingotml/ingot/runtime/measure"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ErrUnfit reports a comparison that is not certified because of the texts that were read before.
var ErrUnfit = errors.New("the comparison cannot be certified")

// unfit is an error that matches ErrUnfit, with a message of its own.
type unfit struct{ error }

func (unfit) Is(target error) bool { return target == ErrUnfit }
func (u unfit) Unwrap() error      { return u.error }

// Comparison is a measured comparison of an image with a base.
type Comparison struct {
	Program string // that compared, with its version
	Images  measure.Images
	Text    string
	Chosen  bool // the types of the image were chosen over the text
	Report  quality.Report
	// Texts are those of calibrations that did not read the built-in one, and Searched those that types were searched
	// over.
	Texts, Searched []string
	Key             *sigstore.PrivateKey // nil does not sign
}

// Stored certifies a comparison of two images of the store, and stores the certificate.
func (c Comparison) Stored(ctx context.Context, entry, base *store.Entry) (*attest.Attestation, error) {
	raw, err := c.Images.Store.ResolveRaw(ctx, entry.Name)
	if err != nil {
		return nil, err
	}
	calibrations, seen, err := c.calibrationsOf(ctx, entry)
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", entry.Name, err)
	}
	d := raw.Descriptor
	subject := ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
	a, err := c.attach(ctx, subject, entry, base, calibrations, seen)
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", entry.Name, err)
	}
	return a, nil
}

// Candidate certifies a comparison of an image that is about to be stored under a name with itself before it was
// quantized. It stores the certificate. If nothing was quantized, it returns nil without an error.
func (c Comparison) Candidate(
	ctx context.Context, name manifest.Name, made convert.Candidate,
) (*attest.Attestation, error) {
	subject, err := describe(made.Image)
	if err != nil {
		return nil, err
	}
	base, err := describe(made.Plain)
	if err != nil {
		return nil, err
	}
	if subject.Digest == base.Digest {
		return nil, nil
	}
	entry := &store.Entry{Name: name, Image: made.Image, Digest: subject.Digest}
	plain := &store.Entry{Name: name, Image: made.Plain, Digest: base.Digest}
	var calibrations []certificate.Calibration
	var seen []string
	if made.Statistics != "" {
		if seen, err = c.seen(ctx, entry, made.StatisticsText); err != nil {
			return nil, unfit{err}
		}
		calibrations = []certificate.Calibration{{Statistics: made.Statistics, Text: made.StatisticsText}}
	}
	return c.attach(ctx, subject, entry, plain, calibrations, append(seen, c.Searched...))
}

// describe returns the descriptor of the manifest that an image will have in the store.
func describe(img manifest.Image) (ocispec.Descriptor, error) {
	b, _, err := manifest.EncodeModelPack(img)
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(b), Size: int64(len(b))},
		err
}

// attach stores a certificate beside the manifest of which it is given the descriptor. seen are the texts that the
// calibrations and searches read.
func (c Comparison) attach(
	ctx context.Context, subject ocispec.Descriptor, entry, base *store.Entry, calibrations []certificate.Calibration,
	seen []string,
) (*attest.Attestation, error) {
	err := certificate.CheckOverlap(c.Text, seen)
	if errors.Is(err, certificate.ErrOverlap) {
		return nil, unfit{err}
	}
	if err != nil {
		return nil, err
	}
	o, info := c.Images.Options, c.Images.Thread.Info()
	made := certificate.Certificate{
		Program:     c.Program,
		Weights:     statistics.Weights(entry.Image),
		Base:        certificate.Image{Digest: base.Digest, Weights: statistics.Weights(base.Image)},
		Text:        certificate.TextOf(c.Text),
		Calibration: calibrations,
		Options: certificate.Options{Float32: o.Float32, Window: c.Images.WindowTokens(),
			Engine: fmt.Sprintf("MLX %s, %s", info.Version, info.Flavour)},
		Figures: c.Report,
	}
	made.Text.Chosen = c.Chosen
	if o.KV != runtime.KVPlain {
		made.Options.KVType = string(o.KV)
	}
	predicate, err := made.Encode()
	if err != nil {
		return nil, err
	}
	if _, err := certificate.Parse(predicate, subject.Digest); err != nil {
		return nil, err
	}
	a, err := attest.New(c.Key, subject, certificate.PredicateType, predicate)
	if err != nil {
		return nil, err
	}
	return a, a.Store(ctx, c.Images.Store)
}
