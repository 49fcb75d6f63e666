package pattern

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
)

const (
	matchTimeout = 100 * time.Millisecond // of a search, after which it looks at its context
	matchTries   = 20                     // of a search: a busy machine may pause it
	batchSize    = 1 << 10                // matches between two looks at the context
	stackLimit   = 1 << 22                // slots of a search's backtracking stack
	unitTime     = 16 * time.Nanosecond   // of searching, for a unit of work: the engine is slow, but honest
)

// Regex runs a pattern on the general engine. The engine backtracks, hence the time limits.
type Regex struct {
	re    *regexp2.Regexp
	tries int // of a search
	Label string
}

func CompileRegex(c jsonfile.Component, expr string) (*Regex, error) {
	const shown = 60
	label := expr
	if len(label) > shown {
		label = chars.ValidText(label[:shown]) + "..."
	}
	translated, err := Translate(expr)
	var bad *patternError
	switch {
	case errors.As(err, &bad) && bad.invalid:
		return nil, c.Invalid("has the pattern %q: %v", label, err)
	case err != nil:
		return nil, c.Unsupported("with the pattern %q is not supported: %v", label, err)
	}
	re, err := regexp2.Compile(translated, regexp2.OptionMaxBacktrackingStackSize(stackLimit))
	if err != nil {
		return nil, c.Unsupported("with the pattern %q is not supported: it does not compile", label)
	}
	re.MatchTimeout = matchTimeout
	return &Regex{re, matchTries, fmt.Sprintf("%v: pattern %q", c, label)}, nil
}

// Matches implements [Pattern].
func (r *Regex) Matches(m *work.Meter, s string, found func(start, end int) error) error {
	if s == "" {
		return nil
	}
	var (
		text    = []rune(s)
		at, pos = 0, 0 // the same position in characters and in bytes
		last    = -1   // end of the last match
		batch   = make([]int, 0, 2*batchSize)
		began   = time.Now()
		stop    error
	)
	spend := func() error { // for the time since it was called last
		took := time.Since(began)
		err := m.Spend(int(took / unitTime))
		if err == nil {
			err = m.Look()
		}
		began = time.Now() // it may have waited
		return err
	}
	flush := func() error {
		err := spend()
		for i := 0; i < len(batch) && err == nil; i += 2 {
			err = found(batch[i], batch[i+1])
		}
		batch = batch[:0]
		began = time.Now()
		return err
	}
	advance := func(to int) int {
		for ; at < to; at++ {
			pos += utf8.RuneLen(text[at])
		}
		return pos
	}
	each := func(match regexp2.MatchView) bool {
		i, n, _ := match.GroupRange(0)
		if n == 0 && i == last { // the reference accepts no empty match right after another match
			return true
		}
		last = i + n
		batch = append(batch, advance(i))
		batch = append(batch, advance(i+n))
		if len(batch) == cap(batch) {
			stop = flush()
		}
		return stop == nil
	}
	var err error
	for range r.tries {
		err = r.re.FindRunesMatches(text, max(0, last), each)
		if err == nil || stop != nil || errors.Is(err, regexp2.ErrBacktrackingStackLimit) {
			break
		}
		if stop = spend(); stop != nil {
			break
		}
	}
	switch {
	case stop != nil:
		return stop
	case errors.Is(err, regexp2.ErrBacktrackingStackLimit):
		return fault.Errorf(fault.ErrTimeout, "tokenizer.json: %s: backtracking limit exceeded", r.Label)
	case err != nil: // err's text contains the whole input
		return fault.Errorf(fault.ErrTimeout, "tokenizer.json: %s: more than %v for one match", r.Label,
			matchTries*matchTimeout)
	}
	return flush()
}
