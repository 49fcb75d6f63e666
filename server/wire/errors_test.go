package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/jsonfit"
	"github.com/ingotml/ingot/runtime"
)

// TestLongErrors checks that the message of an error has a bounded length and keeps its end, whatever it quotes and
// wherever it comes from.
func TestLongErrors(t *testing.T) {
	long := strings.Repeat("<\n\x01ä", 1<<16)
	field := jsonfit.In(jsonfit.Errorf("%s", long), long, 3, long)
	dialects := Dialects{{Prefix: "/v1/", Dotted: true, Body: func(t Error) any { return t.Message + t.Param }}}
	for i, err := range []error{
		errors.New(long + "; the remedy"), fmt.Errorf("%w: %s; the remedy", runtime.ErrImage, long),
		BadRequest("%s; the remedy", long), BadParam(long, "%s; the remedy", long), BadJSON(field),
		Errorf(http.StatusTeapot, "%s; the remedy", long), fmt.Errorf("%s: %w", long, BadRequest("bad; the remedy")),
	} {
		for _, path := range []string{"/", "/v1/x"} {
			w := httptest.NewRecorder()
			dialects.Fail(w, httptest.NewRequest("GET", path, nil), ErrorOf(err))
			if n := w.Body.Len(); n > 8*limits.Message {
				t.Errorf("error %d at %s: a body of %d bytes", i, path, n)
			}
			if !json.Valid(w.Body.Bytes()) || i < 4 && !strings.Contains(w.Body.String(), "; the remedy") {
				t.Errorf("error %d at %s: %.200s", i, path, w.Body)
			}
		}
		if m := ErrorOf(err).Message; len(m) > limits.Message || strings.ContainsAny(m, "\n\x01") {
			t.Errorf("error %d has a message of %d bytes, or of several lines", i, len(m))
		}
	}
}
