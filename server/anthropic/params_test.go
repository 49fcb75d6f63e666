package anthropic

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/server/params"
)

// Requests have every parameter that the table names for this API, and each becomes an option.
func TestRequestsHaveEveryParameter(t *testing.T) {
	q := messagesRequest{
		Temperature: new(0.1), TopK: new(2), TopP: new(0.3), MaxTokens: new(4), StopSequences: []string{"x"},
	}
	if missing := modelfile.Undeclared(modelfile.Anthropic, []any{q}); missing != nil {
		t.Errorf("requests do not have %q: add members to messagesRequest in anthropic.go", missing)
	}
	want := params.Options{
		Temperature: new(0.1), TopK: new(2), TopP: new(0.3), NumPredict: new(4), Stop: params.Texts{"x"},
	}
	if d := cmp.Diff(want, params.From(modelfile.Anthropic, &q)); d != "" {
		t.Error(d)
	}
}
