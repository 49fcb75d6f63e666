package lark

import (
	"encoding/json"
	"github.com/ingotml/ingot/grammar/syntax"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// common has the terminals of Lark's library of that name, as regular expressions.
// https://github.com/lark-parser/lark/blob/master/lark/grammars/common.lark
var common = map[string]string{
	"DIGIT":          `[0-9]`,
	"HEXDIGIT":       `[a-fA-F0-9]`,
	"INT":            `[0-9]+`,
	"SIGNED_INT":     `[+\-]?[0-9]+`,
	"DECIMAL":        `[0-9]+\.[0-9]*|\.[0-9]+`,
	"_EXP":           `[eE][+\-]?[0-9]+`,
	"FLOAT":          `[0-9]+[eE][+\-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+\-]?[0-9]+)?`,
	"SIGNED_FLOAT":   `[+\-]?([0-9]+[eE][+\-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+\-]?[0-9]+)?)`,
	"NUMBER":         `([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+\-]?[0-9]+)?`,
	"SIGNED_NUMBER":  `[+\-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+\-]?[0-9]+)?`,
	"ESCAPED_STRING": `"([^"\\\n]|\\[^\n])*"`,
	"LCASE_LETTER":   `[a-z]`,
	"UCASE_LETTER":   `[A-Z]`,
	"LETTER":         `[A-Za-z]`,
	"WORD":           `[A-Za-z]+`,
	"CNAME":          `[_A-Za-z][_A-Za-z0-9]*`,
	"WS_INLINE":      `[ \t]+`,
	"WS":             `[ \t\f\r\n]+`,
	"CR":             `\r`,
	"LF":             `\n`,
	"NEWLINE":        `(\r?\n)+`,
	"SH_COMMENT":     `#[^\n]*`,
	"CPP_COMMENT":    `\/\/[^\n]*`,
	"C_COMMENT":      `\/\*([^*]|\*+[^*\/])*\*+\/`,
	"SQL_COMMENT":    `--[^\n]*`,
}

func commonNames() []string { return slices.Sorted(maps.Keys(common)) }

func commonTerminal(name string) *syntax.Node {
	if r, ok := common[name]; ok {
		return &syntax.Node{Op: opPattern, Text: "/" + r + "/"}
	}
	return nil
}

// jsonLength returns the length of the JSON value that s begins with.
func jsonLength(s string) (int, error) {
	d := json.NewDecoder(strings.NewReader(s))
	var v json.RawMessage
	err := d.Decode(&v)
	return int(d.InputOffset()), err
}

// folds returns a character and those that differ in case only, as ranges.
func folds(r rune) []rune {
	pairs := []rune{r, r}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		pairs = append(pairs, f, f)
	}
	return pairs
}

// words splits a text into words and what is between them.
func words(s string) (out []string) {
	isWord := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	last := false
	for _, r := range s {
		if w := isWord(r); w && last {
			out[len(out)-1] += string(r)
		} else {
			out = append(out, string(r))
			last = w
		}
	}
	return out
}
