package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Limits on the search for blobs that can be mounted from other repositories.
const (
	maxMountCandidates = 64 // manifests read
	maxMountFrom       = 4  // source repositories, each of which adds a scope to the token
)

// findMountSources sets the repositories that each blob may be mounted from: those of the same host that models of the
// store were pulled from or pushed to.
func (p *pusher) findMountSources(ctx context.Context, blobs []blob) {
	if p.source != nil {
		p.mountCopied(blobs)
		return
	}
	if p.s == nil {
		return
	}
	homes, err := p.s.Homes(ctx, p.dst.Host)
	if err != nil {
		return // mounting only saves time
	}
	at := make(map[digest.Digest]int, len(blobs))
	for i, b := range blobs {
		at[b.Digest] = i
	}
	var from []string
	for _, h := range homes[:min(len(homes), maxMountCandidates)] {
		if h.Path == p.dst.Path || !slices.Contains(from, h.Path) && len(from) == maxMountFrom {
			continue
		}
		for _, d := range p.heldBy(ctx, h) {
			i, wanted := at[d.Digest]
			if !wanted || slices.Contains(blobs[i].from, h.Path) {
				continue
			}
			blobs[i].from = append(blobs[i].from, h.Path)
			if !slices.Contains(from, h.Path) {
				from = append(from, h.Path)
			}
		}
	}
	if len(from) > 0 {
		p.mounter, _ = p.c.conn.Repository(p.dst, remote.Push, from...)
	}
}

// heldBy lists the blobs of a model and of its referrers, which are pushed to the same repository.
func (p *pusher) heldBy(ctx context.Context, h store.Home) []ocispec.Descriptor {
	list := []digest.Digest{h.Manifest}
	referrers, _ := p.s.Referrers(ctx, h.Manifest, "")
	for _, d := range referrers {
		list = append(list, d.Digest)
	}
	var held []ocispec.Descriptor
	for _, d := range list {
		if doc, err := p.s.ReadBlob(d, manifest.MaxManifestSize); err == nil {
			blobs, _ := manifest.Blobs(doc)
			held = append(held, blobs...)
		}
	}
	return held
}

// mount mounts the blob from another repository, for which it returns [Mounted]. A registry that does not may open an
// upload session instead. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#mounting-a-blob-from-another-repository.
func (u *upload) mount(ctx context.Context) (EventKind, error) {
	if u.push.resend {
		return "", nil
	}
	for u.push.mounter != nil && len(u.blob.from) > 0 && !u.push.r.Abilities().NoMountFrom {
		kind, err := u.mountFrom(ctx, u.push.mounter, u.blob.from[0])
		if kind != "" || err != nil {
			return kind, err
		}
		u.blob.from = u.blob.from[1:]
	}
	// A mount without a source repository lets the registry look for the blob in all repositories (automatic content
	// discovery). Not all registries support it.
	if u.location != nil || u.blob.Digest == "" || u.push.r.Abilities().NoMount {
		return "", nil
	}
	return u.mountFrom(ctx, u.push.r, "")
}

// mountFrom asks for a mount from a repository, or from any. Its failure decides nothing: an error is to be tried
// again, once, or ends the push because the user wants it so.
func (u *upload) mountFrom(ctx context.Context, r *remote.Repository, from string) (EventKind, error) {
	u.did = verdict.Mount
	query := url.Values{"mount": {string(u.blob.Digest)}}
	if from != "" {
		query.Set("from", from)
	}
	watch := u.push.timeouts.Watch(ctx, u.push.opts.Stall, 1)
	defer watch.Stop()
	short := watch.Context()
	resp, err := u.push.post(short, r, query)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err == nil && resp.StatusCode == http.StatusCreated:
		u.abandon(ctx)
		return Mounted, nil
	case err == nil && resp.StatusCode == http.StatusAccepted && u.location == nil:
		if u.opened(resp) == nil { // else a POST without a mount decides
			return "", nil
		}
	case err == nil && resp.StatusCode == http.StatusAccepted: // keep the first session
		if at, ok := u.push.r.UploadLocation(resp.Header, resp.Request.URL); ok {
			u.push.cancel(ctx, at)
		}
		return "", nil
	case remote.Temporary(err) && short.Err() == nil:
		if u.mounts++; u.mounts == 1 {
			return "", err
		}
	}
	broken := err != nil && remote.Temporary(err) // for all blobs, not only from this repository
	u.push.r.Learn(func(a *remote.Abilities) {
		a.NoMount = a.NoMount || from == "" || broken
		a.NoMountFrom = a.NoMountFrom || from != "" && (broken || errors.Is(err, remote.ErrUnauthorized))
	})
	if err == nil || from == "" && !broken { // as registries without automatic content discovery respond
		return "", nil
	}
	return "", u.push.c.conn.Skipped(u.push.dst.Host, fmt.Errorf("blobs are sent, since they cannot be mounted: %w", err))
}
