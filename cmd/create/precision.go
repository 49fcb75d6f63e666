package create

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

// precision combines the recipe and the flags.
func (o createOptions) precision(a *cli.App) (recipe.Precision, error) {
	var p recipe.Precision
	if o.recipe != "" {
		data, err := os.ReadFile(o.recipe)
		if err != nil {
			return p, err
		}
		var notes []string
		if p, notes, err = recipe.Parse(data); err != nil {
			return p, fmt.Errorf("%s: %w", o.recipe, err)
		}
		for _, n := range notes {
			a.Note("note: %s", n)
		}
	}
	for _, f := range []struct {
		flag, text string
		to         *quantize.Type
	}{{"--quantize", o.quantize, &p.Type}, {"--quantize-draft", o.draft, &p.Draft}} {
		if f.text == "" {
			continue
		}
		if strings.EqualFold(f.text, recipe.Source) {
			*f.to = 0 // also instead of the recipe's
			continue
		}
		t, note, err := quantize.ParseType(f.text)
		if err != nil {
			return p, cli.Usagef("%s: %v, or %s", f.flag, err, recipe.Source)
		}
		if note != "" {
			a.Note("note: %s", note)
		}
		*f.to = t
	}
	for _, text := range o.rules {
		r, note, err := recipe.ParseRule(text)
		if err != nil {
			return p, cli.Usagef("--quantize-rule: %v", err)
		}
		if note != "" {
			a.Note("note: %s", note)
		}
		p.Rules = append(p.Rules, r)
	}
	p.Uniform = p.Uniform || o.uniform
	if o.ruleSet != "" {
		set, err := recipe.ParseRuleSet(o.ruleSet)
		if err != nil {
			return p, cli.Usagef("--rule-set: %v", err)
		}
		p.RuleSet = set
	}
	if p.Uniform && p.Type == 0 && p.Draft == 0 {
		return p, cli.Usagef("--uniform requires a type: pass --quantize TYPE")
	}
	return p, nil
}

// limitMemory sets the garbage collector's limit. It reserves a sixteenth for memory that the collector does not count.
func limitMemory(limit int64) { debug.SetMemoryLimit(limit - limit/16) }
