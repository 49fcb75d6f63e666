package remote

import (
	"net/http"
	"testing"
)

// TestNextPage: the next page of a list is at the origin of the one before, however that is spelled.
func TestNextPage(t *testing.T) {
	for _, c := range []struct{ link, want string }{
		{`</v2/m/tags/list?n=2>; rel="next"`, "https://registry.example.com/v2/m/tags/list?n=2"},
		{`<list?last=a,b>; rel=next`, "https://registry.example.com/v2/m/tags/list?last=a,b"},
		{`</a>; rel="prev", </b>; rel="next"`, "https://registry.example.com/b"},
		{`<https://Registry.example.com:443/b>; rel="next"`, "https://Registry.example.com:443/b"},
		{`</a>; rel="prev"`, ""},
		{`<https://registry.example.com:5000/b>; rel="next"`, "error"},
		{`<https://elsewhere.example.com/b>; rel="next"`, "error"},
		{`<http://registry.example.com:443/b>; rel="next"`, "error"},
	} {
		req, err := http.NewRequest("GET", "https://registry.example.com/v2/m/tags/list", nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		next, err := NextPage(&http.Response{Header: http.Header{"Link": {c.link}}, Request: req})
		switch {
		case err != nil:
			got = "error"
		case next != nil:
			got = next.String()
		}
		if got != c.want {
			t.Errorf("%s is %s, want %s", c.link, got, c.want)
		}
	}
}
