package schema

import (
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/limits"
)

// memberList builds the members of an object.
type memberList struct {
	c           *compiler
	path        string
	members     []*expr.Expr // listed, in order
	required    []bool       // by member
	other       *expr.Expr   // an unlisted member, None if there are none
	least, most int          // members in all; most < 0: unbounded

	limit int
	made  map[memberState]*expr.Expr
}

// memberState is the next listed member and the number of members so far.
type memberState struct{ next, count int }

func (m *memberList) expr() *expr.Expr {
	// The count saturates where it no longer matters: at 1, which decides whether a separator is due, or at the limits.
	// Unlisted properties add at most one towards the least, because two of them could have the same name.
	m.limit = 1
	if m.least > 0 || m.most >= 0 {
		m.limit = max(m.limit, m.least, m.most)
		listed := len(m.members)
		if !m.other.None() {
			listed++
		}
		if m.least > listed {
			if !m.other.None() {
				m.c.fail(expr.ErrUnsupported, m.path, "minProperties %d exceeds the number of listed properties plus one",
					m.least)
			}
			return expr.None
		}
		if m.limit > len(m.members)+1 && m.most > len(m.members) && m.other.None() {
			m.most, m.limit = -1, max(1, m.least)
		}
		if min(m.limit, len(m.members)+1)*(len(m.members)+1) > limits.GrammarPlaces {
			m.c.fail(expr.ErrLimit, m.path, "minProperties or maxProperties with %d listed properties", len(m.members))
			return expr.None
		}
	}
	m.made = map[memberState]*expr.Expr{}
	return expr.Seq(expr.Text("{"), m.rest(memberState{}))
}

// rest matches the members from a state on and the end of the object.
func (m *memberList) rest(at memberState) *expr.Expr {
	if e, ok := m.made[at]; ok {
		return e
	}
	separator := expr.Empty
	if at.count > 0 {
		separator = expr.Text(", ")
	}
	full := m.most >= 0 && at.count >= m.most
	var parts []*expr.Expr
	if at.next == len(m.members) {
		end := expr.Text("}")
		if at.count >= m.least {
			parts = append(parts, end)
		}
		if !m.other.None() && !full && at.count+1 >= m.least {
			more := -1
			if m.most >= 0 {
				more = m.most - at.count - 1
			}
			again := expr.Repeat(expr.Seq(expr.Text(", "), m.other), 0, more)
			parts = append(parts, expr.Seq(separator, m.other, again, end))
		}
	} else {
		if !full {
			next := memberState{at.next + 1, min(at.count+1, m.limit)}
			parts = append(parts, expr.Seq(separator, m.members[at.next], m.rest(next)))
		}
		if !m.required[at.next] {
			parts = append(parts, m.rest(memberState{at.next + 1, at.count}))
		}
	}
	e := expr.Alt(parts...)
	m.made[at] = e
	return e
}
