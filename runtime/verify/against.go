package verify

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/quality"
	"golang.org/x/sync/errgroup"
)

// ErrNotComparable reports that two models cannot be compared over a text.
var ErrNotComparable = errors.New("models cannot be compared")

// A text is evaluated in windows that overlap by half. Each token is predicted once, with at least half a window of
// context, except for the tokens of the first half window.
const (
	// Window is the length of a window in tokens, that of published tables of divergences.
	Window = 512

	minTextTokens = 8 // least length of a text
)

// Against evaluates a text with a model and with base, which must have the same tokens, and compares the model's
// logits with those of base. It holds the logits of half a window of both in memory.
func Against(
	ctx context.Context, m *load.Model, base Base, text string, progress func(done, total int),
) ([]quality.Row, error) {
	if err := m.Processor.CheckHead(); err != nil {
		return nil, err
	}
	begin, tokens, err := commonTokens(ctx, m.Processor, base.Processor, text)
	if err != nil {
		return nil, err
	}
	window := min(Window, int(m.Processor.Config.Facts().Context),
		int(base.Processor.Config.Facts().Context)) - len(begin)
	if window < minTextTokens {
		return nil, fmt.Errorf("a context of %d tokens is too short: %w", window, ErrNotComparable)
	}
	known := base.open(begin, tokens, window)
	defer known.close()
	rows := make([]quality.Row, len(tokens))
	firstRow := 1 - len(begin) // a token needs one before it
	for at, from := 0, firstRow; from < len(tokens); at += window / 2 {
		end := min(at+window, len(tokens))
		input := slices.Concat(begin, tokens[at:end])
		ours, err := logitsFor(ctx, m, input, end-from)
		if err != nil {
			return nil, err
		}
		theirs, err := known.logits(ctx, input, end-from)
		if err != nil {
			return nil, err
		}
		if err := compareAll(rows[from:end], theirs, ours, tokens[from:end]); err != nil {
			return nil, err
		}
		if from = end; progress != nil {
			progress(end, len(tokens))
		}
	}
	known.keep()
	return rows[firstRow:], nil
}

// commonTokens returns the tokens of a text, and the token to put before each window of them, if any.
func commonTokens(ctx context.Context, m, base *processor.Processor, text string) (begin, tokens []int32, err error) {
	if a, b := m.Config.Facts().Vocab, base.Config.Facts().Vocab; a != b {
		return nil, nil, fmt.Errorf("one has logits for %d tokens, the other for %d: %w", a, b, ErrNotComparable)
	}
	if m.Tokenizer() == nil || base.Tokenizer() == nil {
		return nil, nil, fmt.Errorf("compare over a text: %w", runtime.ErrNoTokenizer)
	}
	var all [2][2][]int32
	for i, of := range []*processor.Processor{m, base} {
		for j, s := range []string{"", text} {
			if all[i][j], err = of.Tokenizer().Encode(ctx, s, j == 0); err != nil {
				return nil, nil, err
			}
		}
	}
	if !slices.Equal(all[0][1], all[1][1]) || !slices.Equal(all[0][0], all[1][0]) {
		return nil, nil, fmt.Errorf("their tokenizers encode the text differently: %w", ErrNotComparable)
	}
	tokens = all[0][1]
	if len(tokens) < minTextTokens {
		return nil, nil, fmt.Errorf("the text has %d tokens, at least %d are needed: %w", len(tokens), minTextTokens,
			ErrNotComparable)
	}
	for _, id := range tokens {
		if int64(id) >= m.Config.Facts().Vocab {
			return nil, nil, fmt.Errorf("token %d has no logit: %w", id, ErrNotComparable)
		}
	}
	if bos, ok := m.Tokenizer().BOS(); ok && len(all[0][0]) > 0 && all[0][0][0] == bos {
		begin = []int32{bos}
	}
	return begin, tokens, nil
}

// logitsFor returns the logits, row by row, that predict the last n tokens of an input.
func logitsFor(ctx context.Context, m *load.Model, input []int32, n int) (logits []float32, err error) {
	seq := cache.NewSequence(m.Kinds)
	defer func() {
		_ = m.Thread.Do(context.Background(), func() error { seq.Free(); return nil })
	}()
	err = m.Do(ctx, func() error {
		input := input[:len(input)-1]
		x := models.Forward(m.Thread, m.Target, nn.Part{Seq: seq, Tokens: input, All: true, Text: len(input)})
		if rows := x.Dim(0); n < rows {
			x = mlx.SliceAxis(x, 0, mlx.Range(rows-n, rows))
		}
		logits = m.Target.Head(x).Float32s()
		return nil
	})
	return logits, err
}

// compareAll compares two sets of logits, which have one row for each of rows.
func compareAll(rows []quality.Row, base, other []float32, next []int32) error {
	var g errgroup.Group
	g.SetLimit(goruntime.GOMAXPROCS(0))
	vocab := len(base) / len(rows)
	for i := range rows {
		g.Go(func() error {
			rows[i] = quality.Judge(base[i*vocab:][:vocab], other[i*vocab:][:vocab], next[i])
			if rows[i].Finite() {
				return nil
			}
			which := "the model"
			if !(quality.Judge(base[i*vocab:][:vocab], base[i*vocab:][:vocab], next[i]).Finite()) {
				which = "the base model"
			}
			return fmt.Errorf("logits of %s are not finite: %w", which, ErrNotComparable)
		})
	}
	return g.Wait()
}
