// Package calibrate measures the inputs of a model's linear layers while the model reads text: their mean squares, and
// if asked for their second moments within blocks of columns.
//
// Contract:
//   - One pass. Memory is that of the model, of the statistics, and of one window of text.
//   - The texts are divided into windows of [Window] tokens, which are read in an order that alternates between the
//     kinds of text, so that a run that ends early has seen all of them.
//   - A run that is interrupted continues from its state file and gives the same result: sums are folded into float32
//     means at the same places whether a state was written there or not.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime/load"
)

const (
	// Window is the length of a window in tokens.
	Window = 512
	// DefaultTokens is how many tokens are read at most if no number is given.
	DefaultTokens = 32 << 10

	foldEvery = 8    // windows between two folds
	converged = 0.02 // mean change of the mean squares while the text doubles, below which a run ends
)

// saveEvery is the least time between two states. Tests change it.
var saveEvery = time.Minute

// ErrText reports a text that cannot be used for calibration.
var ErrText = errors.New("the text cannot be used for calibration")

// Options control a run.
type Options struct {
	Tokens   int                   // most tokens to read; 0 = DefaultTokens
	Block    int                   // columns of a block of second moments; 0 = mean squares only
	State    string                // file to resume from, and to save the state in; "" = none
	Progress func(done, total int) // in tokens; may be nil
}

// Run reads windows of tokens with a model, and returns the statistics. about is their description; Run sets the number
// of tokens.
func Run(
	ctx context.Context, m *load.Model, windows [][]int32, about statistics.About, o Options,
) (*statistics.Set, error) {
	if o.Tokens <= 0 {
		o.Tokens = DefaultTokens
	}
	about.Block = o.Block
	c := newCollector(o.Block)
	r := run{model: m, collector: c, about: about, options: o, saved: time.Now()}
	first, err := r.resume(windows)
	if err != nil {
		return nil, err
	}
	if err := m.Do(ctx, func() error { m.Weights.Observe(c); return nil }); err != nil {
		return nil, err
	}
	defer func() {
		_ = m.Do(context.WithoutCancel(ctx), func() error { m.Weights.Observe(nil); return nil })
	}()
	total := 0
	for _, w := range windows {
		total += len(w)
	}
	total = min(total, o.Tokens)
	next := doubling(r.tokens)
	for i := first; i < len(windows) && r.tokens < total; i++ {
		w := windows[i][:min(len(windows[i]), total-r.tokens)]
		if err := r.read(ctx, w); err != nil {
			return nil, err
		}
		r.tokens += len(w)
		if o.Progress != nil {
			o.Progress(r.tokens, total)
		}
		if (i+1)%foldEvery != 0 {
			continue
		}
		c.fold()
		if r.tokens >= next {
			next = doubling(r.tokens)
			if c.change() < converged && o.Block == 0 {
				break
			}
		}
		if err := r.save(); err != nil {
			return nil, err
		}
	}
	if r.tokens == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrText)
	}
	c.fold()
	set := c.set(r.describe())
	if err := c.check(); err != nil {
		return nil, err
	}
	return set, nil
}

// Done removes the state file. Call it when the statistics are stored.
func (o Options) Done() {
	if o.State != "" {
		_ = os.Remove(o.State)
	}
}

// run is a run in progress.
type run struct {
	model     *load.Model
	collector *collector
	about     statistics.About
	options   Options
	tokens    int
	saved     time.Time
}

// doubling returns the number of tokens at which the change is tested next.
func doubling(tokens int) int {
	n := foldEvery * Window
	for n <= tokens {
		n *= 2
	}
	return n
}

// read runs a window through the model.
func (r *run) read(ctx context.Context, tokens []int32) error {
	m := r.model
	seq := cache.NewSequence(m.Kinds)
	defer func() {
		_ = m.Thread.Do(context.WithoutCancel(ctx), func() error { seq.Free(); return nil })
	}()
	return m.Do(ctx, func() error {
		x := m.Target.Forward(nn.NewBatch(m.Thread, nn.Part{Seq: seq, Tokens: tokens, All: true, Text: len(tokens)}))
		if arch.HasHead(m.Processor.Config) {
			m.Target.Head(x) // only the head's input is evaluated
		} else {
			mlx.Eval(x)
		}
		return nil
	})
}

func (r *run) describe() statistics.About {
	about := r.about
	about.Tokens = int64(r.tokens)
	return about
}

// save writes the state, at most once in saveEvery.
func (r *run) save() error {
	if r.options.State == "" || time.Since(r.saved) < saveEvery {
		return nil
	}
	r.saved = time.Now()
	f, err := os.Create(r.options.State + ".new")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	state := r.collector.set(r.describe())
	r.collector.addLast(state)
	err = state.Write(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), r.options.State)
}

// resume continues from the state file, if it belongs to the same run. It returns the first window to read.
func (r *run) resume(windows [][]int32) (int, error) {
	if r.options.State == "" {
		return 0, nil
	}
	found, err := statistics.Open(r.options.State)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return 0, nil
	case errors.Is(err, statistics.ErrStatistics): // cut off, or of another version: begin again
		return 0, nil
	case err != nil:
		return 0, err
	}
	defer found.Close()
	tokens, at := found.Tokens, 0
	found.Tokens = 0
	if found.About != r.about {
		return 0, nil
	}
	for at < len(windows) && int64(r.tokens) < tokens {
		r.tokens += len(windows[at])
		at++
	}
	if int64(r.tokens) != tokens || at%foldEvery != 0 {
		r.tokens = 0
		return 0, nil
	}
	return at, r.collector.load(found.Set)
}

// previous begins the names in a state file of the mean squares that change compares with.
const previous = "previous "

// addLast adds them to a state.
func (c *collector) addLast(state *statistics.Set) {
	for key, squares := range c.last {
		l := &statistics.Layer{Width: len(squares), Rows: []int64{0}, Squares: make([]float32, len(squares))}
		for i, v := range squares {
			l.Squares[i] = float32(v) // they are means that were folded
		}
		state.Add(l, previous+key)
	}
}

// change returns the mean, over inputs, of the change of the mean squares since the last call, relative to their sum.
// Experts do not count: those that few rows choose never settle. The first call returns 1.
func (c *collector) change() float64 {
	var sum float64
	n := 0
	first := c.last == nil
	if first {
		c.last = map[string][]float64{}
	}
	for _, name := range c.order() {
		in := c.inputs[name]
		if len(in.rows) > 1 {
			continue
		}
		now := make([]float64, in.width)
		var moved, all float64
		for i := range now {
			now[i] = in.squares[i] / max(float64(in.rows[0]), 1)
			all += now[i]
			if old := c.last[name]; old != nil {
				moved += math.Abs(now[i] - old[i])
			}
		}
		c.last[name] = now
		if all > 0 {
			sum += moved / all
			n++
		}
	}
	if first || n == 0 {
		return 1
	}
	return sum / float64(n)
}
