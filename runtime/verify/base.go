package verify

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/scores"
)

// Base is the model that another one is compared with.
type Base struct {
	Processor *processor.Processor
	// Load returns the model. It is called at most once, and not at all if the scores are known.
	Load func(ctx context.Context) (*load.Model, error)

	Scores scores.Cache // keeps the logits; the zero value does not
	Key    string       // everything beside tokens and windows that determines the logits
}

// Loaded returns a loaded model as a base, without a cache.
func Loaded(m *load.Model) Base {
	return Base{Processor: m.Processor, Load: func(context.Context) (*load.Model, error) { return m, nil }}
}

// windowsVersion changes when a text is read in other windows.
const windowsVersion = 1

// baseLogits returns the logits of a base, window by window: known ones, or those that the model computes.
type baseLogits struct {
	base  Base
	model *load.Model
	known *scores.Reader // nil: there are none
	write *scores.Writer // nil: the logits are known, or were in part
}

func (b Base) open(begin, tokens []int32, window int) *baseLogits {
	key := fmt.Sprint(b.Key, "\n", windowsVersion, begin, window, b.Processor.Config.Facts().Vocab, tokens)
	l := &baseLogits{base: b, known: b.Scores.Open(key)}
	if l.known == nil {
		l.write = b.Scores.Create(key)
	}
	return l
}

// logits returns the logits, row by row, that predict the last n tokens of the next window.
func (l *baseLogits) logits(ctx context.Context, input []int32, n int) (logits []float32, err error) {
	if l.known != nil {
		logits, err := l.known.Next(n * int(l.base.Processor.Config.Facts().Vocab))
		if err == nil {
			return logits, nil
		}
		l.known.Remove()
		l.known = nil
	}
	if l.model == nil {
		if l.model, err = l.base.Load(ctx); err != nil {
			return nil, err
		}
	}
	logits, err = logitsFor(ctx, l.model, input, n)
	if err == nil && l.write != nil {
		l.write.Add(logits)
	}
	return logits, err
}

// keep keeps the logits of a whole text.
func (l *baseLogits) keep() {
	if l.write != nil {
		l.write.Keep()
		l.write = nil
	}
}

func (l *baseLogits) close() {
	if l.known != nil {
		l.known.Close()
	}
	if l.write != nil {
		l.write.Drop()
	}
}
