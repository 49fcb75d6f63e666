package processor

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/tokenizer"
)

// A text that a tokenizer makes too much of is the request's fault; one whose client has left is nobody's.
func TestEncodeErrors(t *testing.T) {
	tok, err := tokenizer.Load([]byte(`{"version":"1.0","model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"},`+
		`"normalizer":{"type":"Replace","pattern":{"String":"a"},"content":"`+strings.Repeat("b", 100)+`"}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Processor{tok: tok}
	if _, err := p.Encode(t.Context(), strings.Repeat("a", 10_000)); !errors.Is(err, runtime.ErrPrompt) ||
		!strings.Contains(err.Error(), "expands a text of 10000 bytes") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Encode(ctx, "a"); !errors.Is(err, context.Canceled) || errors.Is(err, runtime.ErrPrompt) {
		t.Errorf("got %v", err)
	}
}
