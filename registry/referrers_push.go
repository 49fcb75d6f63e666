package registry

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
	"github.com/ingotml/ingot/manifest/store"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxReferrerDepth limits chains of referrers of referrers.
const maxReferrerDepth = 8

// PushReferrers pushes the stored referrers of a manifest, and theirs, to the repository of dst. It returns their
// number. [Client.Push] does this too.
func (c *Client) PushReferrers(ctx context.Context, s *store.Store, dst manifest.Name,
	subject digest.Digest) (int, error) {
	n, err := c.pushReferrers(ctx, s, dst, subject)
	if err != nil {
		return n, fmt.Errorf("push the referrers of %s to %s/%s: %w", subject, dst.Host, dst.Path, err)
	}
	return n, nil
}

func (c *Client) pushReferrers(ctx context.Context, s *store.Store, dst manifest.Name,
	subject digest.Digest) (int, error) {
	p, release, err := c.newPusher(ctx, s, dst, PushOptions{})
	if err != nil {
		return 0, err
	}
	defer release()
	attached, err := p.attached(ctx, subject)
	if err != nil {
		return 0, err
	}
	blobs, err := blobsOf(manifestsOf(attached))
	if err != nil {
		return 0, err
	}
	if err := p.sendBlobs(ctx, blobs); err != nil {
		return 0, err
	}
	return len(attached), p.sendAttached(ctx, attached)
}

// attachment is a stored referrer with its subject.
type attachment struct {
	ocispec.Descriptor
	subject digest.Digest
	doc     Manifest
}

func manifestsOf(list []attachment) []Manifest {
	docs := make([]Manifest, len(list))
	for i, a := range list {
		docs[i] = a.doc
	}
	return docs
}

// attached lists the stored referrers of a manifest, their referrers, and so on. A subject comes before its referrers.
func (p *pusher) attached(ctx context.Context, subject digest.Digest) ([]attachment, error) {
	if p.opts.NoReferrers {
		return nil, nil
	}
	var all []attachment
	seen := map[digest.Digest]bool{subject: true}
	level := []digest.Digest{subject}
	for range maxReferrerDepth {
		var next []digest.Digest
		for _, s := range level {
			list, err := p.s.Referrers(ctx, s, "")
			if err != nil {
				return nil, err
			}
			for _, d := range list {
				if seen[d.Digest] {
					continue
				}
				seen[d.Digest] = true
				b, err := p.s.ReadBlob(d.Digest, manifest.MaxManifestSize)
				if err != nil {
					return nil, err
				}
				all = append(all, attachment{d, s, Manifest{MediaType: d.MediaType, Digest: d.Digest, Bytes: b}})
				next = append(next, d.Digest)
			}
		}
		level = next
	}
	return all, nil
}

// sendAttached pushes referrers by digest. If the registry does not list them by itself, it updates the referrers tags.
func (p *pusher) sendAttached(ctx context.Context, list []attachment) error {
	unlisted := map[digest.Digest][]ocispec.Descriptor{}
	var subjects []digest.Digest
	for _, a := range list {
		listed, err := p.r.putManifest(ctx, string(a.Digest), a.doc)
		if err != nil {
			return fmt.Errorf("referrer %s of %s: %w", a.Digest, a.subject, err)
		}
		if !listed {
			if unlisted[a.subject] == nil {
				subjects = append(subjects, a.subject)
			}
			unlisted[a.subject] = append(unlisted[a.subject], a.Descriptor)
		}
	}
	for _, s := range subjects {
		if err := p.r.tagReferrers(ctx, s, unlisted[s]); err != nil {
			return err
		}
	}
	return nil
}

// PushReferrer pushes a manifest that has a subject, and its small blobs, to the repository of dst.
func (c *Client) PushReferrer(ctx context.Context, dst manifest.Name, mediaType string, m []byte,
	blobs ...[]byte) (digest.Digest, error) {
	d, err := c.pushReferrer(ctx, dst, mediaType, m, blobs)
	if err != nil {
		return "", fmt.Errorf("push to %s/%s: %w", dst.Host, dst.Path, err)
	}
	return d, nil
}

func (c *Client) pushReferrer(ctx context.Context, dst manifest.Name, mediaType string, m []byte,
	blobs [][]byte) (digest.Digest, error) {
	desc, err := manifest.ReferrerDescriptor(mediaType, m)
	if err != nil {
		return "", err
	}
	var doc ocispec.Manifest
	if err := json.Unmarshal(m, &doc); err != nil || doc.Subject == nil {
		return "", fmt.Errorf("manifest without a subject: %w", manifest.ErrInvalidManifest)
	}
	r, err := c.repository(dst, push)
	if err != nil {
		return "", err
	}
	for _, b := range blobs {
		if err := r.putBytes(ctx, b); err != nil {
			return "", err
		}
	}
	listed, err := r.putManifest(ctx, string(desc.Digest), Manifest{MediaType: mediaType, Digest: desc.Digest, Bytes: m})
	if err == nil && !listed {
		err = r.tagReferrers(ctx, doc.Subject.Digest, []ocispec.Descriptor{desc})
	}
	return desc.Digest, err
}

