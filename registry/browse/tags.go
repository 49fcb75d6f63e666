package browse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/opencontainers/go-digest"
)

// tagsPerPage is how many tags are asked for at a time.
const tagsPerPage = 1000

// Tags lists the tags of the repository of a name in the registry's order, each once. What is no tag is left out; see
// [remote.Client.Skipped]. See https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#listing-tags.
//
// Registries that send part of the list without a link to the next page are asked for what follows the last tag.
func Tags(ctx context.Context, c *registry.Client, name manifest.Name) ([]string, error) {
	r, err := c.Repository(name, remote.Pull)
	if err != nil {
		return nil, err
	}
	list, err := listTags(ctx, r)
	if err == nil && len(list.invalid) > 0 {
		err = c.Skipped(name.Host, fmt.Errorf("the list of tags has %d entries that are no tags and are left out, "+
			"such as %q", len(list.invalid), redact.Clip(list.invalid[0])))
	}
	if err != nil {
		return nil, fmt.Errorf("list the tags of %s/%s: %w", name.Host, name.Path, err)
	}
	return list.tags, nil
}

func listTags(ctx context.Context, r *remote.Repository) (*tagList, error) {
	list := &tagList{seen: map[string]bool{}}
	next := tagsURL(r, "")
	page, err := readTags(ctx, r, next)
	if isRefused(err) { // some registries take no n, or only smaller ones
		next = r.URL("tags", "list")
		page, err = readTags(ctx, r, next)
	}
	if err != nil {
		return nil, err
	}
	var pages remote.Pages
	if err := pages.Next(next, 1); err != nil {
		return nil, err
	}
	for linked := false; ; {
		added := list.add(page.tags)
		next, linked = page.next, linked || page.next != nil
		guess := next == nil && !linked && added > 0
		switch {
		case guess:
			next = tagsURL(r, list.tags[len(list.tags)-1])
		case next == nil:
			return list, nil
		}
		if len(list.seen) > limits.Tags {
			return nil, fmt.Errorf("%s lists more than %d tags: %w", r.Origin(), limits.Tags, manifest.ErrTooLarge)
		}
		if err := pages.Next(next, added); err != nil {
			return nil, err
		}
		page, err = readTags(ctx, r, next)
		if guess && (isRefused(err) || errors.Is(err, remote.ErrNotFound)) { // there is no second page
			page, err = &tagPage{}, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// isRefused reports whether a registry does not take a request for tags in this form.
func isRefused(err error) bool {
	var status *remote.StatusError
	return errors.As(err, &status) && verdict.Of(verdict.ListTags, status.Status) == verdict.GiveUp
}

// tagsURL returns the URL of the page after a tag; "" for the first.
func tagsURL(r *remote.Repository, last string) *url.URL {
	u, query := r.URL("tags", "list"), url.Values{"n": {strconv.Itoa(tagsPerPage)}}
	if last != "" {
		query.Set("last", last)
	}
	u.RawQuery = query.Encode()
	return u
}

// maxShown is how much of an entry that is no tag is kept, to be shown.
const maxShown = 200

// tagList collects tags.
type tagList struct {
	tags    []string
	seen    map[string]bool // of both kinds
	invalid []string        // clipped, since they may be of any length
}

// add adds tags and returns how many are new.
func (l *tagList) add(tags []string) int {
	before := len(l.tags)
	for _, t := range tags {
		valid, key := manifest.ValidTag(t), t
		if !valid {
			t = clip.Text(t, maxShown)
			key = "/" + t // which no tag begins with
		}
		switch {
		case l.seen[key]:
			continue
		case valid:
			l.tags = append(l.tags, t)
		default:
			l.invalid = append(l.invalid, t)
		}
		l.seen[key] = true
	}
	return len(l.tags) - before
}

// tagPage is a page of a list of tags.
type tagPage struct {
	tags []string
	next *url.URL // nil if the registry names none
}

func readTags(ctx context.Context, r *remote.Repository, u *url.URL) (*tagPage, error) {
	return remote.Retry(ctx, r.Attempts(), func() (*tagPage, error) { return readTagsOnce(ctx, r, u) })
}

func readTagsOnce(ctx context.Context, r *remote.Repository, u *url.URL) (*tagPage, error) {
	req, err := r.Request(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := r.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := remote.Expect(resp, http.StatusOK); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, limits.TagPageSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", redact.DisplayURL(u), remote.ErrInterrupted, err)
	}
	if len(b) > limits.TagPageSize {
		return nil, fmt.Errorf("%s has more than %d bytes: %w", redact.DisplayURL(u), limits.TagPageSize,
			manifest.ErrTooLarge)
	}
	var doc struct{ Tags []string } // null for a repository whose tags were deleted
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("%s is no list of tags: %w", redact.DisplayURL(u), remote.ErrUnsupported)
	}
	next, err := remote.NextPage(resp)
	return &tagPage{doc.Tags, next}, err
}

// IsDigestTag reports whether a tag belongs to a digest: that of an index of referrers, sha256-HEX, or one of cosign's,
// which have a suffix such as .sig.
func IsDigestTag(tag string) bool {
	algorithm, hex, _ := strings.Cut(tag, "-")
	hex, _, _ = strings.Cut(hex, ".")
	return digest.NewDigestFromEncoded(digest.Algorithm(algorithm), hex).Validate() == nil
}
