package remote

import (
	"net/http"
	"net/url"
	"testing"
)

func TestUploadLocation(t *testing.T) {
	for _, tt := range []struct{ scheme, location, want string }{
		{"https", "/v2/m/blobs/uploads/1?state=a%2Fb", "https://reg.example/v2/m/blobs/uploads/1?state=a%2Fb"},
		{"https", "?state=2", "https://reg.example/v2/m/blobs/uploads/0?state=2"},
		{"https", "https://cdn.example/x?sig=1", "https://cdn.example/x?sig=1"},
		{"https", "http://reg.example/x", "https://reg.example/x"},
		{"https", "http://reg.example:80/x", "https://reg.example/x"},
		{"https", "http://cdn.example/x", ""},
		{"http", "http://cdn.example/x", "http://cdn.example/x"},
		{"http", "https://cdn.example/x", "https://cdn.example/x"},
		{"https", "file:///etc/passwd", ""},
		{"https", "ftp://reg.example/x", ""},
		{"https", "%", ""},
		{"https", "", ""},
	} {
		h, err := authClient(t, Options{}).bareHost("reg.example", tt.scheme)
		if err != nil {
			t.Fatal(err)
		}
		r := &Repository{host: h}
		from := &url.URL{Scheme: tt.scheme, Host: "reg.example", Path: "/v2/m/blobs/uploads/0", RawQuery: "state=1"}
		got := ""
		if u, ok := r.UploadLocation(http.Header{"Location": {tt.location}}, from); ok {
			got = u.String()
		}
		if got != tt.want {
			t.Errorf("%s with %s: %q, want %q", tt.location, tt.scheme, got, tt.want)
		}
	}
}
