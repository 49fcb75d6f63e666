package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/verdict"
)

// mount mounts the blob from another repository, for which it returns [Mounted]. A registry that does not may open an
// upload session instead. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#mounting-a-blob-from-another-repository.
func (u *upload) mount(ctx context.Context) (EventKind, error) {
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

// mountFrom asks for a mount from a repository, or from any. Its failure decides nothing: an error is to be tried again,
// once, or ends the push because the user wants it so.
func (u *upload) mountFrom(ctx context.Context, r *remote.Repository, from string) (EventKind, error) {
	u.did = verdict.Mount
	query := url.Values{"mount": {string(u.blob.Digest)}}
	if from != "" {
		query.Set("from", from)
	}
	short, cancel := context.WithTimeoutCause(ctx, u.push.opts.Stall, errStalled)
	defer cancel()
	resp, err := u.push.post(short, r, query)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err == nil && resp.StatusCode == http.StatusCreated:
		u.abandon(ctx)
		return Mounted, nil
	case err == nil && resp.StatusCode == http.StatusAccepted && u.location == nil:
		return "", u.opened(resp)
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
