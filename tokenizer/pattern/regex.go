package pattern

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
)

const (
	matchTimeout = 2 * time.Second  // per search
	textTimeout  = 10 * time.Second // per text, plus one second per megabyte
	batchSize    = 1 << 10          // matches between two checks of the time limit
	stackLimit   = 1 << 22          // slots of a search's backtracking stack
)

// Regex runs a pattern on the general engine. The engine backtracks, hence the time limits.
type Regex struct {
	re    *regexp2.Regexp
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
	return &Regex{re, fmt.Sprintf("%v: pattern %q", c, label)}, nil
}

func (r *Regex) Matches(s string, found func(start, end int) error) error {
	if s == "" {
		return nil
	}
	var (
		text    = []rune(s)
		at, pos = 0, 0 // the same position in characters and in bytes
		last    = -1   // end of the last match
		batch   = make([]int, 0, 2*batchSize)
		limit   = textTimeout + time.Duration(len(s)>>20)*time.Second
		began   = time.Now()
		spent   time.Duration // in matching, without the time in found
		stop    error
	)
	flush := func() error {
		if spent += time.Since(began); spent > limit {
			return fault.Errorf(fault.ErrTimeout, "tokenizer.json: %s: more than %v for %d bytes of text", r.Label, limit,
				len(s))
		}
		for i := 0; i < len(batch); i += 2 {
			if err := found(batch[i], batch[i+1]); err != nil {
				return err
			}
		}
		batch = batch[:0]
		began = time.Now()
		return nil
	}
	advance := func(to int) int {
		for ; at < to; at++ {
			pos += utf8.RuneLen(text[at])
		}
		return pos
	}
	err := r.re.FindRunesMatches(text, 0, func(m regexp2.MatchView) bool {
		i, n, _ := m.GroupRange(0)
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
	})
	switch {
	case stop != nil:
		return stop
	case errors.Is(err, regexp2.ErrBacktrackingStackLimit):
		return fault.Errorf(fault.ErrTimeout, "tokenizer.json: %s: backtracking limit exceeded", r.Label)
	case err != nil: // err's text contains the whole input
		return fault.Errorf(fault.ErrTimeout, "tokenizer.json: %s: more than %v for one match", r.Label, matchTimeout)
	}
	return flush()
}
