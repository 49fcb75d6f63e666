package params

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/internal/limits/jsonfit"
)

// Thinking says whether and how much a model thinks, in any form that a client of one of the APIs sends: a boolean, a
// level, a number of tokens, or an object with such members. It is a hint: a word that it does not know counts as not
// given.
type Thinking struct {
	On     *bool
	Level  string // minimal, low, medium, high, xhigh or max
	Budget *int   // tokens
}

// words are the names of levels; on, off and "" stand for no level.
var words = map[string]string{
	"none": "off", "off": "off", "disabled": "off", "disable": "off", "false": "off", "no": "off",
	"on": "on", "true": "on", "yes": "on", "enabled": "on", "enable": "on", "adaptive": "on", "dynamic": "on",
	"minimal": "minimal", "min": "minimal", "lowest": "minimal",
	"low": "low", "medium": "medium", "normal": "medium", "standard": "medium", "high": "high",
	"xhigh": "xhigh", "x-high": "xhigh", "extra_high": "xhigh", "extra-high": "xhigh", "extra high": "xhigh",
	"max": "max", "maximum": "max", "ultra": "max", "highest": "max",
}

// UnmarshalJSON implements json.Unmarshaler. It fails for lists only.
func (t *Thinking) UnmarshalJSON(b []byte) error {
	*t = Thinking{}
	switch b = bytes.TrimSpace(b); {
	case len(b) == 0:
	case b[0] == '"':
		var text string
		if json.Unmarshal(b, &text) == nil {
			t.word(strings.ToLower(strings.TrimSpace(text)))
		}
	case b[0] == '{':
		t.members(b)
	case b[0] == '[':
		return jsonfit.Wrong(b, "true, false, a level such as low, medium or high, or a number of tokens")
	default:
		t.word(string(b))
	}
	return nil
}

func (t *Thinking) word(text string) {
	switch level := words[text]; level {
	case "":
		if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) {
			t.tokens(n)
		}
	case "off", "on":
		t.On = new(level == "on")
	default:
		t.On, t.Level = new(true), level
	}
}

// tokens sets a budget. 0 turns thinking off, and a negative number leaves its length to the model.
func (t *Thinking) tokens(n float64) {
	if t.On = new(n != 0); n >= 1 {
		t.Budget = new(int(min(n, math.MaxInt32)))
	}
}

// members reads {"type": "enabled", "budget_tokens": 1024}, {"effort": "high"}, {"enabled": true, "max_tokens": 2000}
// and the like.
func (t *Thinking) members(b []byte) {
	var o struct {
		Effort    json.RawMessage `json:"effort"`
		Level     json.RawMessage `json:"level"`
		Budget    json.RawMessage `json:"budget_tokens"`
		MaxTokens json.RawMessage `json:"max_tokens"`
		Enabled   json.RawMessage `json:"enabled"`
		Type      json.RawMessage `json:"type"`
	}
	if json.Unmarshal(b, &o) != nil {
		return
	}
	for _, member := range []json.RawMessage{o.Type, o.Enabled, o.Effort, o.Level, o.Budget, o.MaxTokens} {
		if len(member) > 0 && (member[0] == '{' || member[0] == '[') {
			continue // a hint that nothing is known of
		}
		var part Thinking
		if len(member) > 0 && part.UnmarshalJSON(member) == nil {
			*t = t.Or(part)
		}
	}
	if t.On != nil && !*t.On {
		*t = Thinking{On: t.On}
	}
}

// Or returns t, with what it does not say from another one.
func (t Thinking) Or(other Thinking) Thinking {
	if t.On == nil {
		t.On = other.On
	}
	if t.Level == "" {
		t.Level = other.Level
	}
	if t.Budget == nil {
		t.Budget = other.Budget
	}
	return t
}

// Set sets the thinking of a prompt. A budget without a level also chooses a level, for models that have levels
// but no budget.
func (t Thinking) Set(r *chat.Request) {
	r.Think, r.ThinkLevel, r.ThinkBudget = t.On, t.Level, t.Budget
	if t.Budget == nil || t.Level != "" {
		return
	}
	r.ThinkLevel = "xhigh"
	for _, x := range []struct {
		most  int
		level string
	}{{1024, "minimal"}, {4096, "low"}, {16384, "medium"}, {32768, "high"}} {
		if *t.Budget <= x.most {
			r.ThinkLevel = x.level
			return
		}
	}
}
