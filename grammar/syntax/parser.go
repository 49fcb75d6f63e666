// Package syntax parses the rules of a grammar: what EBNF and Lark share of symbols, tree and limits.
//
// Contract: a [Language] says what differs. The first error counts, with its line; what is returned after it has no
// meaning. Groups and repetitions are nested at most limits.GrammarNesting levels deep.
package syntax

import (
	"context"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// Language is what one language has of its own. Its methods read symbols of the parser that calls them.
type Language interface {
	// Scan returns the next symbol, which begins at or behind At, and moves At behind it.
	Scan() Symbol
	// Another reports whether another alternative follows, and reads what separates them.
	Another() bool
	// Ends reports whether a sequence ends before the next symbol.
	Ends() bool
	// Part reads a part of a sequence.
	Part() *Node
	// Count reads a repetition other than ?, * and +, or reports that there is none; most < 0: unbounded.
	Count() (least, most int, ok bool)
}

// Parser reads a source symbol by symbol.
type Parser struct {
	Source string
	At     int    // where the symbol behind Next may begin
	Next   Symbol // not read yet
	Depth  int    // of groups
	Err    error  // the first

	ctx      context.Context
	language Language
}

// Start scans the first symbol of a source.
func (p *Parser) Start(ctx context.Context, source string, of Language) {
	p.Source, p.ctx, p.language = source, ctx, of
	p.Advance()
}

// Fail records the first error, with the line of an offset.
func (p *Parser) Fail(kind error, at int, format string, args ...any) {
	if p.Err == nil {
		line := 1 + strings.Count(p.Source[:min(at, len(p.Source))], "\n")
		p.Err = expr.Errorf(kind, "line %d: "+format, append([]any{line}, args...)...)
	}
}

// Advance returns the next symbol and scans the one after it. After an error the source is at its end.
func (p *Parser) Advance() Symbol {
	s := p.Next
	if p.Err == nil {
		p.Next = p.language.Scan()
	}
	if p.Err != nil {
		p.Next = Symbol{End, "", len(p.Source)}
	}
	return s
}

// Is reports whether the next symbol is an operator.
func (p *Parser) Is(operator string) bool { return p.Next.Kind == Operator && p.Next.Text == operator }

// Take reads the next symbol if it is an operator, and reports whether it is.
func (p *Parser) Take(operator string) bool {
	is := p.Is(operator)
	if is {
		p.Advance()
	}
	return is
}

// Nested enters a group, unless it is nested too deep. The caller leaves it.
func (p *Parser) Nested() bool {
	if p.Depth++; p.Depth > limits.GrammarNesting {
		p.Fail(expr.ErrLimit, p.Next.At, "groups are nested more than %d levels deep", limits.GrammarNesting)
	}
	return p.Err == nil
}

// Alternatives reads sequences of which one must match.
func (p *Parser) Alternatives() *Node {
	at := p.Next.At
	if !p.Nested() {
		return &Node{}
	}
	defer func() { p.Depth-- }()
	alts := []*Node{p.sequence()}
	for p.Err == nil && p.language.Another() {
		alts = append(alts, p.sequence())
	}
	if len(alts) == 1 {
		return alts[0]
	}
	return &Node{Op: Alt, At: at, Subs: alts}
}

func (p *Parser) sequence() *Node {
	n := &Node{Op: Seq, At: p.Next.At}
	for p.Err == nil && !p.language.Ends() {
		if err := p.ctx.Err(); err != nil && p.Err == nil {
			p.Err = err
			break
		}
		n.Subs = append(n.Subs, p.language.Part())
	}
	if len(n.Subs) == 1 {
		return n.Subs[0]
	}
	return n
}

// Repeated reads the repetitions behind n.
func (p *Parser) Repeated(n *Node) *Node {
	for times := 0; p.Err == nil; times++ {
		if times > limits.GrammarNesting {
			p.Fail(expr.ErrLimit, p.Next.At, "more than %d nested repetitions", limits.GrammarNesting)
			break
		}
		at, least, most := p.Next.At, 0, -1
		switch {
		case p.Take("?"):
			most = 1
		case p.Take("*"):
		case p.Take("+"):
			least = 1
		default:
			var ok bool
			if least, most, ok = p.language.Count(); !ok {
				return n
			}
		}
		n = &Node{Op: Repeat, At: at, Subs: []*Node{n}, Min: least, Max: most}
	}
	return n
}
