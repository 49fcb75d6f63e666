package remote

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestUploadLocation(t *testing.T) {
	for _, tt := range []struct{ scheme, location, want string }{
		{"https", "/v2/m/blobs/uploads/1?state=a%2Fb", "https://reg.example/v2/m/blobs/uploads/1?state=a%2Fb"},
		{"https", "?state=2", "https://reg.example/v2/m/blobs/uploads/0?state=2"},
		{"https", "https://cdn.example/x?sig=1", "https://cdn.example/x?sig=1"},
		{"https", "https://ann:secret@cdn.example/x", "https://cdn.example/x"},
		{"https", "http://reg.example/x", "https://reg.example/x"},
		{"https", "http://Reg.Example/x", "https://reg.example/x"},
		{"https", "http://reg.example:80/x", "https://reg.example/x"},
		{"https", "http://cdn.example/x", ""},
		{"http", "http://cdn.example/x", "http://cdn.example/x"},
		{"http", "https://cdn.example/x", "https://cdn.example/x"},
		{"https", "file:///etc/passwd", ""},
		{"https", "ftp://reg.example/x", ""},
		{"https", "%", ""},
		{"https", "", ""},
		// behind a proxy that does not pass the port on
		{"https:5000", "https://reg.example/x", "https://reg.example:5000/x"},
		{"https:5000", "http://reg.example/x", "https://reg.example:5000/x"},
		{"http:5000", "http://reg.example/x", "http://reg.example:5000/x"},
		{"http:5000", "http://reg.example:80/x", "http://reg.example:80/x"},
		{"http:5000", "https://reg.example/x", "https://reg.example/x"},
		{"http:5000", "http://cdn.example/x", "http://cdn.example/x"},
	} {
		scheme, port, _ := strings.Cut(tt.scheme, ":")
		addr := strings.TrimSuffix("reg.example:"+port, ":")
		h, err := authClient(t, Options{}).bareHost(addr, scheme)
		if err != nil {
			t.Fatal(err)
		}
		r := &Repository{host: h}
		from := &url.URL{Scheme: scheme, Host: addr, Path: "/v2/m/blobs/uploads/0", RawQuery: "state=1"}
		got := ""
		if u, ok := r.UploadLocation(http.Header{"Location": {tt.location}}, from); ok {
			got = u.String()
		}
		if got != tt.want {
			t.Errorf("%s with %s: %q, want %q", tt.location, tt.scheme, got, tt.want)
		}
	}
}
