package anthropic

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/ingotml/ingot/modelfile/parameters/parameterstest"
	"github.com/ingotml/ingot/server/params"
)

// Requests have every parameter that the table names for this API, and each becomes an option.
func TestRequestsHaveEveryParameter(t *testing.T) {
	q := messagesRequest{
		Temperature: new(0.1), TopK: new(2), TopP: new(0.3), MaxTokens: new(4), StopSequences: []string{"x"},
	}
	q.Priority, q.DeadlineMs = new(5), new(int64(6))
	if missing := parameterstest.Undeclared(parameters.Anthropic, []any{q}); missing != nil {
		t.Errorf("requests do not have %q: add members to messagesRequest in anthropic.go", missing)
	}
	var want params.Options
	want.Temperature, want.TopK, want.TopP, want.NumPredict = new(0.1), new(2), new(0.3), new(4)
	want.Priority, want.DeadlineMs = new(5), new(int64(6))
	for _, own := range [][]string{nil, {"y"}} {
		want.Stop = append(own, "x")
		if d := cmp.Diff(want, q.options(own)); d != "" {
			t.Error(d)
		}
	}
}
