package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/ingotml/ingot/registry/verdict"
)

// Delete are the actions of a token that reads and deletes.
const Delete = "pull,delete"

// DeleteManifest deletes a manifest with all its tags if ref is its digest, or else only the tag ref. One that is gone
// is no error. The error is an [ErrUnsupported] if the registry does not do that. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#content-management.
func (r *Repository) DeleteManifest(ctx context.Context, ref string) error {
	_, err := Retry(ctx, r.Attempts(), func() (struct{}, error) { return struct{}{}, r.deleteManifestOnce(ctx, ref) })
	var status *StatusError
	if !errors.As(err, &status) {
		return err
	}
	switch verdict.Of(verdict.Delete, status.Status) {
	case verdict.FallBack:
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	case verdict.Absent: // or the registry knows no such request
		there, headErr := r.HeadManifest(ctx, ref)
		switch {
		case headErr != nil:
			return headErr
		case there != "":
			return fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		return nil
	}
	return err
}

func (r *Repository) deleteManifestOnce(ctx context.Context, ref string) error {
	req, err := r.Request(ctx, http.MethodDelete, r.URL("manifests", ref), nil)
	if err != nil {
		return err
	}
	resp, err := r.Do(req)
	if err != nil {
		return err
	}
	defer Drain(resp)
	return Expect(resp, http.StatusAccepted, http.StatusOK, http.StatusNoContent)
}
