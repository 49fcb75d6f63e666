package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// sendManifests pushes the manifests by digest, and the root under ref last. If there are referrers, the root goes by
// digest before them and gets its tag after them, so that a client that sees the tag also finds the signatures.
func (p *pusher) sendManifests(ctx context.Context, docs []remote.Manifest, attached []attachment, ref string,
	tagged digest.Digest) error {
	root := docs[len(docs)-1]
	if tagged == root.Digest {
		return p.sendAttached(ctx, attached)
	}
	for _, m := range docs[:len(docs)-1] {
		if err := p.sendManifest(ctx, string(m.Digest), m); err != nil {
			return err
		}
	}
	if len(attached) == 0 || ref == string(root.Digest) {
		if err := p.sendRoot(ctx, ref, root); err != nil {
			return err
		}
		return p.sendAttached(ctx, attached)
	}
	err := p.sendRoot(ctx, string(root.Digest), root)
	switch {
	case err == nil:
		if err := p.sendAttached(ctx, attached); err != nil {
			return err
		}
		return p.sendRoot(ctx, ref, root)
	case !isRefusal(err):
		return err
	}
	// The registry takes no manifests by digest, or none without a tag. Artifacts may go before their subject. Those that
	// are refused are tried once more after the tag.
	left, err := p.tryAttached(ctx, attached)
	if err != nil {
		return err
	}
	if err := p.sendRoot(ctx, ref, root); err != nil {
		return err
	}
	return p.sendAttached(ctx, left)
}

// isRefusal reports whether a registry refuses a manifest for another reason than a blob that it lacks.
func isRefusal(err error) bool {
	var status *remote.StatusError
	return errors.As(err, &status) && !status.LacksBlob()
}

// sendRoot pushes the root under its tag or digest. A registry that refuses may have it there, and keep it: tags, and
// manifests, may be immutable.
func (p *pusher) sendRoot(ctx context.Context, ref string, root remote.Manifest) error {
	err := p.sendManifest(ctx, ref, root)
	if !isRefusal(err) {
		return err
	}
	there, headErr := p.r.HeadManifest(ctx, ref)
	switch {
	case headErr == nil && there == root.Digest:
		return nil
	case headErr == nil && there != "" && isImmutable(err):
		return fmt.Errorf("tag %s is immutable and stays at %s; push under another tag: %w", ref, there, err)
	}
	return err
}

// isImmutable reports whether a registry says that a tag cannot be moved. Only the text of an error depends on it.
func isImmutable(err error) bool {
	var status *remote.StatusError
	if !errors.As(err, &status) {
		return false
	}
	text := strings.ToLower(status.Code + " " + status.Message)
	return remote.VerdictOf(verdict.PutManifest, err) == verdict.Look ||
		strings.Contains(text, "immutab") || strings.Contains(text, "overwr") || strings.Contains(text, "already exists")
}

func (p *pusher) sendManifest(ctx context.Context, ref string, m remote.Manifest) error {
	if _, err := p.r.PutManifest(ctx, ref, m); err != nil {
		return fmt.Errorf("manifest %s of %d bytes: %w", m.Digest, len(m.Bytes), err)
	}
	return nil
}

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
	attached, _, err := p.attached(ctx, subject)
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
	left, err := p.tryAttached(ctx, attached)
	if err == nil && len(left) > 0 {
		err = left[0].failed
	}
	return len(attached) - len(left), err
}

// attachment is a referrer with its subject.
type attachment struct {
	ocispec.Descriptor
	subject digest.Digest
	doc     remote.Manifest
	failed  error // why it was left out; nil if it was not
}

// String describes the artifact for people.
func (a attachment) String() string {
	kind := a.ArtifactType
	if a.Digest == "" {
		return fmt.Sprintf("what belongs to %.12s", a.subject.Encoded())
	}
	if kind == sigstore.BundleMediaType && sigstore.PredicateOf(a.Annotations) == sigstore.PredicateType {
		return fmt.Sprintf("signature %.12s", a.Digest.Encoded())
	}
	return fmt.Sprintf("artifact %.12s (%s)", a.Digest.Encoded(), redact.Clip(kind))
}

func manifestsOf(list []attachment) []remote.Manifest {
	docs := make([]remote.Manifest, len(list))
	for i, a := range list {
		docs[i] = a.doc
	}
	return docs
}

