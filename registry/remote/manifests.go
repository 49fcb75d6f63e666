package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ManifestTypes is the Accept header of requests for manifests, in order of preference.
var ManifestTypes = strings.Join([]string{
	ocispec.MediaTypeImageManifest,
	ocispec.MediaTypeImageIndex,
	"application/vnd.docker.distribution.manifest.v2+json",
	"application/vnd.docker.distribution.manifest.list.v2+json",
}, ", ")

// Manifest is a manifest, byte for byte.
type Manifest struct {
	MediaType string
	Digest    digest.Digest // of Bytes
	Bytes     []byte
}

// Reference returns the reference of a name in registry requests: its digest, else its tag.
func Reference(n manifest.Name) string {
	if n.Digest != "" {
		return string(n.Digest)
	}
	if n.Tag == "" {
		return manifest.DefaultTag
	}
	return n.Tag
}

// GetManifest fetches a manifest by tag or digest. It verifies it against the requested digest, or else against the
// digest in the response, if any.
func (r *Repository) GetManifest(ctx context.Context, ref string) (*Manifest, error) {
	return verified(r, func(r *Repository) (*Manifest, error) {
		return Retry(ctx, r.Attempts(), func() (*Manifest, error) { return r.getManifestOnce(ctx, ref) })
	})
}

func (r *Repository) getManifestOnce(ctx context.Context, ref string) (*Manifest, error) {
	req, err := r.Request(ctx, http.MethodGet, r.URL("manifests", ref), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", ManifestTypes)
	resp, err := r.Do(req)
	if err != nil {
		return nil, err
	}
	defer Drain(resp)
	if err := Expect(resp, http.StatusOK); err != nil {
		return nil, err
	}
	b, err := readDocument(resp, "manifest "+ref)
	if err != nil {
		return nil, err
	}
	want := digest.Digest(resp.Header.Get("Docker-Content-Digest"))
	if strings.Contains(ref, ":") { // a digest: tags have no colon
		want = digest.Digest(ref)
		if err := manifest.CheckDigest(want); err != nil {
			return nil, err
		}
	}
	if manifest.CheckDigest(want) == nil {
		if got := want.Algorithm().FromBytes(b); got != want {
			return nil, fmt.Errorf("manifest %s: the registry sent %s, not %s: %w", ref, got, want, ErrDigest)
		}
	}
	m := &Manifest{Digest: digest.FromBytes(b), Bytes: b}
	if m.MediaType, err = manifest.CheckType(resp.Header.Get("Content-Type"), b); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", ref, err)
	}
	return m, nil
}

// readDocument reads a manifest or an index, up to the size limit of manifests.
func readDocument(resp *http.Response, what string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(resp.Body, manifest.MaxManifestSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", what, ErrInterrupted, err)
	}
	if len(b) > manifest.MaxManifestSize {
		return nil, fmt.Errorf("%s has more than %d bytes: %w", what, manifest.MaxManifestSize, manifest.ErrTooLarge)
	}
	return b, nil
}

// HeadManifest returns the digest of a manifest, or "" if it does not exist. Where HEAD is refused, it asks with GET.
func (r *Repository) HeadManifest(ctx context.Context, ref string) (digest.Digest, error) {
	d, err := Retry(ctx, r.Attempts(), func() (digest.Digest, error) { return r.headManifestOnce(ctx, ref) })
	if !errors.Is(err, errNoDigest) && VerdictOf(verdict.HeadManifest, err) != verdict.FallBack {
		return d, err
	}
	m, err := r.GetManifest(ctx, ref)
	switch {
	case err == nil:
		return m.Digest, nil
	case errors.Is(err, ErrNotFound):
		return "", nil
	}
	return "", err
}

func (r *Repository) headManifestOnce(ctx context.Context, ref string) (digest.Digest, error) {
	req, err := r.Request(ctx, http.MethodHead, r.URL("manifests", ref), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", ManifestTypes)
	resp, err := r.Do(req)
	if err != nil {
		return "", err
	}
	defer Drain(resp)
	if verdict.Of(verdict.HeadManifest, resp.StatusCode) == verdict.Absent {
		return "", nil
	}
	if err := Expect(resp, http.StatusOK); err != nil {
		return "", err
	}
	d := digest.Digest(resp.Header.Get("Docker-Content-Digest"))
	if d.Validate() != nil {
		return "", errNoDigest
	}
	return d, nil
}

// errNoDigest means that a response to HEAD has no digest header, which the specification only recommends.
var errNoDigest = errors.New("no Docker-Content-Digest")

// maxLate limits how often a manifest is sent again because the registry does not see its blobs yet.
const maxLate = 4

// PutManifest pushes a manifest under a tag or its digest. subject reports whether the registry processed the
// manifest's subject field. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-manifests-with-subject.
//
// A registry may see a blob only some time after its upload, so a manifest that lacks blobs is sent again, later. If
// another push of the same manifest is in the way, the registry may have it by then.
func (r *Repository) PutManifest(ctx context.Context, ref string, m Manifest) (subject bool, err error) {
	late, looked := 0, false
	return Retry(ctx, r.Attempts(), func() (bool, error) {
		subject, err := r.putManifestOnce(ctx, ref, m)
		var status *StatusError
		switch {
		case errors.As(err, &status) && status.LacksBlob() && late < maxLate:
			late++
			return false, fmt.Errorf("%w: %w", ErrInterrupted, err)
		case VerdictOf(verdict.PutManifest, err) == verdict.Look && !looked:
			looked = true
			if there, headErr := r.headManifestOnce(ctx, ref); headErr == nil && there == m.Digest {
				return false, nil
			}
			return false, fmt.Errorf("%w: %w", ErrInterrupted, err)
		}
		return subject, err
	})
}

// LacksBlob reports whether a manifest was refused because the registry does not have one of its blobs.
func (e *StatusError) LacksBlob() bool {
	return e.Code == "MANIFEST_BLOB_UNKNOWN" || e.Code == "BLOB_UNKNOWN"
}

func (r *Repository) putManifestOnce(ctx context.Context, ref string, m Manifest) (subject bool, err error) {
	if _, err := manifest.CheckType(m.MediaType, m.Bytes); err != nil {
		return false, err
	}
	req, err := r.Request(ctx, http.MethodPut, r.URL("manifests", ref), bytes.NewReader(m.Bytes))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", m.MediaType)
	resp, err := r.Do(req)
	if err != nil {
		return false, err
	}
	defer Drain(resp)
	if err := Expect(resp, http.StatusCreated, http.StatusOK, http.StatusAccepted); err != nil {
		return false, err
	}
	got := digest.Digest(resp.Header.Get("Docker-Content-Digest"))
	if manifest.CheckDigest(got) == nil && got != got.Algorithm().FromBytes(m.Bytes) {
		return false, fmt.Errorf("the registry stored manifest %s as %s: %w", m.Digest, got, ErrDigest)
	}
	return resp.Header.Get("OCI-Subject") != "", nil
}
