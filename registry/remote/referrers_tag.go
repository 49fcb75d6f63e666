package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ReferrersTag returns the tag of the index that replaces the referrers API. A sha256 digest needs no truncation or
// replacement of characters. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#referrers-tag-schema.
func ReferrersTag(subject digest.Digest) string {
	return string(subject.Algorithm()) + "-" + subject.Encoded()
}

// maxTagTries limits how often the referrers tag is updated again because another client changed it.
const maxTagTries = 12

// TagReferrers adds manifests to the index of the referrers tag, unless the referrers API lists them: some registries
// have it, but do not say so when a manifest is pushed. Other clients may change the index concurrently, and registries
// have no locks. If the registry sends an ETag, the index is replaced only if it is unchanged (If-Match). Otherwise
// TagReferrers reads the index again, after a delay that exceeds the time that another client needs between reading and
// writing, and repeats the update if its entries are gone.
func (r *Repository) TagReferrers(ctx context.Context, subject digest.Digest, add []ocispec.Descriptor) error {
	if len(add) == 0 {
		return nil
	}
	if list, err := r.listReferrers(ctx, subject, ""); err == nil && len(absentFrom(list, add)) == 0 {
		return nil
	}
	return r.changeReferrersIndex(ctx, subject, func(list []ocispec.Descriptor) []ocispec.Descriptor {
		return append(slices.Clone(list), absentFrom(list, add)...)
	})
}

// UntagReferrer removes a manifest from the index of the referrers tag, if there is one.
func (r *Repository) UntagReferrer(ctx context.Context, subject, referrer digest.Digest) error {
	return r.changeReferrersIndex(ctx, subject, func(list []ocispec.Descriptor) []ocispec.Descriptor {
		return slices.DeleteFunc(slices.Clone(list), func(d ocispec.Descriptor) bool { return d.Digest == referrer })
	})
}

// changeReferrersIndex changes the entries of the referrers tag's index, as described at [Repository.TagReferrers],
// until change leaves their number as it is.
func (r *Repository) changeReferrersIndex(ctx context.Context, subject digest.Digest,
	change func([]ocispec.Descriptor) []ocispec.Descriptor) error {
	var refused *indexPage // that the registry did not let us replace
	for try := range maxTagTries {
		start := time.Now()
		page, err := r.referrersIndex(ctx, subject)
		if err != nil {
			return err
		}
		wanted := change(page.index.Manifests)
		if len(wanted) == len(page.index.Manifests) {
			return nil
		}
		if err = r.putReferrersIndex(ctx, subject, page, wanted); err != nil {
			if !isConflict(err) || refused != nil && refused.digest == page.digest {
				return err // no other client has changed the index: the tag is immutable
			}
			refused = page
		}
		wait := 2*time.Since(start) + rand.N(time.Duration(try+1)*20*time.Millisecond)
		if err := r.wait(ctx, min(wait, 3*time.Second)); err != nil {
			return err
		}
	}
	return fmt.Errorf("tag %s keeps changing while it is updated; try again: %w", ReferrersTag(subject), ErrInterrupted)
}

// absentFrom returns those manifests of add that a list lacks.
func absentFrom(list, add []ocispec.Descriptor) []ocispec.Descriptor {
	return slices.DeleteFunc(slices.Clone(add), func(d ocispec.Descriptor) bool {
		return slices.ContainsFunc(list, func(e ocispec.Descriptor) bool { return e.Digest == d.Digest })
	})
}

// referrersIndex reads the index of the referrers tag. It is empty if the tag does not exist.
func (r *Repository) referrersIndex(ctx context.Context, subject digest.Digest) (*indexPage, error) {
	page, err := r.getIndex(ctx, r.URL("manifests", ReferrersTag(subject)))
	switch {
	case errors.Is(err, ErrNotFound):
		return &indexPage{}, nil
	case errors.Is(err, errNotIndex):
		return nil, fmt.Errorf("tag %s is not an image index; remove it: %w",
			ReferrersTag(subject), manifest.ErrInvalidManifest)
	}
	return page, err
}

// putReferrersIndex writes the index with other entries. Its other fields are preserved.
func (r *Repository) putReferrersIndex(ctx context.Context, subject digest.Digest, page *indexPage,
	manifests []ocispec.Descriptor) error {
	index := page.index
	index.Versioned = specs.Versioned{SchemaVersion: 2}
	index.MediaType = ocispec.MediaTypeImageIndex
	index.Manifests = manifests
	b, err := json.Marshal(index)
	if err != nil {
		return err
	}
	if len(b) > manifest.MaxManifestSize {
		return fmt.Errorf("tag %s would have %d bytes, the limit is %d: %w",
			ReferrersTag(subject), len(b), manifest.MaxManifestSize, manifest.ErrTooLarge)
	}
	_, err = Retry(ctx, r.Attempts(), func() (struct{}, error) {
		return struct{}{}, r.putIfUnchanged(ctx, subject, page.etag, b)
	})
	return err
}

// putIfUnchanged replaces the index of the referrers tag, if it still has this ETag. Without an ETag, it always does.
func (r *Repository) putIfUnchanged(ctx context.Context, subject digest.Digest, etag string, b []byte) error {
	req, err := r.Request(ctx, http.MethodPut, r.URL("manifests", ReferrersTag(subject)), bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", ocispec.MediaTypeImageIndex)
	if etag != "" {
		req.Header.Set("If-Match", etag)
	}
	resp, err := r.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return Expect(resp, http.StatusCreated, http.StatusOK, http.StatusAccepted)
}

// isConflict reports whether the registry refused to replace an index that another client has changed.
func isConflict(err error) bool { return VerdictOf(verdict.TagReferrers, err) == verdict.Look }
