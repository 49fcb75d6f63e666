package draft

import (
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/sample"
)

// Drafter proposes tokens. It runs on the engine's thread. Its state of a request is in the request's Text.
type Drafter interface {
	// NeededHiddenStates returns which hidden states of the target the drafter needs.
	NeededHiddenStates() HiddenStates
	// Propose sets the drafts of each item, at most as many as its depth.
	Propose(round []*Item)
	// CatchUp may evaluate tokens that the target has evaluated already, where that saves time later.
	CatchUp(of []*Text)
	// FinishRound ends the round that Propose started for a request. accepted is the number of drafts that became tokens;
	// the drafts after them were rejected.
	FinishRound(t *Text, accepted int)
}

// Text is what a drafter knows of a request. The zero value, with tokens and the target's sequence, is a request
// that has not drafted yet.
type Text struct {
	Tokens []int32         // the prompt and the generated tokens; the scheduler sets them before each call
	Target *cache.Sequence // the target's

	ngrams ngrams
	hidden hiddenRows
	own    ownCache
}

// Item is a request that drafts in a step.
type Item struct {
	Text  *Text
	Row   sample.DraftRow // how its drafts are sampled
	Depth int             // most tokens to draft

	Drafts []int32
	Q      []*mlx.Array // distributions of the drafts, see sample.Request; may be longer than drafts
}

// KeepHidden stores the target's hidden states x [n, hidden] of the positions before end. With lastOnly, they replace
// the stored ones.
func (t *Text) KeepHidden(x *mlx.Array, end int, lastOnly bool) {
	if lastOnly {
		t.hidden.free()
	}
	t.hidden.add(x, end)
}

// Sequence returns the draft model's own KV cache of the text; nil before its first step, and for other drafters.
func (t *Text) Sequence() *cache.Sequence { return t.own.seq }

// Free releases the engine memory. It runs on the engine's thread.
func (t *Text) Free() {
	t.hidden.free()
	t.own.free()
}

// HiddenStates selects the rows whose hidden states a drafter needs.
type HiddenStates int

const (
	NoHiddenStates  HiddenStates = iota
	LastHiddenState              // of the row from which the last token was sampled
	AllHiddenStates
)

// funcDrafter drafts with a function; see DraftOptions.Guess.
type funcDrafter func(tokens []int32, n int) []int32

func (funcDrafter) NeededHiddenStates() HiddenStates { return NoHiddenStates }
func (funcDrafter) CatchUp([]*Text)                  {}
func (funcDrafter) FinishRound(*Text, int)           {}
func (f funcDrafter) Propose(round []*Item) {
	for _, s := range round {
		s.Drafts = f(s.Text.Tokens, s.Depth)
	}
}

// ngramDrafter looks n-grams up in the request's own text.
type ngramDrafter struct{}

func (ngramDrafter) NeededHiddenStates() HiddenStates { return NoHiddenStates }
func (ngramDrafter) CatchUp([]*Text)                  {}
func (ngramDrafter) FinishRound(*Text, int)           {}
func (ngramDrafter) Propose(round []*Item) {
	for _, s := range round {
		s.Drafts = s.Text.ngrams.lookup(s.Text.Tokens, s.Depth)
	}
}

// New returns the drafter of a model: the options' function, or its draft model, or n-gram lookup.
func New(m *load.Model, o runtime.DraftOptions) Drafter {
	switch {
	case o.Guess != nil:
		return funcDrafter(o.Guess)
	case m.Draft != nil:
		return newModelDrafter(m)
	}
	return ngramDrafter{}
}
