package remote

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestPages(t *testing.T) {
	for _, c := range []struct {
		what    string
		address func(i int) string
		added   func(i int) int
		pages   int
		want    error
	}{
		{"new pages", func(i int) string { return fmt.Sprint(i) }, func(int) int { return 1 }, limits.ListPages,
			manifest.ErrTooLarge},
		{"a circle", func(i int) string { return fmt.Sprint(i % 3) }, func(int) int { return 1 }, 3, ErrUnsupported},
		{"itself", func(int) string { return "x" }, func(int) int { return 1 }, 1, ErrUnsupported},
		{"nothing new", func(i int) string { return fmt.Sprint(i) }, func(i int) int { return max(1-i, 0) },
			limits.IdlePages + 1, ErrUnsupported},
		{"little new", func(i int) string { return fmt.Sprint(i) }, func(i int) int { return max(i%limits.IdlePages-6, 0) },
			limits.ListPages, manifest.ErrTooLarge},
	} {
		var p Pages
		n, err := 0, error(nil)
		for ; err == nil && n < 2*limits.ListPages; n++ {
			added := 1
			if n > 0 {
				added = c.added(n)
			}
			err = p.Next(&url.URL{Scheme: "https", Host: "r.example", RawQuery: c.address(n)}, added)
		}
		if n != c.pages+1 || !errors.Is(err, c.want) {
			t.Errorf("%s: %d pages, then %v; want %d and %v", c.what, n-1, err, c.pages, c.want)
		}
	}
}

// TestEndlessReferrers checks that a registry which lists the referrers of a manifest without end fails the listing.
func TestEndlessReferrers(t *testing.T) {
	n := 0
	descriptor := func(i int) string {
		return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":1}`, ocispec.MediaTypeImageManifest,
			digest.FromString(fmt.Sprint(i)))
	}
	for what, page := range map[string]func() string{
		"nothing": func() string { return "" }, "the same": func() string { return descriptor(1) },
		"one more": func() string { n++; return descriptor(n) },
		"many more": func() string {
			var list []string
			for range limits.Referrers / 5 {
				n++
				list = append(list, descriptor(n))
			}
			return strings.Join(list, ",")
		},
	} {
		pages := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.URL.Path, "/referrers/") {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			pages++
			w.Header().Set("Link", fmt.Sprintf(`<?page=%d>; rel="next"`, pages))
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			fmt.Fprintf(w, `{"schemaVersion":2,"mediaType":%q,"manifests":[%s]}`, ocispec.MediaTypeImageIndex, page())
		}))
		c := authClient(t, Options{})
		r := repositoryOf(t, c, strings.TrimPrefix(server.URL, "http://")+"/m", Pull)
		list, err := r.Referrers(t.Context(), digest.FromString("subject"), "")
		if err == nil || pages > limits.ListPages {
			t.Errorf("%s: %d referrers, %v after %d pages", what, len(list), err, pages)
		}
		server.Close()
	}
}
