package fit

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
)

// Thinking is what a template does with the variables that control thinking.
type Thinking struct {
	Switch bool     // thinking can be turned on or off
	Levels []string // the levels that it has, of those in levels; nil: it ignores them
}

// levels are the levels of thinking in all APIs, from none to most. none is thinking turned off.
var levels = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// common are the levels that models which name no levels know.
var common = []string{"low", "medium", "high"}

// thinking finds out what controls thinking.
func (p *prober) thinking() {
	on, off := true, false
	with := func(think *bool, level string) (string, bool) {
		r := chat.Request{Messages: []chat.Message{p.user(user1)}, AddGenerationPrompt: true}
		r.Think, r.ThinkLevel = think, level
		return p.rendered(r)
	}
	var t Thinking
	whenOn, ok := with(&on, "")
	whenOff, ok2 := with(&off, "")
	t.Switch = ok && ok2 && whenOn != whenOff
	const unknown = "xql1z"
	without, lenient := with(&on, unknown)
	switch {
	case lenient && strings.Contains(without, unknown): // printed as it is
		t.Levels = common
	default:
		distinct := false
		for _, level := range levels {
			text, ok := with(&on, level)
			differs := ok && (!lenient || text != without)
			distinct = distinct || differs
			if differs || lenient && slices.Contains(common, level) {
				t.Levels = append(t.Levels, level)
			}
		}
		if !distinct {
			t.Levels = nil
		}
	}
	p.shape.Thinking = t
}

// Think sets a request's thinking to what the template has: the nearest level, or none at all.
func (s *Shape) Think(r *chat.Request) {
	t := s.Thinking
	off := r.Think != nil && !*r.Think
	switch {
	case off && !t.Switch && len(t.Levels) > 0 && r.ThinkLevel == "":
		r.ThinkLevel = t.Levels[0] // none, or the least
	case off && !t.Switch && r.ThinkLevel != "":
		r.ThinkLevel = t.nearest(r.ThinkLevel) // asked for in spite of that
	case off:
		r.ThinkLevel = ""
	case r.ThinkLevel != "":
		r.ThinkLevel = t.nearest(r.ThinkLevel)
	case r.Think != nil && !t.Switch && slices.Contains(t.Levels, levels[0]):
		r.ThinkLevel = t.nearest("high") // nothing else turns it on
	}
}

// nearest returns the level that is nearest to the one that is asked for: of two, the one above up to high, and the one
// below beyond it. It is "" if the template has no levels.
func (t Thinking) nearest(level string) string {
	at := slices.Index(levels, level)
	if len(t.Levels) == 0 || at < 0 {
		return ""
	}
	best, least := "", len(levels)
	for _, l := range t.Levels {
		i := slices.Index(levels, l)
		if i == 0 { // turns thinking off, which was not asked for
			continue
		}
		d := max(i-at, at-i)
		above := i > at && at <= slices.Index(levels, "high")
		if d < least || d == least && above {
			best, least = l, d
		}
	}
	return best
}
