package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/verdict"
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
	return verified(r, func(r *Repository) ([]byte, error) {
		return Retry(ctx, r.Attempts(), func() ([]byte, error) { return r.getBytesOnce(ctx, d) })
	})
}

// verified gets content. If it is not what it should be, a mirror may be at fault: it is read from the registry itself.
func verified[T any](r *Repository, get func(*Repository) (T, error)) (T, error) {
	v, err := get(r)
	if len(r.mirrors) > 0 && (errors.Is(err, ErrDigest) || errors.Is(err, manifest.ErrTooLarge) ||
		errors.Is(err, manifest.ErrInvalidManifest) || errors.Is(err, manifest.ErrUnknownManifest)) {
		return get(r.Direct())
	}
	return v, err
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

// HasBlob reports whether the registry says that the repository has a blob. A registry that does not answer HEAD, or
// redirects it to an address that is for GET only, is asked for the first byte. One that refuses that too counts as not
// having the blob: an upload decides.
func (r *Repository) HasBlob(ctx context.Context, d digest.Digest, size int64) (bool, error) {
	look := r.Abilities().Look
	if look == LookNone {
		return false, nil
	}
	if look == LookHead {
		there, err := r.look(ctx, http.MethodHead, d, size)
		if VerdictOf(verdict.HeadBlob, err) != verdict.FallBack {
			return there, err
		}
	}
	there, err := r.look(ctx, http.MethodGet, d, size)
	var status *StatusError
	switch {
	case err == nil:
		r.Learn(func(a *Abilities) { a.Look = max(a.Look, LookGet) })
		return there, nil
	case !errors.As(err, &status), Temporary(err):
		return false, err
	case r.Abilities().Looked: // it refuses only this blob
		return false, nil
	}
	r.CannotLook(err)
	return false, nil
}

// look asks for a blob with HEAD, or with GET for its first byte.
func (r *Repository) look(ctx context.Context, method string, d digest.Digest, size int64) (there bool, err error) {
	n, elsewhere, err := r.lookOnce(ctx, method, d, size)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	r.Learn(func(a *Abilities) { a.Looked = true })
	// A storage that the registry leads to has the blob if it answers, and may have left its size out.
	return err == nil && (n == size || n < 0 || n == 0 && (elsewhere || method == http.MethodHead)), nil
}

// StatBlob returns the size of a blob, or -1 if the registry has it and does not tell the size. If it does not have the
// blob, the error is an [ErrNotFound]. A registry that refuses HEAD, or answers it with another size than the one that
// is wanted, is asked for the first byte.
func (r *Repository) StatBlob(ctx context.Context, d digest.Digest, want int64) (int64, error) {
	return Retry(ctx, r.Attempts(), func() (int64, error) {
		size, _, err := r.lookOnce(ctx, http.MethodHead, d, want)
		if VerdictOf(verdict.HeadBlob, err) == verdict.FallBack || err == nil && size != want {
			size, _, err = r.lookOnce(ctx, http.MethodGet, d, want)
		}
		return size, err
	})
}

// lookOnce returns the size of a blob as the answer to a HEAD says, or to a GET for the first byte; -1 if it does not.
// elsewhere says that a redirect led to another server, which answered.
func (r *Repository) lookOnce(
	ctx context.Context, method string, d digest.Digest, want int64,
) (size int64, elsewhere bool, err error) {
	req, err := r.Request(ctx, method, r.URL("blobs", string(d)), nil)
	if err != nil {
		return 0, false, err
	}
	if method == http.MethodGet && want > 0 {
		req.Header.Set("Accept-Encoding", "identity")
		req.Header.Set("Range", "bytes=0-0")
	}
	resp, err := r.Do(req)
	if err != nil {
		return 0, false, err
	}
	defer resp.Body.Close()
	elsewhere = !r.host.owns(resp.Request.URL)
	if resp.StatusCode != http.StatusPartialContent {
		return resp.ContentLength, elsewhere, Expect(resp, http.StatusOK)
	}
	_, total, _ := strings.Cut(resp.Header.Get("Content-Range"), "/")
	n, err := strconv.ParseInt(total, 10, 64)
	if err != nil && total != "*" {
		return 0, false, nil
	}
	if err != nil || n < 0 {
		n = -1
	}
	return n, elsewhere, nil
}

// Direct returns the repository without mirrors: what the registry itself has.
func (r *Repository) Direct() *Repository {
	direct := *r
	direct.mirrors = nil
	return &direct
}
