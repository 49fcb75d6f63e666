package remote

import (
	"fmt"
	"net/url"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/redact"
)

// Pages bounds the pages of a listing. The zero value is at its beginning.
type Pages struct {
	seen map[string]bool
	idle int // pages with nothing new, one after the other
}

// Next is called before each page is asked for, with the number of entries of the page before that no page had: 1 for
// the first page. A listing that leads back to a page, that has too many, or of which many pages bring nothing, does
// not lead to its end.
func (p *Pages) Next(u *url.URL, added int) error {
	if p.idle++; added > 0 {
		p.idle = 0
	}
	address := u.String()
	switch {
	case p.seen[address]:
		return fmt.Errorf("the pages of a list lead back to %s: %w", redact.DisplayURL(u), ErrUnsupported)
	case len(p.seen) == limits.ListPages:
		return fmt.Errorf("%s lists more than %d pages: %w", u.Host, limits.ListPages, manifest.ErrTooLarge)
	case p.idle > limits.IdlePages:
		return fmt.Errorf("%s lists %d pages in a row without anything new: %w", u.Host, p.idle, ErrUnsupported)
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[address] = true
	return nil
}
