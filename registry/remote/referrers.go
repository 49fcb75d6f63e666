package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

var (
	// errNoReferrersAPI is a response which implies that the registry has no referrers API.
	errNoReferrersAPI = errors.New("no referrers API")
	// errNotIndex is a response that is no image index, such as a proxy's own page.
	errNotIndex = errors.New("not an image index")
)

// Referrers lists the manifests whose subject has this digest, of one artifact type unless it is empty. Without a
// referrers API, they are those of the referrers tag.
func (r *Repository) Referrers(ctx context.Context, subject digest.Digest,
	artifactType string) ([]ocispec.Descriptor, error) {
	list, err := r.listReferrers(ctx, subject, artifactType)
	if len(list) > 0 {
		r.Learn(func(a *Abilities) { a.Referrers = true })
	}
	// An API that has listed nothing so far may not process subjects.
	unsure := err == nil && !r.Abilities().Referrers
	if unsure || errors.Is(err, errNoReferrersAPI) {
		tag, tagErr := r.getIndex(ctx, r.URL("manifests", ReferrersTag(subject)))
		switch {
		case tagErr == nil:
			list, err = tag.index.Manifests, nil
		case unsure && ctx.Err() == nil:
		case !errors.Is(tagErr, ErrNotFound):
			err = tagErr
		case !errors.Is(err, ErrUnauthorized): // else there may be some
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return CleanReferrers(list, artifactType)
}

// CleanReferrers drops entries of other types (registries need not filter), duplicates, and entries that cannot be
// fetched by a sha256 digest.
func CleanReferrers(list []ocispec.Descriptor, artifactType string) ([]ocispec.Descriptor, error) {
	var kept []ocispec.Descriptor
	seen := map[digest.Digest]bool{}
	for _, d := range list {
		if seen[d.Digest] || artifactType != "" && d.ArtifactType != artifactType {
			continue
		}
		seen[d.Digest] = true
		if d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256 ||
			d.Size < 0 || d.Size > manifest.MaxManifestSize {
			continue
		}
		if len(kept) == limits.Referrers {
			return nil, fmt.Errorf("more than %d manifests: %w", limits.Referrers, manifest.ErrTooLarge)
		}
		kept = append(kept, d)
	}
	return kept, nil
}

// listReferrers reads all pages of the referrers API. Only the first can show that there is none: a list that breaks
// off later is an error.
func (r *Repository) listReferrers(ctx context.Context, subject digest.Digest,
	artifactType string) ([]ocispec.Descriptor, error) {
	if r.Abilities().NoReferrers {
		return nil, errNoReferrersAPI
	}
	next := r.URL("referrers", string(subject))
	if artifactType != "" {
		next.RawQuery = url.Values{"artifactType": {artifactType}}.Encode()
	}
	var list []ocispec.Descriptor
	var pages Pages
	seen := map[digest.Digest]bool{}
	for n, added := 0, 1; next != nil; n++ {
		if err := pages.Next(next, added); err != nil {
			return nil, err
		}
		page, err := r.getIndex(ctx, next)
		if err != nil && n == 0 {
			err = r.asNoReferrersAPI(err)
		}
		if err != nil {
			return nil, err
		}
		before := len(seen)
		for _, d := range page.index.Manifests {
			if seen[d.Digest] {
				continue
			}
			seen[d.Digest] = true
			list = append(list, d)
		}
		if added = len(seen) - before; len(seen) > limits.Referrers {
			return nil, fmt.Errorf("more than %d manifests: %w", limits.Referrers, manifest.ErrTooLarge)
		}
		next = page.next
	}
	return list, nil
}

// asNoReferrersAPI returns errNoReferrersAPI for responses which mean that the API does not exist. It is not asked
// again if the response is none of the specification's, which may be about the repository.
func (r *Repository) asNoReferrersAPI(err error) error {
	var status *StatusError
	switch {
	case errors.Is(err, errNotIndex):
		return fmt.Errorf("%w: %w", errNoReferrersAPI, err)
	case VerdictOf(verdict.Referrers, err) != verdict.FallBack:
		return err
	}
	if errors.As(err, &status) && status.Code == "" && !errors.Is(err, ErrUnauthorized) {
		r.Learn(func(a *Abilities) { a.NoReferrers = true })
	}
	return fmt.Errorf("%w: %w", errNoReferrersAPI, err)
}

// indexPage is an image index, or a page of one, as received from a registry.
type indexPage struct {
	index  ocispec.Index
	digest digest.Digest // "" if there is none
	etag   string
	next   *url.URL // nil on the last page
}

func (r *Repository) getIndex(ctx context.Context, u *url.URL) (*indexPage, error) {
	return Retry(ctx, r.Attempts(), func() (*indexPage, error) { return r.getIndexOnce(ctx, u) })
}

func (r *Repository) getIndexOnce(ctx context.Context, u *url.URL) (*indexPage, error) {
	req, err := r.Request(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", ocispec.MediaTypeImageIndex)
	resp, err := r.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := Expect(resp, http.StatusOK); err != nil {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind != ocispec.MediaTypeImageIndex {
		return nil, fmt.Errorf("%s: the response has content type %q: %w", redact.DisplayURL(u), redact.Clip(kind),
			errNotIndex)
	}
	b, err := readDocument(resp, redact.DisplayURL(u))
	if err != nil {
		return nil, err
	}
	page := &indexPage{digest: digest.FromBytes(b), etag: resp.Header.Get("ETag")}
	if err := json.Unmarshal(b, &page.index); err != nil {
		return nil, fmt.Errorf("%s: %v: %w", redact.DisplayURL(u), err, manifest.ErrInvalidManifest)
	}
	page.next, err = NextPage(resp)
	return page, err
}

// NextPage returns the URL of the next page from the Link header (RFC 8288), or nil. It must have the same origin.
func NextPage(resp *http.Response) (*url.URL, error) {
	for _, value := range resp.Header.Values("Link") {
		for value != "" {
			_, link, _ := strings.Cut(value, "<")
			target, rest, _ := strings.Cut(link, ">") // a URL may contain commas
			params, _, _ := strings.Cut(rest, "<")
			value = strings.TrimPrefix(rest, params)
			if !isNext(strings.TrimRight(params, ", ")) {
				continue
			}
			u, err := resp.Request.URL.Parse(target)
			if err != nil || origin(u) != origin(resp.Request.URL) || u.Scheme != resp.Request.URL.Scheme {
				return nil, fmt.Errorf("%s: the next page is on another host", redact.DisplayURL(resp.Request.URL))
			}
			return u, nil
		}
	}
	return nil, nil
}

func isNext(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(name, "rel") && strings.EqualFold(strings.Trim(value, `"`), "next") {
			return true
		}
	}
	return false
}
