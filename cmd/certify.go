package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/provenance"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/calibrate"
	"github.com/ingotml/ingot/runtime/certificate"
	"github.com/ingotml/ingot/runtime/measure"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// comparison is what a certificate is about.
type comparison struct {
	images      measure.Images
	entry, base *store.Entry // with the digests of their manifests
	subject     ocispec.Descriptor
	text        string
	chosen      bool // the types were chosen over the text
	report      quality.Report

	calibration []certificate.Calibration
	key         *sigstore.PrivateKey // nil does not sign
}

// certify attaches a certificate to an image in the store. seen are the texts that its calibration read.
func (c comparison) certify(ctx context.Context, seen []string) (*registry.Attestation, error) {
	if err := certificate.CheckOverlap(c.text, seen); err != nil {
		return nil, err
	}
	o, info := c.images.Options, c.images.Thread.Info()
	made := certificate.Certificate{
		Program:     "ingot " + Version,
		Weights:     statistics.Weights(c.entry.Image),
		Base:        certificate.Image{Digest: c.base.Digest, Weights: statistics.Weights(c.base.Image)},
		Text:        certificate.TextOf(c.text),
		Calibration: c.calibration,
		Options: certificate.Options{Float32: o.Float32, Window: c.images.WindowTokens(),
			Engine: fmt.Sprintf("MLX %s, %s", info.Version, info.Flavour)},
		Figures: c.report,
	}
	made.Text.Chosen = c.chosen
	if o.KV != runtime.KVPlain {
		made.Options.KVType = string(o.KV)
	}
	predicate, err := made.Encode()
	if err != nil {
		return nil, err
	}
	if _, err := certificate.Parse(predicate, c.subject.Digest); err != nil {
		return nil, err
	}
	a, err := registry.Attest(c.key, c.subject, certificate.PredicateType, predicate)
	if err != nil {
		return nil, err
	}
	return a, a.Store(ctx, c.images.Store)
}

// calibrationsOf returns the calibrations that the codes of an image depend on, by its provenance records, and the
// texts that they read. files are the texts of calibrations that did not read the built-in one.
func calibrationsOf(
	ctx context.Context, st *store.Store, e *store.Entry, files []string,
) (list []certificate.Calibration, seen []string, err error) {
	records, err := provenance.Read(ctx, st, e.Digest)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range records {
		if r.Statistics == "" {
			continue
		}
		texts, err := calibrationSeen(ctx, st, e, r.StatisticsText, files)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, certificate.Calibration{Statistics: r.Statistics, Text: r.StatisticsText})
		seen = append(seen, texts...)
	}
	return list, seen, nil
}

// calibrationSeen returns the texts with a digest: the built-in ones, by the chat template or without, or files.
func calibrationSeen(
	ctx context.Context, st *store.Store, e *store.Entry, d digest.Digest, files []string,
) (seen []string, err error) {
	builtin, err := calibrationText(ctx, st, e, nil)
	if err != nil {
		return nil, err
	}
	plain, err := calibrate.Builtin(ctx, nil)
	if err != nil {
		return nil, err
	}
	known := [][][]calibrate.Document{builtin, plain}
	if len(files) > 0 {
		own, err := calibrationText(ctx, st, e, files)
		if err != nil {
			return nil, err
		}
		known = append(known, own)
	}
	for _, kinds := range known {
		if calibrate.Digest(kinds) != d {
			continue
		}
		for _, kind := range kinds {
			for _, doc := range kind {
				seen = append(seen, doc.Text)
			}
		}
		return seen, nil
	}
	return nil, errors.New("it was calibrated over another text than the built-in one: name its files, in their order, " +
		"with --calibration-text")
}

// certifyCandidate attaches a certificate to an image that create is about to store. Without one, a note says why.
func (q *qualityCheck) certifyCandidate(ctx context.Context, c convert.Candidate) error {
	subject, err := describeImage(c.Image)
	if err != nil {
		return err
	}
	base, err := describeImage(c.Plain)
	if err != nil {
		return err
	}
	if subject.Digest == base.Digest {
		return nil // nothing was quantized
	}
	made := comparison{
		images: q.images(), text: q.text, chosen: q.chosen, report: *q.report, key: q.key, subject: subject,
		entry: &store.Entry{Name: q.name, Image: c.Image, Digest: subject.Digest},
		base:  &store.Entry{Name: q.name, Image: c.Plain, Digest: base.Digest},
	}
	seen := q.searched
	if c.Statistics != "" {
		texts, err := calibrationSeen(ctx, q.store, made.entry, c.StatisticsText, q.calibrationTexts)
		if err != nil {
			return q.uncertified(err)
		}
		seen = append(seen, texts...)
		made.calibration = []certificate.Calibration{{Statistics: c.Statistics, Text: c.StatisticsText}}
	}
	a, err := made.certify(ctx, seen)
	if errors.Is(err, certificate.ErrOverlap) {
		return q.uncertified(err)
	}
	if err != nil {
		return err
	}
	q.certificate = a.Descriptor.Digest
	return nil
}

// uncertified is an error if a certificate was asked for with a key, and else a note.
func (q *qualityCheck) uncertified(err error) error {
	if q.key != nil {
		return fmt.Errorf("no certificate: %w", err)
	}
	q.a.note("note: no certificate: %v", err)
	return nil
}

// describeImage returns the descriptor of the manifest that an image will have in the store.
func describeImage(img manifest.Image) (ocispec.Descriptor, error) {
	b, _, err := manifest.EncodeModelPack(img)
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(b), Size: int64(len(b))},
		err
}

// certifyAgainst attaches a certificate to the model of verify --against.
func (a *app) certifyAgainst(ctx context.Context, c comparison, o verifyOptions) (digest.Digest, error) {
	var err error
	if o.key != "" {
		if c.key, err = a.privateKey(ctx, o.key); err != nil {
			return "", err
		}
	}
	raw, err := c.images.Store.ResolveRaw(ctx, c.entry.Name)
	if err != nil {
		return "", err
	}
	d := raw.Descriptor
	c.subject = ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
	var seen []string
	if c.calibration, seen, err = calibrationsOf(ctx, c.images.Store, c.entry, o.calibrationTexts); err != nil {
		return "", fmt.Errorf("certify %s: %w", c.entry.Name, err)
	}
	made, err := c.certify(ctx, seen)
	if err != nil {
		return "", fmt.Errorf("certify %s: %w", c.entry.Name, err)
	}
	return made.Descriptor.Digest, nil
}
