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
	return Retry(ctx, r.Attempts(), func() (*Manifest, error) { return r.getManifestOnce(ctx, ref) })
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

// HeadManifest returns the digest of a manifest, or "" if it does not exist.
func (r *Repository) HeadManifest(ctx context.Context, ref string) (digest.Digest, error) {
	a := r.Attempts()
	for {
		d, err := r.headManifestOnce(ctx, ref)
		if errors.Is(err, errNoDigest) {
			m, err := r.GetManifest(ctx, ref)
			if err != nil {
				return "", err
			}
			return m.Digest, nil
		}
		if err == nil {
			return d, nil
		}
		if err = a.Backoff(ctx, err); err != nil {
			return "", err
		}
	}
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
	if resp.StatusCode == http.StatusNotFound {
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

// PutManifest pushes a manifest under a tag or its digest. subject reports whether the registry processed the
// manifest's subject field. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-manifests-with-subject.
func (r *Repository) PutManifest(ctx context.Context, ref string, m Manifest) (subject bool, err error) {
	return Retry(ctx, r.Attempts(), func() (bool, error) { return r.putManifestOnce(ctx, ref, m) })
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