// referrersTag returns the tag of the index that replaces the referrers API. A sha256 digest needs no truncation or
// replacement of characters. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#referrers-tag-schema.
func referrersTag(subject digest.Digest) string {
	return string(subject.Algorithm()) + "-" + subject.Encoded()
}

// maxTagTries limits how often the referrers tag is updated again because another client changed it.
const maxTagTries = 12

// tagReferrers adds manifests to the index of the referrers tag. Other clients may do so concurrently, and registries
// have no locks. If the registry sends an ETag, the index is replaced only if it is unchanged (If-Match). Otherwise
// tagReferrers reads the index again, after a delay that exceeds the time that another client needs between reading and
// writing, and repeats the update if its entries are gone.
func (r *repository) tagReferrers(ctx context.Context, subject digest.Digest, add []ocispec.Descriptor) error {
	if len(add) == 0 {
		return nil
	}
	for try := range maxTagTries {
		start := time.Now()
		page, err := r.referrersIndex(ctx, subject)
		if err != nil {
			return err
		}
		absent := slices.DeleteFunc(slices.Clone(add), func(d ocispec.Descriptor) bool {
			return slices.ContainsFunc(page.index.Manifests, func(e ocispec.Descriptor) bool { return e.Digest == d.Digest })
		})
		if len(absent) == 0 {
			return nil
		}
		err = r.putReferrersIndex(ctx, subject, page, absent)
		if err != nil && !isConflict(err) {
			return err
		}
		wait := 2*time.Since(start) + rand.N(time.Duration(try+1)*20*time.Millisecond)
		if err := r.host.c.sleep(ctx, min(wait, 3*time.Second)); err != nil {
			return err
		}
	}
	return fmt.Errorf("tag %s keeps changing while it is updated; try again: %w", referrersTag(subject), ErrInterrupted)
}

// referrersIndex reads the index of the referrers tag. It is empty if the tag does not exist.
func (r *repository) referrersIndex(ctx context.Context, subject digest.Digest) (*indexPage, error) {
	page, err := r.getIndex(ctx, r.url("manifests", referrersTag(subject)))
	switch {
	case errors.Is(err, ErrNotFound):
		return &indexPage{}, nil
	case errors.Is(err, errNoReferrersAPI):
		return nil, fmt.Errorf("tag %s is not an image index; remove it: %w",
			referrersTag(subject), manifest.ErrInvalidManifest)
	}
	return page, err
}

// putReferrersIndex writes the index with more entries. Its other fields are preserved.
func (r *repository) putReferrersIndex(ctx context.Context, subject digest.Digest, page *indexPage,
	add []ocispec.Descriptor) error {
	index := page.index
	index.Versioned = specs.Versioned{SchemaVersion: 2}
	index.MediaType = ocispec.MediaTypeImageIndex
	index.Manifests = append(slices.Clone(index.Manifests), add...)
	b, err := json.Marshal(index)
	if err != nil {
		return err
	}
	if len(b) > manifest.MaxManifestSize {
		return fmt.Errorf("tag %s would have %d bytes, the limit is %d: %w",
			referrersTag(subject), len(b), manifest.MaxManifestSize, manifest.ErrTooLarge)
	}
	a := r.host.c.attempts()
	for {
		err := r.putIfUnchanged(ctx, subject, page.etag, b)
		if err == nil || isConflict(err) {
			return err
		}
		if err = a.backoff(ctx, err); err != nil {
			return err
		}
	}
}

// putIfUnchanged replaces the index of the referrers tag, if it still has this ETag. Without an ETag, it always does.
func (r *repository) putIfUnchanged(ctx context.Context, subject digest.Digest, etag string, b []byte) error {
	req, err := r.request(ctx, http.MethodPut, r.url("manifests", referrersTag(subject)), bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", ocispec.MediaTypeImageIndex)
	if etag != "" {
		req.Header.Set("If-Match", etag)
	}
	resp, err := r.do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return expect(resp, http.StatusCreated, http.StatusOK, http.StatusAccepted)
}

// isConflict reports whether the registry refused to replace an index that another client has changed.
func isConflict(err error) bool {
	var status *StatusError
	return errors.As(err, &status) &&
		(status.Status == http.StatusPreconditionFailed || status.Status == http.StatusConflict)
}
