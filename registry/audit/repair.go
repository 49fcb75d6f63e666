package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/remote"
	"golang.org/x/sync/errgroup"
)

// repair sends what has a problem from the store, and asks for it again. Manifests come last, since a registry refuses
// those whose blobs it does not have.
func (x *check) repair(ctx context.Context) error {
	for _, manifests := range []bool{false, true} {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(x.c.Concurrency(x.name.Host))
		for i := range x.report.Problems {
			p := &x.report.Problems[i]
			if p.Manifest != manifests || p.Repaired {
				continue
			}
			g.Go(func() error {
				if err := x.fix(ctx, p); err != nil {
					p.Repair = err.Error()
				} else {
					p.Repaired, p.Repair = true, "sent again"
				}
				return context.Cause(ctx)
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// pushAgain pushes an image whose manifest the registry does not have, if the store has it under its name. Otherwise it
// returns lost.
func (x *check) pushAgain(ctx context.Context, lost error) (*remote.Manifest, error) {
	raw, err := x.o.Repair.ResolveRaw(ctx, x.name)
	if errors.Is(err, manifest.ErrNotFound) {
		return nil, lost
	}
	if err != nil {
		return nil, err
	}
	o := registry.PushOptions{NoReferrers: x.o.NoReferrers}
	if _, err := x.c.Push(ctx, x.o.Repair, raw.Name, x.name, o); err != nil {
		return nil, err
	}
	p := problemOf(raw.Descriptor, lost)
	p.Manifest, p.Repaired, p.Repair = true, true, "pushed again"
	x.add(*p)
	return x.repo.GetManifest(ctx, remote.Reference(x.name))
}

var errNotStored = errors.New("the store does not have it")

// fix repairs one problem.
func (x *check) fix(ctx context.Context, p *Problem) error {
	switch {
	case p.Kind == Unlisted:
		return errors.New("there is nothing to send")
	case p.Manifest:
		return x.fixManifest(ctx, p)
	}
	if !x.o.Repair.HasBlob(p.Digest, p.Size) {
		return errNotStored
	}
	if err := x.c.Resend(ctx, x.o.Repair, x.name, p.Descriptor); err != nil {
		return err
	}
	if again := x.blob(ctx, p.Descriptor); again != nil {
		return fmt.Errorf("it was sent again, but the registry keeps what it has (%s): "+
			"remove the blob from the registry's storage, and repair again", again.Kind)
	}
	return nil
}

func (x *check) fixManifest(ctx context.Context, p *Problem) error {
	b, err := x.o.Repair.ReadBlob(p.Digest, manifest.MaxManifestSize)
	if errors.Is(err, manifest.ErrBlobMissing) {
		return errNotStored
	}
	if err != nil {
		return err
	}
	kind, err := manifest.CheckType(p.MediaType, b)
	if err != nil {
		return err
	}
	blobs, err := manifest.Blobs(b)
	if err != nil {
		return err
	}
	for _, d := range blobs {
		if x.blob(ctx, d) == nil {
			continue
		}
		if !x.o.Repair.HasBlob(d.Digest, d.Size) {
			return fmt.Errorf("neither the registry nor the store has its blob %s", d.Digest)
		}
		if err := x.c.Resend(ctx, x.o.Repair, x.name, d); err != nil {
			return err
		}
	}
	m := remote.Manifest{MediaType: kind, Digest: p.Digest, Bytes: b}
	to, err := x.c.Repository(x.name, remote.Push)
	if err != nil {
		return err
	}
	if _, err := to.PutManifest(ctx, string(m.Digest), m); err != nil {
		return err
	}
	if _, err := x.repo.GetManifest(ctx, string(p.Digest)); err != nil {
		return fmt.Errorf("it was sent again, and the registry still fails: %w", err)
	}
	return nil
}
