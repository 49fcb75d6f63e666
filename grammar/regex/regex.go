// Package regex compiles regular expressions to expressions over bytes.
//
// Contract: the syntax is RE2's, as in package regexp/syntax. What is not regular, anchors inside and word boundaries
// are ErrUnsupported by name, never ignored. FromECMA translates the escapes of JSON schemas' patterns first.
package regex

import (
	"regexp/syntax"
	"strings"
	"unicode"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// Compile returns the texts that pattern matches. encode returns the expr of one character of a set. search is the
// rule of JSON schemas: without anchors the pattern may match anywhere in the text.
func Compile(pattern string, encode func(expr.RuneSet) *expr.Expr, search bool) (*expr.Expr, error) {
	if len(pattern) > limits.GrammarRegex {
		return nil, expr.Errorf(expr.ErrLimit, "the pattern has %d bytes; at most %d are allowed", len(pattern),
			limits.GrammarRegex)
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		if e := (*syntax.Error)(nil); asSyntaxError(err, &e) {
			switch e.Code {
			case syntax.ErrInvalidPerlOp:
				const why = "look-around and backreferences are not regular"
				return nil, expr.Errorf(expr.ErrUnsupported, "%q in the pattern %q (%s)", expr.Clip(e.Expr), expr.Clip(pattern),
					why)
			case syntax.ErrInvalidRepeatSize, syntax.ErrLarge, syntax.ErrNestingDepth:
				return nil, expr.Errorf(expr.ErrLimit, "pattern %q: %s", expr.Clip(pattern), e.Code)
			case syntax.ErrInvalidEscape:
				return nil, expr.Errorf(expr.ErrUnsupported, "the escape %s in the pattern %q", expr.Clip(e.Expr),
					expr.Clip(pattern))
			}
			return nil, expr.Errorf(expr.ErrInvalid, "pattern %q: %s: %s", expr.Clip(pattern), e.Code, expr.Clip(e.Expr))
		}
		return nil, expr.Errorf(expr.ErrInvalid, "pattern %q: %v", expr.Clip(pattern), err)
	}
	c := &compiler{pattern: pattern, encode: encode, classes: map[string]*expr.Expr{}}
	if search {
		c.dot = expr.Repeat(encode(expr.EveryRune), 0, -1)
	}
	e := c.anchored(re, true, true)
	return e, c.err
}

func asSyntaxError(err error, target **syntax.Error) bool {
	e, ok := err.(*syntax.Error)
	*target = e
	return ok
}

type compiler struct {
	pattern string
	encode  func(expr.RuneSet) *expr.Expr
	dot     *expr.Expr // any text: what may precede and follow a match; nil: nothing
	classes map[string]*expr.Expr
	err     error
}

// anchored compiles re; first and last tell whether it is at the start and at the end of the pattern, where anchors are
// allowed and other text may precede or follow the match.
func (c *compiler) anchored(re *syntax.Regexp, first, last bool) *expr.Expr {
	switch re.Op {
	case syntax.OpCapture:
		return c.anchored(re.Sub[0], first, last)
	case syntax.OpAlternate:
		parts := make([]*expr.Expr, len(re.Sub))
		for i, s := range re.Sub {
			parts[i] = c.anchored(s, first, last)
		}
		return expr.Alt(parts...)
	case syntax.OpBeginText:
		if first {
			if last {
				return c.around(expr.Empty, false, true)
			}
			return expr.Empty
		}
	case syntax.OpEndText:
		if last {
			if first {
				return c.around(expr.Empty, true, false)
			}
			return expr.Empty
		}
	case syntax.OpConcat:
		subs := re.Sub
		before, after := first, last
		for len(subs) > 0 && first && subs[0].Op == syntax.OpBeginText {
			subs, before = subs[1:], false
		}
		for len(subs) > 0 && last && subs[len(subs)-1].Op == syntax.OpEndText {
			subs, after = subs[:len(subs)-1], false
		}
		parts := make([]*expr.Expr, 0, len(subs))
		for i, s := range subs {
			// A group at either end may contain anchors.
			head, tail := before && i == 0, after && i == len(subs)-1
			if (head || tail) && hasAnchor(s) {
				parts = append(parts, c.anchored(s, head, tail))
				before, after = before && !head, after && !tail
				continue
			}
			parts = append(parts, c.expr(s))
		}
		return c.around(expr.Seq(parts...), before, after)
	}
	return c.around(c.expr(re), first, last)
}

func (c *compiler) around(e *expr.Expr, before, after bool) *expr.Expr {
	if c.dot == nil {
		return e
	}
	if before {
		e = expr.Seq(c.dot, e)
	}
	if after {
		e = expr.Seq(e, c.dot)
	}
	return e
}

func hasAnchor(re *syntax.Regexp) bool {
	if re.Op == syntax.OpBeginText || re.Op == syntax.OpEndText {
		return true
	}
	for _, s := range re.Sub {
		if hasAnchor(s) {
			return true
		}
	}
	return false
}

func (c *compiler) expr(re *syntax.Regexp) *expr.Expr {
	switch re.Op {
	case syntax.OpNoMatch:
		return expr.None
	case syntax.OpEmptyMatch:
		return expr.Empty
	case syntax.OpLiteral:
		parts := make([]*expr.Expr, len(re.Rune))
		for i, r := range re.Rune {
			if re.Flags&syntax.FoldCase != 0 {
				pairs := []rune{r, r}
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					pairs = append(pairs, f, f)
				}
				parts[i] = c.class(expr.RuneSetOf(pairs))
			} else {
				parts[i] = c.class(expr.RuneSet{r, r}.And(expr.EveryRune))
			}
		}
		return expr.Seq(parts...)
	case syntax.OpCharClass:
		return c.class(expr.RuneSet(re.Rune).And(expr.EveryRune))
	case syntax.OpAnyCharNotNL:
		// A dot excludes the line terminators of both RE2 and ECMA-262 (section 12.3, LineTerminator).
		return c.class(expr.RuneSet{'\n', '\n', '\r', '\r', 0x2028, 0x2029}.Not())
	case syntax.OpAnyChar:
		return c.class(expr.EveryRune)
	case syntax.OpCapture:
		return c.expr(re.Sub[0])
	case syntax.OpStar:
		return expr.Repeat(c.expr(re.Sub[0]), 0, -1)
	case syntax.OpPlus:
		return expr.Repeat(c.expr(re.Sub[0]), 1, -1)
	case syntax.OpQuest:
		return expr.Opt(c.expr(re.Sub[0]))
	case syntax.OpRepeat:
		return expr.Repeat(c.expr(re.Sub[0]), re.Min, re.Max)
	case syntax.OpConcat:
		parts := make([]*expr.Expr, len(re.Sub))
		for i, s := range re.Sub {
			parts[i] = c.expr(s)
		}
		return expr.Seq(parts...)
	case syntax.OpAlternate:
		parts := make([]*expr.Expr, len(re.Sub))
		for i, s := range re.Sub {
			parts[i] = c.expr(s)
		}
		return expr.Alt(parts...)
	}
	name := map[syntax.Op]string{syntax.OpBeginText: "the anchor ^ inside", syntax.OpEndText: "the anchor $ inside",
		syntax.OpBeginLine: "the multi-line anchor ^", syntax.OpEndLine: "the multi-line anchor $",
		syntax.OpWordBoundary: `\b`, syntax.OpNoWordBoundary: `\B`}[re.Op]
	if c.err == nil {
		c.err = expr.Errorf(expr.ErrUnsupported, "%s in the pattern %q", name, expr.Clip(c.pattern))
	}
	return expr.None
}

// class matches one character of s. Equal classes share one expr, so that they share nodes before equal continuations.
func (c *compiler) class(s expr.RuneSet) *expr.Expr {
	key := string(s)
	if e, ok := c.classes[key]; ok {
		return e
	}
	e := c.encode(s)
	c.classes[key] = e
	return e
}

// FromECMA translates escapes of JSON schemas' patterns (ECMA-262) that RE2 lacks.
func FromECMA(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '\\' || i+1 == len(pattern) {
			b.WriteByte(pattern[i])
			continue
		}
		i++
		switch next := pattern[i]; {
		case next == 'u' && i+4 < len(pattern) && isHex(pattern[i+1:i+5]):
			b.WriteString(`\x{` + pattern[i+1:i+5] + `}`)
			i += 4
		case next == 'c' && i+1 < len(pattern):
			const digits = "0123456789abcdef"
			control := pattern[i+1] & 31
			b.WriteString(`\x` + string([]byte{digits[control>>4], digits[control&15]}))
			i++
		case next == '0':
			b.WriteString(`\x00`)
		default:
			b.WriteByte('\\')
			b.WriteByte(next)
		}
	}
	return b.String()
}

func isHex(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
