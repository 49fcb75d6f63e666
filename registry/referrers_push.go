package registry

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
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

// attachment is a referrer with its subject.
type attachment struct {
	ocispec.Descriptor
	subject digest.Digest
	doc     remote.Manifest
}

func manifestsOf(list []attachment) []remote.Manifest {
	docs := make([]remote.Manifest, len(list))
	for i, a := range list {
		docs[i] = a.doc
	}
	return docs
}

// attached lists the referrers of a manifest at the source, their referrers, and so on. A subject comes before its
// referrers.
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
			list, err := p.from.referrers(ctx, s)
			if err != nil {
				return nil, err
			}
			for _, d := range list {
				if seen[d.Digest] {
					continue
				}
				seen[d.Digest] = true
				b, err := p.from.manifest(ctx, d.Digest)
				if err != nil {
					return nil, err
				}
				all = append(all, attachment{d, s, remote.Manifest{MediaType: d.MediaType, Digest: d.Digest, Bytes: b}})
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
		listed, err := p.r.PutManifest(ctx, string(a.Digest), a.doc)
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
		if err := p.r.TagReferrers(ctx, s, unlisted[s]); err != nil {
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
	p, err := c.preparePusher(nil, dst, PushOptions{})
	if err != nil {
		return "", err
	}
	if err := p.sendBytes(ctx, blobs); err != nil {
		return "", err
	}
	listed, err := p.r.PutManifest(ctx, string(desc.Digest), remote.Manifest{MediaType: mediaType, Digest: desc.Digest,
		Bytes: m})
	if err == nil && !listed {
		err = p.r.TagReferrers(ctx, doc.Subject.Digest, []ocispec.Descriptor{desc})
	}
	return desc.Digest, err
}
