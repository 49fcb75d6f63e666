package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// walk reads the manifests that lead from the root, and lists their blobs.
func (x *check) walk(ctx context.Context, root remote.Manifest) error {
	blobs := map[digest.Digest]bool{}
	seen := map[digest.Digest]bool{root.Digest: true}
	queue := []remote.Manifest{root}
	var read int64
	for len(queue) > 0 {
		m := queue[0]
		queue = queue[1:]
		x.report.Manifests++
		list, err := manifest.Blobs(m.Bytes)
		if err != nil {
			return fmt.Errorf("manifest %s: %w", m.Digest, err)
		}
		for _, d := range list {
			if !blobs[d.Digest] {
				blobs[d.Digest] = true
				x.all = append(x.all, d)
			}
		}
		children, err := x.children(ctx, m)
		if err != nil {
			return err
		}
		for _, d := range children {
			if seen[d.Digest] {
				continue
			}
			seen[d.Digest] = true
			child, err := x.manifest(ctx, d)
			if err != nil {
				return err
			}
			if child == nil {
				continue
			}
			if read += int64(len(child.Bytes)); read > limits.CopyManifests {
				return fmt.Errorf("the image and its referrers have more than %d MiB of manifests: %w",
					limits.CopyManifests>>20, manifest.ErrTooLarge)
			}
			queue = append(queue, *child)
		}
	}
	slices.SortStableFunc(x.all, func(a, b ocispec.Descriptor) int { return cmp.Compare(b.Size, a.Size) })
	return nil
}

// children lists what an index lists, and the referrers of a manifest.
func (x *check) children(ctx context.Context, m remote.Manifest) ([]ocispec.Descriptor, error) {
	var doc manifest.References
	if err := json.Unmarshal(m.Bytes, &doc); err != nil {
		return nil, fmt.Errorf("manifest %s: %v: %w", m.Digest, err, manifest.ErrInvalidManifest)
	}
	list := doc.Manifests
	if x.o.NoReferrers {
		return list, nil
	}
	attached, err := x.repo.Referrers(ctx, m.Digest, "")
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		x.add(Problem{Kind: Unlisted, Manifest: true, Detail: err.Error(),
			Descriptor: ocispec.Descriptor{MediaType: m.MediaType, Digest: m.Digest, Size: int64(len(m.Bytes))}})
	}
	return append(list, attached...), nil
}

// manifest reads a manifest. One that cannot be read is a problem.
func (x *check) manifest(ctx context.Context, d ocispec.Descriptor) (*remote.Manifest, error) {
	m, err := x.repo.GetManifest(ctx, string(d.Digest))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err == nil && d.Size != int64(len(m.Bytes)) {
		err = fmt.Errorf("it has %d bytes, not %d", len(m.Bytes), d.Size)
	}
	if err == nil {
		return m, nil
	}
	p := problemOf(d, err)
	p.Manifest = true
	if errors.Is(err, manifest.ErrInvalidManifest) || errors.Is(err, manifest.ErrUnknownManifest) {
		p.Kind = Corrupt
	}
	x.add(*p)
	return nil, nil
}
