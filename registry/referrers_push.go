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
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Most levels of referrers of referrers that are followed.
const maxReferrerDepth = 8

// PushReferrers sends what the store knows about a manifest to the repository of dst: its referrers, and theirs. It
// gives their number. Push does this too.
func (c *Client) PushReferrers(ctx context.Context, s *manifest.Store, dst manifest.Name, subject digest.Digest) (int, error) {
	n, err := c.pushReferrers(ctx, s, dst, subject)
	if err != nil {
		return n, fmt.Errorf("push what refers to %s to %s/%s: %w", subject, dst.Host, dst.Path, err)
	}
	return n, nil
}

func (c *Client) pushReferrers(ctx context.Context, s *manifest.Store, dst manifest.Name, subject digest.Digest) (int, error) {
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

// attachment is a manifest that refers to another.
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

// attached lists what the store has about a manifest, what is about that, and so on; a subject comes before its referrers.
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

// sendAttached puts manifests by their digest, and sees to it that the registry lists them.
func (p *pusher) sendAttached(ctx context.Context, list []attachment) error {
	unlisted := map[digest.Digest][]ocispec.Descriptor{}
	var subjects []digest.Digest
	for _, a := range list {
		listed, err := p.r.putManifest(ctx, string(a.Digest), a.doc)
		if err != nil {
			return fmt.Errorf("manifest %s, which refers to %s: %w", a.Digest, a.subject, err)
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

// PushReferrer sends one manifest that has a subject, and its small blobs, to the repository of dst.
func (c *Client) PushReferrer(ctx context.Context, dst manifest.Name, mediaType string, m []byte, blobs ...[]byte) (digest.Digest, error) {
	d, err := c.pushReferrer(ctx, dst, mediaType, m, blobs)
	if err != nil {
		return "", fmt.Errorf("push to %s/%s: %w", dst.Host, dst.Path, err)
	}
	return d, nil
}

func (c *Client) pushReferrer(ctx context.Context, dst manifest.Name, mediaType string, m []byte, blobs [][]byte) (digest.Digest, error) {
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

// referrersTag is the tag of the index that stands for the referrers API (distribution-spec v1.1.1, "Referrers Tag Schema"). A
// sha256 digest needs none of the replacements that it describes.
func referrersTag(subject digest.Digest) string {
	return string(subject.Algorithm()) + "-" + subject.Encoded()
}

// How often the referrers tag is written again because somebody else was faster.
const maxTagTries = 12

// tagReferrers adds manifests to the index of the referrers tag. Others may do the same at this moment, and registries have
// no lock: where the registry gives an entity tag, the index is replaced only as it was read; elsewhere it is read again after
// longer than somebody who had read it before may take to write it.
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
		if err := r.c.sleep(ctx, min(wait, 3*time.Second)); err != nil {
			return err
		}
	}
	return fmt.Errorf("tag %s keeps changing while it is written, try again: %w", referrersTag(subject), ErrInterrupted)
}

// referrersIndex reads the index of the referrers tag, empty when there is none.
func (r *repository) referrersIndex(ctx context.Context, subject digest.Digest) (*indexPage, error) {
	page, err := r.getIndex(ctx, r.url("manifests", referrersTag(subject)))
	switch {
	case errors.Is(err, ErrNotFound):
		return &indexPage{}, nil
	case errors.Is(err, errNoReferrersAPI):
		return nil, fmt.Errorf("tag %s is not an image index, remove it: %w", referrersTag(subject), manifest.ErrInvalidManifest)
	}
	return page, err
}

// putReferrersIndex writes the index with more entries. What it holds beside entries stays.
func (r *repository) putReferrersIndex(ctx context.Context, subject digest.Digest, page *indexPage, add []ocispec.Descriptor) error {
	index := page.index
	index.Versioned = specs.Versioned{SchemaVersion: 2}
	index.MediaType = ocispec.MediaTypeImageIndex
	index.Manifests = append(slices.Clone(index.Manifests), add...)
	b, err := json.Marshal(index)
	if err != nil {
		return err
	}
	if len(b) > manifest.MaxManifestSize {
		return fmt.Errorf("tag %s would have %d bytes, the limit is %d: %w", referrersTag(subject), len(b), manifest.MaxManifestSize, manifest.ErrTooLarge)
	}
	a := r.c.attempts()
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

// changed reports whether the registry refused to replace what is no longer what was read.
func isConflict(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && (status.Status == http.StatusPreconditionFailed || status.Status == http.StatusConflict)
}
