package server_test

import (
	"strings"
	"testing"
)

// A header chooses the API of a route that two APIs share, and of its errors.
func TestSharedRoute(t *testing.T) {
	f := serve(t, nil)
	for path, want := range map[string][2]string{
		"/v1/models":      {`{"object":"list"`, `"has_more":false`},
		"/v1/models/talk": {`"object":"model"`, `"type":"model"`},
		"/v1/models/none": {`"code":"model_not_found"`, `"type":"not_found_error"`},
	} {
		for i, headers := range [][]string{nil, {"anthropic-version", "2023-06-01"}} {
			if _, text := f.Ask(t, "GET", path, "", headers...); !strings.Contains(text, want[i]) {
				t.Errorf("%s %v: %s, want %s", path, headers, text, want[i])
			}
		}
	}
}
