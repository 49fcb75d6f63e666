package hub

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/remote"
)

// errPages is a list of files whose pages do not lead to its end.
var errPages = errors.New("the hub's list of files is not complete")

// pages walks the pages of a list. Each is asked at the endpoint: mirrors pass on the addresses of the hub that they
// mirror, which may not know what the mirror has, and must not get the token.
type pages struct {
	first *url.URL
	bound remote.Pages
}

// begin is called before the first page is asked for.
func (p *pages) begin() error { return p.bound.Next(p.first, 1) }

// next returns the address of the page after one that was answered by the address at and had a number of new entries,
// or nil at the end of the list.
func (p *pages) next(h http.Header, at *url.URL, added int) (*url.URL, error) {
	target, ok := nextLink(h)
	if !ok {
		return nil, nil
	}
	u, err := at.Parse(target)
	if err != nil || target == "" {
		return nil, fmt.Errorf("%w: it names an invalid address as the next page", errPages)
	}
	switch {
	case u.Path == at.Path || listPath(u) == listPath(p.first):
		next := *p.first
		next.RawQuery = u.RawQuery
		u = &next
	case origin(u) != origin(p.first):
		return nil, fmt.Errorf("%w: the next page is on another host, and not of this list: %s", errPages,
			redact.Clip(u.Host))
	}
	if err := p.bound.Next(u, added); err != nil {
		return nil, fmt.Errorf("%w: %w", errPages, err)
	}
	return u, nil
}

// listPath returns the path of a list of files below its endpoint.
func listPath(u *url.URL) string { return u.Path[max(strings.LastIndex(u.Path, "/api/models/"), 0):] }

// nextLink returns the target of the link with the relation next (RFC 8288).
func nextLink(h http.Header) (target string, ok bool) {
	for _, value := range h.Values("Link") {
		for value != "" {
			before, rest, _ := strings.Cut(value, "<")
			if isNext(before) { // without an address in brackets
				return "", true
			}
			target, rest, _ := strings.Cut(rest, ">")
			params, _, _ := strings.Cut(rest, "<") // up to the next link
			if isNext(params) {
				return strings.TrimSpace(target), true
			}
			value = rest
		}
	}
	return "", false
}

func isNext(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.Trim(p, " \t,"), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "rel") {
			continue
		}
		for relation := range strings.FieldsSeq(strings.Trim(strings.TrimSpace(value), `"`)) {
			if strings.EqualFold(relation, "next") {
				return true
			}
		}
	}
	return false
}
