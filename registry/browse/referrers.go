package browse

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Referrer is an artifact that is attached to a manifest, with the artifacts that are attached to it.
type Referrer struct {
	ocispec.Descriptor
	Referrers []Referrer
}

// Lister lists the referrers of a manifest, of one artifact type unless it is empty.
type Lister func(ctx context.Context, subject digest.Digest, artifactType string) ([]ocispec.Descriptor, error)

// Limits on what is listed: anybody who may push may attach artifacts to artifacts.
const (
	maxDepth     = 8
	maxReferrers = 1000
)

// Referrers lists what is attached to a manifest, of one artifact type unless it is empty, with what is attached to
// that, of any type.
func Referrers(ctx context.Context, list Lister, subject digest.Digest, artifactType string) ([]Referrer, error) {
	return (&tree{list: list}).below(ctx, subject, artifactType, 1)
}

// tree lists referrers recursively.
type tree struct {
	list Lister
	n    int
}

func (t *tree) below(ctx context.Context, subject digest.Digest, artifactType string, depth int) ([]Referrer, error) {
	descs, err := t.list(ctx, subject, artifactType)
	if err != nil {
		return nil, err
	}
	if t.n += len(descs); t.n > maxReferrers {
		return nil, fmt.Errorf("more than %d artifacts are attached (`ingot discover --artifact-type` lists fewer): %w",
			maxReferrers, manifest.ErrTooLarge)
	}
	var all []Referrer
	for _, d := range descs {
		r := Referrer{Descriptor: d}
		if depth < maxDepth {
			if r.Referrers, err = t.below(ctx, d.Digest, "", depth+1); err != nil {
				return nil, err
			}
		}
		all = append(all, r)
	}
	return all, nil
}
