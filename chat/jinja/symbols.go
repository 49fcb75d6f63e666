package jinja

import (
	"maps"
	"slices"
)

// Names follow jinja2's idtracking: each frame (template, loop body, macro, with...) has symbols, which say for each name where
// it lives and what it holds when the frame is entered.

// function is what has local variables of its own: the template, a block, a macro, a recursive loop.
type function struct {
	parent *function
	slots  int
	scope  *scope
	body   []stmt
}

// ref is the place of a variable seen from a function: so many functions out, and its slot there.
type ref struct{ hops, slot int }

type variable struct {
	fn   *function
	slot int
}

// refFrom is the place of v for code of fn.
func (v *variable) refFrom(fn *function) ref {
	r := ref{slot: v.slot}
	for ; fn != v.fn; fn = fn.parent {
		r.hops++
	}
	return r
}

type loadKind int

const (
	loadParam     loadKind = iota // set by whoever enters the frame
	loadResolve                   // looked up in the context
	loadAlias                     // copied from an outer frame
	loadUndefined                 // nothing yet
)

type load struct {
	kind  loadKind
	name  string
	outer *variable
}

// scope is the symbols of one frame.
type scope struct {
	fn     *function
	parent *scope
	own    map[string]*variable // all variables of the frame; shared by the copies that branches work on
	refs   map[string]*variable
	loads  map[*variable]load
	stores map[string]bool

	budget *budget

	enter []enterOp // the loads in executable form
}

// enterOp prepares a variable when the frame is entered.
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

// merge takes over what the branches of an if found: a name that only some path sets keeps its outer value on the others.
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

// visit notes the names of nodes that belong to the frame.
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
	case *nameExpr:
		switch n.use {
		case useParam:
			s.param(n.name)
		case useStore:
			s.store(n.name)
		default:
			s.load(n.name)
		}
	case *nsRef:
		s.load(n.name)
	case *ifStmt:
		s.visitIf(n, 0)
	case *macroStmt:
		s.store(n.name)
	case *loadStmt:
		s.visit(n.template)
		for _, name := range n.stores {
			s.store(name)
		}
	case *setStmt:
		s.visit(n.value, n.target)
	case *forStmt:
		s.visit(n.iter)
	case *callStmt:
		s.visit(n.call)
	case *generationStmt:
		s.visit(n.call)
	case *filterStmt:
		s.visit(n.filter)
	case *withStmt:
		s.visit(exprs(n.values)...)
	case *setBlock:
		s.visit(n.target)
	case *autoescapeStmt, *blockNode:
	default:
		s.visit(children(n)...)
	}
}

func (s *scope) visitIf(n *ifStmt, i int) {
	s.visit(n.tests[i])
	body, elif, other := s.copy(), s.copy(), s.copy()
	body.visit(stmts(n.bodies[i])...)
	if i+1 < len(n.tests) {
		// Each elif is an if of its own that stands beside the others.
		for j := i + 1; j < len(n.tests); j++ {
			elif.visitElif(n, j)
		}
	}
	other.visit(stmts(n.other)...)
	s.merge(body, elif, other)
}

func (s *scope) visitElif(n *ifStmt, i int) {
	s.visit(n.tests[i])
	body := s.copy()
	body.visit(stmts(n.bodies[i])...)
	s.merge(body, s.copy(), s.copy())
}

// target notes the names of a loop's target, which count as parameters of its body.
func (s *scope) target(x expr) {
	switch x := x.(type) {
	case *nameExpr:
		s.param(x.name)
	case *nsRef:
		s.load(x.name)
	case *tupleExpr:
		for _, i := range x.items {
			s.target(i)
		}
	}
}

// finish makes the executable form of the loads.
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
