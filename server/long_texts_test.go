package server_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/server"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestLongTextsInErrors checks that no error of the API has all of a long text that a request has: as the value of any
// member, as the name of a member, or in the path.
func TestLongTextsInErrors(t *testing.T) {
	f := serveMute(t, nil)
	d := describe(t, f)
	long := strconv.Quote(strings.Repeat("long text ", 2*limits.Message))
	failed, turn := 0, 0
	check := func(key, what string, status int, response string) {
		if status < 400 {
			return
		}
		failed++
		if len(response) > 2*limits.Message {
			t.Errorf("%s: %s: an error of %d bytes: %.300s", key, what, len(response), response)
		}
	}
	eachRequest(t, f, d, func(key string, r server.Endpoint, whole *jsonschema.Schema, sample map[string]any,
		members []place) {
		for _, at := range members {
			for _, v := range []string{long, `{` + long + `: 1}`, `[` + long + `]`} {
				if turn++; turn%runtest.Pick(9, 1) != 0 {
					continue // one of many: all take a minute
				}
				text, _ := withMember(t, whole, sample, at, v)
				status, response := f.Ask(t, r.Method, pathOf(r.Path), string(text))
				check(key, strings.Join(at, "."), status, response)
			}
		}
	})
	for _, r := range f.AllEndpoints() {
		status, response := f.Ask(t, r.Method, pathAt(r, strings.Repeat("x", limits.Message)), "")
		check(r.Method+" "+r.Path, "path", status, response)
	}
	if failed < 200 {
		t.Errorf("only %d requests failed", failed)
	}
}
