package jinja

import (
	"maps"
	"slices"

	"github.com/ingotml/ingot/chat/jinja/ast"
)

// Scoping follows jinja2's idtracking. Each frame (template, loop body, macro, with block...) has a symbol table, which
// maps a name to its variable and to the variable's value on entry of the frame.

// function is code with its own local variables: the template, a macro or a recursive loop.
type function struct {
	parent *function
	slots  int
	scope  *scope
	body   []stmt
}

// ref locates a variable relative to a function: hops functions outward, then slot.
type ref struct{ hops, slot int }

type variable struct {
	fn   *function
	slot int
}

// refFrom returns the ref of v for code in fn.
func (v *variable) refFrom(fn *function) ref {
	r := ref{slot: v.slot}
	for ; fn != v.fn; fn = fn.parent {
		r.hops++
	}
	return r
}

type loadKind int

const (
	loadParam     loadKind = iota // set by the caller of the frame
	loadResolve                   // looked up in the context
	loadAlias                     // copied from an outer frame
	loadUndefined                 // no value
)

type load struct {
	kind  loadKind
	name  string
	outer *variable
}

// scope is the symbol table of a frame.
type scope struct {
	fn     *function
	parent *scope
	own    map[string]*variable // all variables of the frame; shared with the copies for branches
	refs   map[string]*variable
	loads  map[*variable]load
	stores map[string]bool

	budget *budget

	enter []enterOp // the compiled loads
}

// enterOp initializes a variable on entry of its frame.
type enterOp struct {
	slot int
	kind loadKind
	name string
	from ref
}

func newScope(fn *function, parent *scope) *scope {
	return &scope{fn: fn, parent: parent, own: map[string]*variable{}, refs: map[string]*variable{},
		loads: map[*variable]load{}, stores: map[string]bool{}}
}

func (s *scope) copy() *scope {
	s.budget.take(len(s.refs) + len(s.loads) + len(s.stores))
	c := *s
	c.refs, c.loads, c.stores = maps.Clone(s.refs), maps.Clone(s.loads), maps.Clone(s.stores)
	return &c
}

func (s *scope) define(name string, l load) *variable {
	v := s.own[name]
	if v == nil {
		v = &variable{s.fn, s.fn.slots}
		s.fn.slots++
		s.own[name] = v
	}
	s.refs[name] = v
	s.loads[v] = l
	return v
}

func (s *scope) find(name string) *variable {
	for ; s != nil; s = s.parent {
		if v := s.refs[name]; v != nil {
			return v
		}
	}
	return nil
}

func (s *scope) store(name string) {
	s.stores[name] = true
	if s.refs[name] != nil {
		return
	}
	if outer := s.parent.find(name); outer != nil {
		s.define(name, load{kind: loadAlias, outer: outer})
		return
	}
	s.define(name, load{kind: loadUndefined})
}

func (s *scope) param(name string) *variable {
	s.stores[name] = true
	return s.define(name, load{kind: loadParam})
}

func (s *scope) load(name string) {
	if s.find(name) == nil {
		s.define(name, load{kind: loadResolve, name: name})
	}
}

// merge merges the scopes of the branches of an if. A name that only some branches set keeps its outer value in the
// others.
func (s *scope) merge(branches ...*scope) {
	stores := map[string]bool{}
	for _, b := range branches {
		if !s.budget.take(len(b.refs) + len(b.loads) + 2*len(b.stores)) {
			return
		}
		for n := range b.stores {
			if !s.stores[n] {
				stores[n] = true
			}
		}
	}
	for _, b := range branches {
		maps.Copy(s.refs, b.refs)
		maps.Copy(s.loads, b.loads)
		maps.Copy(s.stores, b.stores)
	}
	for name := range stores {
		v := s.find(name)
		if outer := s.parent.find(name); outer != nil {
			s.loads[v] = load{kind: loadAlias, outer: outer}
			continue
		}
		s.loads[v] = load{kind: loadResolve, name: name}
	}
}

// visit records the names that nodes of this frame use.
func (s *scope) visit(nodes ...any) {
	for _, n := range nodes {
		s.visitNode(n)
	}
}

func (s *scope) visitNode(n any) {
	if !s.budget.take(1) {
		return
	}
	switch n := n.(type) {
	case *ast.Name:
		switch n.Use {
		case ast.UseParam:
			s.param(n.Name)
		case ast.UseStore:
			s.store(n.Name)
		default:
			s.load(n.Name)
		}
	case *ast.NSRef:
		s.load(n.Name)
	case *ast.If:
		s.visitIf(n, 0)
	case *ast.Macro:
		s.store(n.Name)
	case *ast.Set:
		s.visit(n.Value, n.Target)
	case *ast.For:
		s.visit(n.Iter)
	case *ast.CallBlock:
		s.visit(n.Call)
	case *ast.Generation:
	case *ast.FilterBlock:
		s.visit(n.Filter)
	case *ast.With:
		s.visit(ast.Exprs(n.Values)...)
	case *ast.SetBlock:
		s.visit(n.Target)
	default:
		s.visit(ast.Children(n)...)
	}
}

func (s *scope) visitIf(n *ast.If, i int) {
	s.visit(n.Tests[i])
	body, elif, other := s.copy(), s.copy(), s.copy()
	body.visit(ast.Stmts(n.Bodies[i])...)
	if i+1 < len(n.Tests) {
		// The reference visits each elif as a separate if, all on the same level.
		for j := i + 1; j < len(n.Tests); j++ {
			elif.visitElif(n, j)
		}
	}
	other.visit(ast.Stmts(n.Other)...)
	s.merge(body, elif, other)
}

func (s *scope) visitElif(n *ast.If, i int) {
	s.visit(n.Tests[i])
	body := s.copy()
	body.visit(ast.Stmts(n.Bodies[i])...)
	s.merge(body, s.copy(), s.copy())
}

// target records the names of a loop's target as parameters of its body.
func (s *scope) target(x ast.Expr) {
	switch x := x.(type) {
	case *ast.Name:
		s.param(x.Name)
	case *ast.NSRef:
		s.load(x.Name)
	case *ast.Tuple:
		for _, i := range x.Items {
			s.target(i)
		}
	}
}

// finish compiles the loads.
func (s *scope) finish() {
	for v, l := range s.loads {
		op := enterOp{slot: v.slot, kind: l.kind, name: l.name}
		switch l.kind {
		case loadParam:
			continue
		case loadAlias:
			op.from = l.outer.refFrom(s.fn)
		}
		s.enter = append(s.enter, op)
	}
	slices.SortFunc(s.enter, func(a, b enterOp) int { return a.slot - b.slot })
}
