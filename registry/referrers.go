package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Bounds on what a registry may list about one manifest.
const (
	maxReferrers     = 10000
	maxReferrerPages = 200
)

// Referrers lists the manifests of a repository whose subject is the one with this digest: signatures and what else is
// said about it. Of the name only host and path count. An artifactType that is not empty leaves out all others. Registries
// without the referrers API are asked for the tag that stands for it (distribution-spec v1.1.1, "Listing Referrers" and "Referrers
// Tag Schema").
func (c *Client) Referrers(ctx context.Context, name manifest.Name, subject digest.Digest, artifactType string) ([]ocispec.Descriptor, error) {
	r, err := c.repository(name, pull)
	if err != nil {
		return nil, err
	}
	list, err := r.referrers(ctx, subject, artifactType)
	if err != nil {
		return nil, fmt.Errorf("list what refers to %s in %s/%s: %w", subject, name.Host, name.Path, err)
	}
	return list, nil
}

// errNoReferrersAPI is an answer from which follows that the registry has no referrers API.
var errNoReferrersAPI = errors.New("no referrers API")

func (r *repository) referrers(ctx context.Context, subject digest.Digest, artifactType string) ([]ocispec.Descriptor, error) {
	list, err := r.listReferrers(ctx, subject, artifactType)
	if errors.Is(err, errNoReferrersAPI) {
		var tag *indexPage
		if tag, err = r.getIndex(ctx, r.url("manifests", referrersTag(subject))); err == nil {
			list = tag.index.Manifests
		} else if errors.Is(err, ErrNotFound) {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return cleanReferrers(list, artifactType)
}

// cleanReferrers leaves out what was not asked for, since registries need not filter, what is listed twice, and what cannot be
// fetched by a digest.
func cleanReferrers(list []ocispec.Descriptor, artifactType string) ([]ocispec.Descriptor, error) {
	var kept []ocispec.Descriptor
	seen := map[digest.Digest]bool{}
	for _, d := range list {
		if seen[d.Digest] || artifactType != "" && d.ArtifactType != artifactType {
			continue
		}
		seen[d.Digest] = true
		if d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256 || d.Size < 0 || d.Size > manifest.MaxManifestSize {
			continue
		}
		if len(kept) == maxReferrers {
			return nil, fmt.Errorf("more than %d manifests: %w", maxReferrers, manifest.ErrTooLarge)
		}
		kept = append(kept, d)
	}
	return kept, nil
}

// listReferrers asks the API, page by page.
func (r *repository) listReferrers(ctx context.Context, subject digest.Digest, artifactType string) ([]ocispec.Descriptor, error) {
	next := r.url("referrers", string(subject))
	if artifactType != "" {
		next.RawQuery = url.Values{"artifactType": {artifactType}}.Encode()
	}
	var list []ocispec.Descriptor
	for range maxReferrerPages {
		page, err := r.getIndex(ctx, next)
		if err != nil {
			return nil, asNoReferrersAPI(err)
		}
		list = append(list, page.index.Manifests...)
		if page.next == nil {
			return list, nil
		}
		next = page.next
	}
	return nil, fmt.Errorf("more than %d pages: %w", maxReferrerPages, manifest.ErrTooLarge)
}

// noAPI tells answers that mean that the API is not there, which is 404 by the specification and something else in practice, from
// other errors.
func asNoReferrersAPI(err error) error {
	var status *StatusError
	if !errors.As(err, &status) {
		return err
	}
	switch status.Status {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented:
		return errNoReferrersAPI
	}
	return err
}

// indexPage is an image index as a registry gave it.
type indexPage struct {
	index ocispec.Index
	etag  string
	next  *url.URL // nil on the last page
}

func (r *repository) getIndex(ctx context.Context, u *url.URL) (*indexPage, error) {
	return retry(ctx, r.c, func() (*indexPage, error) { return r.getIndexOnce(ctx, u) })
}

func (r *repository) getIndexOnce(ctx context.Context, u *url.URL) (*indexPage, error) {
	req, err := r.request(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", ocispec.MediaTypeImageIndex)
	resp, err := r.do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := expect(resp, http.StatusOK); err != nil {
		return nil, err
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != ocispec.MediaTypeImageIndex {
		return nil, fmt.Errorf("%s: the answer is %q: %w", displayURL(u), clip(kind), errNoReferrersAPI) // a proxy's own page, say
	}
	b, err := readDocument(resp, displayURL(u))
	if err != nil {
		return nil, err
	}
	page := &indexPage{etag: resp.Header.Get("ETag")}
	if err := json.Unmarshal(b, &page.index); err != nil {
		return nil, fmt.Errorf("%s: %v: %w", displayURL(u), err, manifest.ErrInvalidManifest)
	}
	page.next, err = nextPage(resp)
	return page, err
}

// nextPage reads the Link header (RFC 8288): the next page, on the same host.
func nextPage(resp *http.Response) (*url.URL, error) {
	for _, value := range resp.Header.Values("Link") {
		for link := range strings.SplitSeq(value, ",") {
			target, params, _ := strings.Cut(strings.TrimSpace(link), ">")
			if !strings.HasPrefix(target, "<") || !isNext(params) {
				continue
			}
			u, err := resp.Request.URL.Parse(target[1:])
			if err != nil || u.Host != resp.Request.URL.Host || u.Scheme != resp.Request.URL.Scheme {
				return nil, fmt.Errorf("%s: its next page is not on the same host", displayURL(resp.Request.URL))
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

// Resolve fetches the manifest that a name means in its registry, verified against the digest where the name has one.
func (c *Client) Resolve(ctx context.Context, name manifest.Name) (*Manifest, error) {
	r, err := c.repository(name, pull)
	if err != nil {
		return nil, err
	}
	m, err := r.getManifest(ctx, reference(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if kind, _, err := mime.ParseMediaType(m.MediaType); err == nil {
		m.MediaType = kind
	}
	return m, nil
}
