package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// GetBytes fetches a small blob into memory and verifies it.
func (r *Repository) GetBytes(ctx context.Context, d ocispec.Descriptor, limit int64) ([]byte, error) {
	if d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256 {
		return nil, fmt.Errorf("blob %q: not a sha256 digest: %w", redact.Clip(string(d.Digest)), manifest.ErrInvalidManifest)
	}
	if d.Size < 0 || d.Size > limit {
		return nil, fmt.Errorf("blob %s has %d bytes, the limit is %d: %w", d.Digest, d.Size, limit, manifest.ErrTooLarge)
	}
	a := r.Attempts()
	for {
		b, err := r.getBytesOnce(ctx, d)
		if err == nil {
			return b, nil
		}
		if err = a.Backoff(ctx, err); err != nil {
			return nil, err
		}
	}
}

func (r *Repository) getBytesOnce(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	req, err := r.Request(ctx, http.MethodGet, r.URL("blobs", string(d.Digest)), nil)
	if err != nil {
		return nil, err
	}
	resp, err := r.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := Expect(resp, http.StatusOK); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, d.Size+1))
	if err != nil {
		return nil, fmt.Errorf("read blob %s: %w: %w", d.Digest, ErrInterrupted, err)
	}
	if got := digest.FromBytes(b); got != d.Digest {
		return nil, fmt.Errorf("blob %s: the registry sent %s: %w", d.Digest, got, ErrDigest)
	}
	return b, nil
}

// PutBytes pushes a small blob, unless the registry has it.
func (r *Repository) PutBytes(ctx context.Context, b []byte) error {
	d := digest.FromBytes(b)
	return r.putBlob(ctx, d, int64(len(b)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil })
}

func (r *Repository) putBlob(ctx context.Context, d digest.Digest, size int64,
	open func() (io.ReadCloser, error)) error {
	a := r.Attempts()
	for {
		err := r.putBlobOnce(ctx, d, size, open)
		if err == nil {
			return nil
		}
		if err = a.Backoff(ctx, err); err != nil {
			return fmt.Errorf("push blob %s: %w", d, err)
		}
	}
}

// putBlobOnce pushes a blob in a single request, unless the registry has it. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#post-then-put.
func (r *Repository) putBlobOnce(ctx context.Context, d digest.Digest, size int64,
	open func() (io.ReadCloser, error)) error {
	req, err := r.Request(ctx, http.MethodHead, r.URL("blobs", string(d)), nil)
	if err != nil {
		return err
	}
	resp, err := r.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	if req, err = r.Request(ctx, http.MethodPost, r.URL("blobs", "uploads", ""), nil); err != nil {
		return err
	}
	if resp, err = r.Do(req); err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := Expect(resp, http.StatusAccepted); err != nil {
		return err
	}
	u, err := r.location(resp)
	if err != nil {
		return err
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "digest=" + string(d)
	body, err := open()
	if err != nil {
		return err
	}
	if req, err = r.Request(ctx, http.MethodPut, u, body); err != nil {
		body.Close()
		return err
	}
	req.ContentLength, req.GetBody = size, open
	req.Header.Set("Content-Type", "application/octet-stream")
	if resp, err = r.Do(req); err != nil {
		return err
	}
	defer resp.Body.Close()
	return Expect(resp, http.StatusCreated, http.StatusOK)
}
