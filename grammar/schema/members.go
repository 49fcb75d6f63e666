package schema

import (
	"fmt"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/instance"
	"github.com/ingotml/ingot/internal/limits"
)

// memberList builds the members of an object.
type memberList struct {
	c           *compiler
	path        string
	members     []*expr.Expr // listed, in order
	required    []bool       // by member
	other       *expr.Expr   // an unlisted member, None if there are none
	next        *expr.Expr   // one whose name differs from those before it, with its separator; nil: not compared
	least, most int          // members in all; most < 0: unbounded

	limit int
	made  map[memberState]*expr.Expr
}

// memberState is the next listed member and the number of members so far.
type memberState struct{ next, count int }

func (m *memberList) expr() *expr.Expr {
	// The count saturates where it no longer matters: at 1, which decides whether a separator is due, or at the limits.
	// Unlisted properties add at most one towards the least if their names are not compared: two could have the same.
	m.limit = 1
	if m.least > 0 || m.most >= 0 {
		m.limit = max(m.limit, m.least, m.most)
		listed := len(m.members)
		if !m.other.None() {
			listed++
		}
		if m.least > listed && m.next == nil {
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
	if m.next != nil {
		return expr.Seq(expr.Text("{"), expr.Compared(m.rest(memberState{}), m.least))
	}
	return expr.Seq(expr.Text("{"), m.rest(memberState{}))
}

// distinct compares the names of unlisted members, because more than one is required. It reports whether there are
// enough names.
func (m *memberList) distinct(others []other) bool {
	if m.least > limits.GrammarUniqueItems {
		const format = "minProperties %d; at most %d"
		m.c.fail(expr.ErrLimit, m.path, format, m.least, limits.GrammarUniqueItems)
		return false
	}
	var names, next []*expr.Expr
	for _, o := range others {
		names, next = append(names, o.name), append(next, o.next())
	}
	all, listed := expr.Alt(names...), len(m.members)
	switch {
	case m.c.sample(all, m.least) == instance.Plenty:
		m.next = expr.Alt(next...)
	case m.c.sample(all, m.least-listed) == instance.Few:
		return false
	default:
		m.c.unsupported(m.path, fmt.Sprintf("the keyword minProperties: %d, for few or unusual names", m.least))
		m.least = listed + 1
	}
	return true
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
		if need := max(m.least-at.count-1, 0); !m.other.None() && !full && (need == 0 || m.next != nil) {
			more := -1
			if m.most >= 0 {
				more = m.most - at.count - 1
			}
			next := m.next
			if next == nil {
				next = expr.Seq(expr.Text(", "), m.other)
			}
			if more < 0 || more >= need {
				parts = append(parts, expr.Seq(separator, m.other, expr.Repeat(next, need, more), end))
			}
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
