package runtime

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/ingotml/ingot/internal/limits/fault"
)

// Draft configures speculative decoding for a request: a cheap draft proposes tokens, and the model verifies them in
// one step. This changes the speed of a response, not its contents: greedy requests generate the same tokens, others
// sample from the same distribution. The zero value chooses the number of drafts by measurement.
//
// Tokens are drafted by the image's draft model, or without one by n-gram lookup in the request's own text.
type Draft struct {
	Mode DraftMode `json:",omitempty"`
	N    int       `json:",omitempty"` // with DraftFixed: drafts in each step
}

// ParseDraft parses a number of drafts, "auto" or "off".
func ParseDraft(s string) (Draft, error) {
	switch s {
	case "auto":
		return Draft{}, nil
	case "off", "0":
		return Draft{Mode: DraftOff}, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > MaxDraft {
		return Draft{}, fmt.Errorf("%w: %q, want a number up to %d, auto or off", ErrDraft, s, MaxDraft)
	}
	return Draft{Mode: DraftFixed, N: n}, nil
}

// DraftMode says how the number of drafts is chosen.
type DraftMode string

// The modes.
const (
	DraftAuto  DraftMode = ""      // the number with the highest expected throughput
	DraftOff   DraftMode = "off"   // none
	DraftFixed DraftMode = "fixed" // N, or fewer at the end of the text or if the draft proposes fewer
)

// MaxDraft is the largest number of drafts in a step.
const MaxDraft = 16

// ErrDraft reports invalid draft settings.
var ErrDraft = fault.Register(errors.New("bad draft"), fault.Kind{
	Name: "runtime.ErrDraft", Means: "draft settings are invalid",
	Rank: fault.Part + 3, Status: fault.Invalid, Wire: "draft",
})

// Check returns an error if the settings are out of range.
func (d Draft) Check() error {
	switch {
	case d.Mode != DraftAuto && d.Mode != DraftOff && d.Mode != DraftFixed:
		return fmt.Errorf("%w: unknown mode %q", ErrDraft, d.Mode)
	case d.Mode == DraftFixed && (d.N < 1 || d.N > MaxDraft):
		return fmt.Errorf("%w: %d drafts in a step: must be between 1 and %d", ErrDraft, d.N, MaxDraft)
	}
	return nil
}

// DraftOptions configures the draft of a model. The zero value loads the image's draft model.
type DraftOptions struct {
	Off bool // do not load the draft model: requests draft by n-gram lookup only

	// Guess replaces all other drafts: it returns at most n tokens that may follow those of a request. It serves
	// callers that can predict the output, and benchmarks. It is called from one goroutine at a time and must not call
	// the engine.
	Guess func(tokens []int32, n int) []int32 `json:"-"`
}
