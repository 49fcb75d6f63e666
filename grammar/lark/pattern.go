package lark

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// parsePattern returns the regular expression of /pattern/flags. The syntax is that of Rust's crate regex, over Unicode
// (https://docs.rs/regex/latest/regex/#syntax), which package regexp/syntax shares but for the classes \d, \s and \w.
func parsePattern(source string) (dfa.Node, error) {
	last := strings.LastIndexByte(source, '/')
	pattern, flags := source[1:last], source[last+1:]
	if len(pattern) > limits.GrammarRegex {
		return dfa.Node{}, expr.Errorf(expr.ErrLimit, "the pattern has %d bytes; at most %d are allowed", len(pattern),
			limits.GrammarRegex)
	}
	mode := syntax.ClassNL | syntax.PerlX | syntax.UnicodeGroups | syntax.OneLine
	for _, f := range flags {
		switch f {
		case 'i':
			mode |= syntax.FoldCase
		case 's':
			mode |= syntax.DotNL
		case 'm', 'u':
		default:
			return dfa.Node{}, expr.Errorf(expr.ErrUnsupported, "the flag %c of a regular expression", f)
		}
	}
	pattern, err := translate(pattern)
	if err != nil {
		return dfa.Node{}, err
	}
	re, err := syntax.Parse(pattern, mode)
	if err != nil {
		kind := expr.ErrInvalid
		if e, ok := err.(*syntax.Error); ok {
			switch e.Code {
			case syntax.ErrInvalidPerlOp, syntax.ErrInvalidEscape:
				kind = expr.ErrUnsupported
			case syntax.ErrInvalidRepeatSize, syntax.ErrLarge, syntax.ErrNestingDepth:
				kind = expr.ErrLimit
			}
		}
		return dfa.Node{}, expr.Errorf(kind, "%s", expr.Clip(err.Error()))
	}
	return convert(re)
}

// translate writes a pattern of Rust's crate as one of regexp/syntax.
func translate(pattern string) (string, error) {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern):
			i++
			b.WriteString(escape(pattern[i], inClass))
			if pattern[i] == 'u' || pattern[i] == 'x' { // \u{e9}, \u00e9, \x41, \x{e9}
				digits := map[byte]int{'u': 4, 'x': 2}[pattern[i]]
				if i+1 < len(pattern) && pattern[i+1] == '{' {
					continue
				}
				if i+digits >= len(pattern) {
					return "", expr.Errorf(expr.ErrInvalid, `the escape \%c needs %d digits`, pattern[i], digits)
				}
				b.WriteString("{" + pattern[i+1:i+1+digits] + "}")
				i += digits
			}
			continue
		case inClass && (c == '[' && !strings.HasPrefix(pattern[i:], "[:") ||
			i+1 < len(pattern) && (c == '&' || c == '~' || c == '-') && pattern[i+1] == c):
			return "", expr.Errorf(expr.ErrUnsupported, "set operations in a character class")
		case inClass && strings.HasPrefix(pattern[i:], "[:"):
			if n := strings.Index(pattern[i:], ":]"); n > 0 {
				b.WriteString(pattern[i : i+n+2])
				i += n + 1
				continue
			}
		case !inClass && c == '[':
			inClass = true
			b.WriteByte(c)
			for _, first := range []string{"^", "]"} { // a bracket that stands first is a character
				if strings.HasPrefix(pattern[i+1:], first) {
					b.WriteString(first)
					i++
				}
			}
			continue
		case inClass && c == ']':
			inClass = false
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

// escape returns what the escape of c is in regexp/syntax.
func escape(c byte, inClass bool) string {
	switch c {
	case 'd', 'D', 's', 'S', 'w', 'W':
		if ranges := unicodeClasses()[c]; inClass {
			return ranges
		} else {
			return "[" + ranges + "]"
		}
	case 'u', 'x':
		return `\x`
	case '/', '"', '\'', '<', '>', '=', '!', ':', ',', ';', '@', '%', '`', '_':
		return string(c)
	}
	return `\` + string(c)
}

// unicodeClasses are the ranges of \d, \s, \w and their complements in Unicode.
// https://www.unicode.org/reports/tr18/#Compatibility_Properties
var unicodeClasses = sync.OnceValue(func() map[byte]string {
	all := map[byte]string{}
	add := func(name byte, tables ...*unicode.RangeTable) {
		var pairs []rune
		for _, t := range tables {
			for _, r := range t.R16 {
				for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
					pairs = append(pairs, c, c)
				}
			}
			for _, r := range t.R32 {
				for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
					pairs = append(pairs, c, c)
				}
			}
		}
		set := expr.RuneSetOf(pairs)
		all[name], all[name-'a'+'A'] = ranges(set), ranges(set.Not())
	}
	add('d', unicode.Nd)
	add('s', unicode.White_Space)
	add('w', unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc, unicode.Join_Control)
	return all
})

func ranges(s expr.RuneSet) string {
	var b strings.Builder
	for i := 0; i < len(s); i += 2 {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, s[i], s[i+1])
	}
	return b.String()
}

// convert returns the expression of a parsed pattern.
func convert(re *syntax.Regexp) (n dfa.Node, err error) {
	subs := make([]dfa.Node, len(re.Sub))
	for i, s := range re.Sub {
		if subs[i], err = convert(s); err != nil {
			return n, err
		}
	}
	switch re.Op {
	case syntax.OpNoMatch:
		return dfa.Alt(), nil
	case syntax.OpEmptyMatch:
		return dfa.Cat(), nil
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			pairs := []rune{r, r}
			if re.Flags&syntax.FoldCase != 0 {
				pairs = folds(r)
			}
			subs = append(subs, dfa.Set(expr.RuneSetOf(pairs)))
		}
		return dfa.Cat(subs...), nil
	case syntax.OpCharClass:
		return dfa.Set(expr.RuneSet(re.Rune).And(expr.EveryRune)), nil
	case syntax.OpAnyCharNotNL:
		return dfa.Set(expr.RuneSet{'\n', '\n'}.Not()), nil
	case syntax.OpAnyChar:
		return dfa.Set(expr.EveryRune), nil
	case syntax.OpBeginText:
		return dfa.Begin(), nil
	case syntax.OpEndText:
		return dfa.End(), nil
	case syntax.OpCapture:
		return subs[0], nil
	case syntax.OpStar:
		return dfa.Repeat(subs[0], 0, -1), nil
	case syntax.OpPlus:
		return dfa.Repeat(subs[0], 1, -1), nil
	case syntax.OpQuest:
		return dfa.Repeat(subs[0], 0, 1), nil
	case syntax.OpRepeat:
		return dfa.Repeat(subs[0], re.Min, re.Max), nil
	case syntax.OpConcat:
		return dfa.Cat(subs...), nil
	case syntax.OpAlternate:
		return dfa.Alt(subs...), nil
	}
	return n, expr.Errorf(expr.ErrUnsupported, "the assertion %s of a regular expression", re.String())
}
