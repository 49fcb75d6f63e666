package server_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/ingotml/ingot/server"
)

// A listing reads the index and each image as often for many names as for few. It is asked for twice, since the first
// one fills caches.
func TestListingsReadOnce(t *testing.T) {
	for _, l := range []struct {
		path    string
		headers []string
		reads   bool // it reads the index
	}{
		{"/api/tags", nil, true},
		{"/v1/models", nil, true},
		{"/v1/models?limit=1000", []string{"anthropic-version", "2023-06-01"}, true},
		{"/v1/models/talk", nil, true},
		{"/api/ps", nil, false},
		{"/api/ps?verbose=true", nil, false},
		{"/metrics", nil, false},
	} {
		t.Run(l.path, func(t *testing.T) {
			var first, again [2]storetest.Reads
			for i, copies := range []int{2, 40} {
				f := serve(t, func(o *server.Options) { o.Models = 10 })
				s := f.Options().Store
				storetest.Copies(t, s, "talk", copies)
				ask := func() {
					if status, text := f.Ask(t, http.MethodGet, l.path, "", l.headers...); status != http.StatusOK {
						t.Fatal(status, text)
					}
				}
				for n := range copies / 5 { // loaded models, for /api/ps
					f.Has(t, "POST", "/api/generate", fmt.Sprintf(`{"model":"copies/of:v%d","stream":false}`, n), 200)
				}
				first[i] = storetest.CountReads(t, s.Root(), ask)
				again[i] = storetest.CountReads(t, s.Root(), ask)
			}
			if first[0] != first[1] || again[0] != again[1] || l.reads != (again[0].Index > 0) {
				t.Errorf("of few and many names: %+v, then %+v", first, again)
			}
		})
	}
}