// attached lists the referrers of a manifest at the source, their referrers, and so on. A subject comes before its
// referrers. unread are those that a source beside a store does not list or have.
func (p *pusher) attached(ctx context.Context, subject digest.Digest) (all, unread []attachment, err error) {
	if p.opts.NoReferrers {
		return nil, nil, nil
	}
	_, stored := p.from.(Stored) // a store has what it lists, or is damaged
	seen := map[digest.Digest]bool{subject: true}
	level := []digest.Digest{subject}
	for range maxReferrerDepth {
		var next []digest.Digest
		for _, s := range level {
			list, err := p.from.Referrers(ctx, s)
			if err != nil && !stored && ctx.Err() == nil {
				unread = append(unread, attachment{subject: s, failed: err})
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			for _, d := range list {
				if seen[d.Digest] {
					continue
				}
				seen[d.Digest] = true
				a := attachment{Descriptor: d, subject: s}
				b, err := p.from.Manifest(ctx, d.Digest)
				if err != nil && !stored && ctx.Err() == nil {
					a.failed = err
					unread = append(unread, a)
					continue
				}
				if err != nil {
					return nil, nil, err
				}
				a.doc = remote.Manifest{MediaType: d.MediaType, Digest: d.Digest, Bytes: b}
				all = append(all, a)
				next = append(next, d.Digest)
			}
		}
		level = next
	}
	return all, unread, nil
}

// sendAttached pushes referrers. Those that the registry refuses are left out with a note.
func (p *pusher) sendAttached(ctx context.Context, list []attachment) error {
	left, err := p.tryAttached(ctx, list)
	if err != nil {
		return err
	}
	return p.skip(left)
}

// skip notes, once, that attached artifacts are left out.
func (p *pusher) skip(left []attachment) error {
	if len(left) == 0 {
		return nil
	}
	what, verb := left[0].String(), "is"
	if n := len(left) - 1; n > 0 {
		what, verb = fmt.Sprintf("%s and %d more", what, n), "are"
	}
	return p.c.conn.Skipped(p.dst.Host, fmt.Errorf("%s %s not attached to the model there: %w; --no-referrers leaves out "+
		"what is attached", what, verb, left[0].failed))
}

// tryAttached pushes referrers by digest. If the registry does not list them by itself, it updates the referrers tags.
// It returns those that are left out. The error is that of a context that ended.
func (p *pusher) tryAttached(ctx context.Context, list []attachment) (left []attachment, err error) {
	unlisted := map[digest.Digest][]attachment{}
	var subjects []digest.Digest
	missing := map[digest.Digest]error{}
	var down error // the registry does not respond any more
	for _, a := range list {
		listed := false
		a.failed = cmp.Or(down, missing[a.subject])
		if a.failed == nil {
			listed, a.failed = p.sendArtifact(ctx, a)
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case a.failed != nil:
			if remote.Temporary(a.failed) {
				down = a.failed
			}
			missing[a.Digest] = a.failed
			left = append(left, a)
		case !listed:
			if unlisted[a.subject] == nil {
				subjects = append(subjects, a.subject)
			}
			unlisted[a.subject] = append(unlisted[a.subject], a)
		}
	}
	for _, s := range subjects {
		descs := make([]ocispec.Descriptor, len(unlisted[s]))
		for i, a := range unlisted[s] {
			descs[i] = a.Descriptor
		}
		err := p.r.TagReferrers(ctx, s, descs)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil {
			continue
		}
		there, _ := p.r.Referrers(ctx, s, "") // from earlier pushes
		for _, a := range unlisted[s] {
			if !slices.ContainsFunc(there, func(d ocispec.Descriptor) bool { return d.Digest == a.Digest }) {
				a.failed = fmt.Errorf("the registry has it, but cannot list it: %w", err)
				left = append(left, a)
			}
		}
	}
	return left, nil
}

// sendArtifact pushes a referrer by digest. A registry that refuses may have it, and keep it. listed reports whether
// the registry lists it by itself.
func (p *pusher) sendArtifact(ctx context.Context, a attachment) (listed bool, err error) {
	blobs, err := blobsOf([]remote.Manifest{a.doc})
	if err != nil {
		return false, err
	}
	for i, b := range blobs {
		if err, lost := p.lost.Load(b.Digest); lost {
			return false, err.(error)
		}
		blobs[i].optional = true
	}
	listed, err = p.r.PutManifest(ctx, string(a.Digest), a.doc)
	var status *remote.StatusError
	atHand := p.s != nil || p.source != nil || p.files != nil
	if errors.As(err, &status) && status.LacksBlob() && atHand { // the registry may have collected a blob since
		if err := p.sendBlobs(ctx, blobs); err != nil {
			return false, err
		}
		listed, err = p.r.PutManifest(ctx, string(a.Digest), a.doc)
	}
	if isRefusal(err) {
		if there, headErr := p.r.HeadManifest(ctx, string(a.Digest)); headErr == nil && there == a.Digest {
			return false, nil
		}
	}
	return listed, err
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
	left, err := p.tryAttached(ctx, []attachment{{Descriptor: desc, subject: doc.Subject.Digest,
		doc: remote.Manifest{MediaType: mediaType, Digest: desc.Digest, Bytes: m}}})
	if err == nil && len(left) > 0 {
		err = left[0].failed
	}
	return desc.Digest, err
}
