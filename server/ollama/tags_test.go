package ollama

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/ingotml/ingot/server/servertest"
)

// TestVersion checks that clients can compare the version, whatever the program's is, and ask for it with HEAD.
func TestVersion(t *testing.T) {
	f := serve(t, nil)
	_, text := f.Ask(t, "GET", "/api/version", "")
	v := servertest.Decode[VersionJSON](t, text)
	if !regexp.MustCompile(`^0\.([1-9]\d|[7-9])\.\d+$`).MatchString(v.Version) || v.Ingot != "1.2.3" {
		t.Errorf("%+v", v)
	}
	response, err := http.Head(f.URL + "/api/version")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 200 || response.ContentLength != int64(len(text)) {
		t.Errorf("HEAD: status %d, length %d", response.StatusCode, response.ContentLength)
	}
}
