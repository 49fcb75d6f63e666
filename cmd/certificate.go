package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/ingotml/ingot/runtime/certificate"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/opencontainers/go-digest"
)

// certificateJSON is a certificate of a model.
type certificateJSON struct {
	Digest string `json:"digest"`               // of the attestation's manifest
	Key    string `json:"signed_key,omitempty"` // hint of the key that is said to have signed it; not verified
	certificate.Certificate
}

// certificates reads the certificates of a model in the store, the last stored first. Those that cannot be used are
// noted.
func (a *app) certificates(ctx context.Context, st *store.Store, image digest.Digest) ([]certificateJSON, error) {
	found, refused, err := registry.StoredAttestations(ctx, st, image,
		registry.AttestationCheck{PredicateType: certificate.PredicateType})
	if err != nil {
		return nil, err
	}
	list := []certificateJSON{}
	for _, f := range found {
		c, err := certificate.Parse(f.Predicate, image)
		if err != nil {
			refused = append(refused, fmt.Errorf("attestation %s: %w", f.Descriptor.Digest, err))
			continue
		}
		list = append(list, certificateJSON{f.Descriptor.Digest.String(), f.Key, *c})
	}
	for _, err := range refused {
		a.note("warning: %v", err)
	}
	return list, nil
}

// printCertificates prints the certificates of a model.
func printCertificates(ctx context.Context, o showOutput, m *shown) error {
	list, err := o.certificates(ctx, m.store, m.raw.Descriptor.Digest)
	switch {
	case err != nil:
		return err
	case o.json:
		return o.printJSON(list)
	case o.template != nil:
		return printEach(o.app, o.template, list...)
	}
	if len(list) == 0 {
		o.note("note: the store has no certificate of %s; `ingot verify %s --against BASE --certify` makes one", m.raw.Name,
			m.raw.Name)
	}
	for i, c := range list {
		if i > 0 {
			fmt.Fprintln(o.out)
		}
		if err := o.printCertificate(c); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printCertificate(c certificateJSON) error {
	w := newTable(a.out)
	w.row("certificate", c.Digest)
	if c.Key != "" {
		w.row("signed", "key "+c.Key+" (`ingot pull --max-kl --key` verifies it)")
	}
	w.row("program", c.Program)
	w.row("base", c.Base.Digest.String())
	text := fmt.Sprintf("%s, %d bytes", c.Text.Digest, c.Text.Bytes)
	if c.Text.Digest == digest.FromString(quality.Text) {
		text += ", the built-in one"
	}
	if c.Text.Chosen {
		text += "; the types were chosen over it"
	}
	w.row("text", text)
	for _, s := range c.Calibration {
		w.row("calibration", fmt.Sprintf("%s, over text %s", s.Statistics, s.Text))
	}
	options := fmt.Sprintf("windows of %d tokens", c.Options.Window)
	if c.Options.Float32 {
		options += ", float32"
	}
	if c.Options.KVType != "" {
		options += ", keys and values in " + c.Options.KVType
	}
	w.row("options", options+"; "+c.Options.Engine)
	if err := w.flush(); err != nil {
		return err
	}
	return a.printFigures(c.Figures)
}

// summary describes a certificate in one line.
func (c certificateJSON) summary() string {
	s := fmt.Sprintf("mean divergence %.3g +- %.2g nats from %s over %d tokens", c.Figures.MeanKL.Value,
		c.Figures.MeanKL.Error, c.Base.Digest.Encoded()[:12], c.Figures.Tokens)
	if c.Key != "" {
		s += ", signed"
	}
	return s
}

// requireCertificate returns the check of a pull: a certificate of the manifest must state a mean divergence of at most
// --max-kl. It stores the certificate before the model is pulled.
func requireCertificate(
	ctx context.Context, client *registry.Client, st *store.Store, name manifest.Name, o pullOptions,
) (func(context.Context, digest.Digest) error, error) {
	want := registry.AttestationCheck{PredicateType: certificate.PredicateType}
	var err error
	if o.key != "" {
		if want.Key, err = publicKey(o.key); err != nil {
			return nil, err
		}
	}
	base, err := baseDigest(ctx, st, o.against)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, d digest.Digest) error {
		found, refused, err := registry.StoredAttestations(ctx, st, d, want)
		if err != nil {
			return err
		}
		if good, _ := goodCertificate(found, refused, d, o.maxKL, base, want.Key); good != nil {
			return nil
		}
		if found, refused, err = client.Attestations(ctx, name, d, want); err != nil {
			return err
		}
		good, err := goodCertificate(found, refused, d, o.maxKL, base, want.Key)
		if err != nil {
			return err
		}
		return good.Store(ctx, st)
	}, nil
}

// goodCertificate returns the first certificate that meets a limit. The error says why there is none.
func goodCertificate(
	found []*registry.Attestation, refused []error, image digest.Digest, maxKL float64, base digest.Digest,
	key *sigstore.PublicKey,
) (*registry.Attestation, error) {
	for _, a := range found {
		c, err := certificate.Parse(a.Predicate, image)
		if err == nil {
			err = c.Meets(maxKL, base)
		}
		if err == nil {
			return a, nil
		}
		refused = append(refused, fmt.Errorf("certificate %s: %w", a.Descriptor.Digest, err))
	}
	by := ""
	if key != nil {
		by = " by key " + key.Hint()
	}
	if len(refused) == 0 {
		return nil, fmt.Errorf("%s has no certificate%s: %w", image, by, certificate.ErrNone)
	}
	var reasons []string
	for _, err := range refused[:min(len(refused), 3)] {
		reasons = append(reasons, err.Error())
	}
	return nil, fmt.Errorf("%s: %w%s: %s", image, certificate.ErrNone, by, strings.Join(reasons, "; "))
}

// baseDigest returns the digest of the base that certificates must name: a model of the store, or a digest.
func baseDigest(ctx context.Context, st *store.Store, base string) (digest.Digest, error) {
	if base == "" || manifest.ValidDigest(digest.Digest(base)) {
		return digest.Digest(base), nil
	}
	name, err := manifest.ParseName(base)
	if err != nil {
		return "", err
	}
	if name.Digest != "" {
		return name.Digest, nil
	}
	raw, err := st.ResolveRaw(ctx, name)
	if errors.Is(err, manifest.ErrNotFound) {
		return "", fmt.Errorf("--against: %w; name a digest instead", err)
	}
	if err != nil {
		return "", err
	}
	return raw.Descriptor.Digest, nil
}
