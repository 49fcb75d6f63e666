// Package recipe reads what a user asks of a quantization: a type for all weights, and rules for some of them.
//
// A [Precision] is plain data. Its JSON form, a recipe, is stored in images and provenance records, so that a
// quantization can be repeated. Which type a tensor gets is decided by package plan.
package recipe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/quantize"
)

// ErrRecipe reports an invalid recipe or quantization rule.
var ErrRecipe = fault.Register(errors.New("bad quantization recipe"), fault.Kind{
	Name: "quantize/recipe.ErrRecipe", Means: "a recipe or a quantization rule is invalid",
	Rank: fault.Import + 2, Status: fault.Invalid,
})

// Precision chooses the types that weights are stored in. The zero value keeps the source's. Its JSON form is a recipe.
type Precision struct {
	Type  quantize.Type `json:"quantize,omitempty"`       // 0 = the source's
	Draft quantize.Type `json:"quantize_draft,omitempty"` // of the draft's weights
	// Uniform gives Type to every weight that is quantized, without precision rules that promote some of them.
	Uniform bool   `json:"uniform,omitempty"`
	Rules   []Rule `json:"rules,omitempty"` // override all else; the last match wins
	// RuleSet is the version of the architectures' precision rules; "" is the default one.
	RuleSet RuleSet `json:"rule_set,omitempty"`
}

// Recorded returns the precision as images and provenance records state it, so that later versions can repeat it: with
// the name of the rule set that it uses. Records of the first rule set do not name it.
func (p Precision) Recorded() Precision {
	if p.RuleSet = cmp.Or(p.RuleSet, DefaultRuleSet); p.RuleSet == RuleSet1 || p.Type == 0 && p.Draft == 0 {
		p.RuleSet = ""
	}
	return p
}

// ToType returns the precision for one type's name, and a note for the user if the name is an alias.
func ToType(text string) (p Precision, note string, err error) {
	if p.Type, note, err = quantize.ParseType(text); err != nil {
		return p, "", fmt.Errorf("%w: %w", ErrRecipe, err)
	}
	return p, note, nil
}

// Rule assigns a type to the tensors that a pattern matches.
type Rule struct {
	Match string        `json:"match"` // of names in the image, as in package path: * matches any characters but /
	Type  quantize.Type `json:"type"`  // 0, in JSON "source", keeps the source's type
}

// Source is the name of type 0.
const Source = "source"

func (r Rule) String() string { return r.Match + "=" + r.typeName() }

func (r Rule) typeName() string {
	if r.Type == 0 {
		return Source
	}
	return r.Type.String()
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *Rule) UnmarshalJSON(data []byte) error {
	var text struct{ Match, Type string }
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	rule, _, err := newRule(text.Match, text.Type)
	if err == nil {
		*r = rule
	}
	return err
}

// MarshalJSON writes the form that [Parse] accepts.
func (r Rule) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // as in all records of an image
	err := e.Encode(map[string]string{"match": r.Match, "type": r.typeName()})
	return b.Bytes(), err
}

// ParseRule parses GLOB=TYPE. It returns a note for the user if the type's name is an alias.
func ParseRule(text string) (r Rule, note string, err error) {
	at := strings.LastIndexByte(text, '=')
	if at <= 0 || at == len(text)-1 {
		return Rule{}, "", fmt.Errorf("%w: rule %q: want GLOB=TYPE, such as '*.down_proj.weight=int8'",
			ErrRecipe, quoted(text))
	}
	r, note, err = newRule(text[:at], text[at+1:])
	if err != nil {
		return Rule{}, "", fmt.Errorf("%w: rule %q: %w", ErrRecipe, quoted(text), err)
	}
	return r, note, nil
}

func newRule(match, typeText string) (Rule, string, error) {
	if match == "" {
		return Rule{}, "", fmt.Errorf("the pattern is empty")
	}
	if _, err := path.Match(match, ""); err != nil {
		return Rule{}, "", fmt.Errorf("pattern %q: %w", quoted(match), err)
	}
	if strings.EqualFold(typeText, Source) {
		return Rule{Match: match}, "", nil
	}
	t, note, err := quantize.ParseType(typeText)
	if err != nil {
		return Rule{}, "", fmt.Errorf("%w, or %s", err, Source)
	}
	return Rule{Match: match, Type: t}, note, nil
}

// document is the JSON form of a recipe.
type document struct {
	Quantize string `json:"quantize"`
	Draft    string `json:"quantize_draft"`
	Uniform  bool   `json:"uniform"`
	RuleSet  string `json:"rule_set"`
	Rules    []struct {
		Match string `json:"match"`
		Type  string `json:"type"`
	} `json:"rules"`
}

// maxRecipe bounds a recipe's size in bytes.
const maxRecipe = 1 << 20

// Parse parses a recipe, such as
//
//	{"quantize": "int4", "quantize_draft": "int8", "uniform": false,
//	 "rules": [{"match": "*.down_proj.weight", "type": "int8"}, {"match": "lm_head.weight", "type": "source"}],
//	 "rule_set": "rules-2"}
//
// All keys are optional, and unknown keys are an error. It returns notes for the user about aliases of types.
func Parse(data []byte) (p Precision, notes []string, err error) {
	if p, notes, err = parse(data); err != nil {
		return Precision{}, nil, fmt.Errorf("%w: %w", ErrRecipe, err)
	}
	return p, notes, nil
}

func parse(data []byte) (p Precision, notes []string, err error) {
	if len(data) > maxRecipe {
		return p, nil, fmt.Errorf("more than %d bytes", maxRecipe)
	}
	var r *document
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return p, nil, atLine(data, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return p, nil, fmt.Errorf("there is more than one JSON value")
	}
	if r == nil {
		return p, nil, fmt.Errorf("it is null")
	}
	for _, f := range []struct {
		key, text string
		to        *quantize.Type
	}{{"quantize", r.Quantize, &p.Type}, {"quantize_draft", r.Draft, &p.Draft}} {
		if f.text == "" {
			continue
		}
		note := ""
		if *f.to, note, err = quantize.ParseType(f.text); err != nil {
			return p, nil, fmt.Errorf("%s: %w", f.key, err)
		}
		notes = appendNote(notes, note)
	}
	p.Uniform = r.Uniform
	if p.RuleSet, err = ParseRuleSet(r.RuleSet); err != nil {
		return p, nil, fmt.Errorf("rule_set: %w", err)
	}
	for i, text := range r.Rules {
		rule, note, err := newRule(text.Match, text.Type)
		if err != nil {
			return p, nil, fmt.Errorf("rules[%d]: %w", i, err)
		}
		p.Rules = append(p.Rules, rule)
		notes = appendNote(notes, note)
	}
	return p, notes, nil
}

// quoted shortens a quotation for a message.
func quoted(s string) string { return clip.Text(s, 80) }

func appendNote(notes []string, note string) []string {
	if note == "" {
		return notes
	}
	return append(notes, note)
}

// atLine adds the line number to a JSON error that has an offset.
func atLine(data []byte, err error) error {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the JSON ends too early")
	}
	if offset < 0 {
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n")), err)
}
