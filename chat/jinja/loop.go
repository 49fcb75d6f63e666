package jinja

import (
	"fmt"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// loopContext is the value of loop in a for statement.
type loopContext struct {
	r        *renderer
	iterable value.Value
	it       *value.Iterator
	index0   int64
	depth0   int64
	count    int64       // -1: unknown yet
	after    value.Value // the next item if it was read ahead, otherwise missing
	current  value.Value
	before   value.Value
	changed  value.Value
	recurse  func(items value.Value, depth int64) (value.Value, error)
}

func newLoop(r *renderer, items value.Value, it *value.Iterator, depth int64) *loopContext {
	return &loopContext{r: r, iterable: items, it: it, index0: -1, depth0: depth, count: -1,
		after: value.Missing, current: value.Missing, before: value.Missing, changed: value.Missing}
}

func (l *loopContext) next() (value.Value, bool, error) {
	v, ok := l.after, true
	if v == value.Missing {
		var err error
		if v, ok, err = l.it.Step(); !ok || err != nil {
			return nil, false, err
		}
	}
	l.after = value.Missing
	l.index0++
	l.before, l.current = l.current, v
	return v, true, nil
}

func (l *loopContext) nextPair() (value.Value, bool, error) {
	v, ok, err := l.next()
	return value.NewTuple(v, l), ok, err
}

func (l *loopContext) peek() (value.Value, error) {
	if l.after != value.Missing {
		return l.after, nil
	}
	v, ok, err := l.it.Step()
	if err != nil {
		return nil, err
	}
	if ok {
		l.after = v
	}
	return l.after, nil
}

func (l *loopContext) Length(r *value.Run) (int64, error) {
	if l.count >= 0 {
		return l.count, nil
	}
	n, err := r.Length(l.iterable)
	if value.IsKind(err, "TypeError") {
		rest, err := r.Collect(l.it)
		if err != nil {
			return 0, err
		}
		l.it = value.SliceIter(rest)
		n = int64(len(rest)) + l.index0 + 1
		if l.after != value.Missing {
			n++
		}
	} else if err != nil {
		return 0, err
	}
	l.count = n
	return n, nil
}

// Attr returns an attribute of loop.
func (l *loopContext) Attr(r *value.Run, name string) (value.Value, bool, error) {
	switch name {
	case "index":
		return l.index0 + 1, true, nil
	case "index0":
		return l.index0, true, nil
	case "first":
		return l.index0 == 0, true, nil
	case "depth":
		return l.depth0 + 1, true, nil
	case "depth0":
		return l.depth0, true, nil
	case "length":
		n, err := l.Length(r)
		return n, true, err
	case "revindex":
		n, err := l.Length(r)
		return n - l.index0, true, err
	case "revindex0":
		n, err := l.Length(r)
		return n - l.index0 - 1, true, err
	case "last":
		v, err := l.peek()
		return v == value.Missing, true, err
	case "previtem":
		if l.index0 == 0 {
			return value.UndefinedHint("there is no previous item"), true, nil
		}
		return l.before, true, nil
	case "nextitem":
		v, err := l.peek()
		if v == value.Missing {
			return value.UndefinedHint("there is no next item"), true, err
		}
		return v, true, err
	case "cycle":
		return &value.Builtin{Name: "cycle", Fn: func(r *value.Run, a *value.Arguments) (value.Value, error) {
			if len(a.Pos) == 0 {
				return nil, value.TypeError("no items for cycling given")
			}
			return a.Pos[l.index0%int64(len(a.Pos))], a.NoNames("cycle")
		}}, true, nil
	case "changed":
		return &value.Builtin{Name: "changed", Fn: func(run *value.Run, a *value.Arguments) (value.Value, error) {
			now := value.NewTuple(a.Pos...)
			if l.changed != value.Missing {
				if eq, err := run.Equal(l.changed, now); eq || err != nil {
					return false, err
				}
			}
			l.changed = now
			return true, a.NoNames("changed")
		}}, true, nil
	}
	return nil, false, nil
}

func (l *loopContext) TypeName() string { return "LoopContext" }

func (l *loopContext) Repr(r *value.Run) (string, error) {
	n, err := l.Length(r)
	return fmt.Sprintf("<LoopContext %d/%d>", l.index0+1, n), err
}

func (l *loopContext) Iterate() *value.Iterator {
	return value.ObjectIter(l.r.run, l.TypeName(), l.nextPair)
}

func (l *loopContext) Call(_ *value.Run, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("__call__", "iterable")
	if err != nil {
		return nil, err
	}
	if l.recurse == nil {
		return nil, value.TypeError("The loop must have the 'recursive' marker to be called recursively.")
	}
	return l.recurse(v[0], l.depth0+1)
}

func (s *forStmt) exec(r *renderer, e *env) (control, error) {
	v, err := s.iter.eval(r, e)
	if err != nil {
		return ctlNext, value.AtLine(err, s.line)
	}
	if !s.recursive {
		return s.loop(r, v, e, 0, nil)
	}
	var recurse func(items value.Value, depth int64) (value.Value, error)
	recurse = func(items value.Value, depth int64) (value.Value, error) {
		if err := r.run.EnterCall(); err != nil {
			return nil, value.AtLine(err, s.line)
		}
		defer r.run.LeaveCall()
		inner, err := r.newEnv(s.fn, e, e.ctx)
		if err != nil {
			return nil, value.AtLine(err, s.line)
		}
		text, _, err := r.capture(func() (control, error) { return s.loop(r, items, inner, depth, recurse) })
		return text, err
	}
	out, err := recurse(v, 0)
	if err != nil {
		return ctlNext, err
	}
	t, _ := out.(string)
	return ctlNext, value.AtLine(r.write(t), s.line)
}

// loop runs the body for each item. e holds the loop's variables.
func (s *forStmt) loop(
	r *renderer, items value.Value, e *env, depth int64, recurse func(value.Value, int64) (value.Value, error),
) (control, error) {
	it, err := value.Iterate(items)
	if err != nil {
		return ctlNext, value.AtLine(err, s.line)
	}
	if s.test != nil {
		it = s.filtered(r, it, e)
		items = it
	}
	l := newLoop(r, items, it, depth)
	l.recurse = recurse
	ran := false
	for {
		if err := r.run.Tick(); err != nil {
			return ctlNext, value.AtLine(err, s.line)
		}
		v, ok, err := l.next()
		if err != nil {
			return ctlNext, value.AtLine(err, s.line)
		}
		if !ok {
			break
		}
		if err := r.assign(s.target, v, e); err != nil {
			return ctlNext, value.AtLine(err, s.line)
		}
		if s.extended {
			*e.at(s.loopRef) = l
		}
		s.bodyScope.prepare(e)
		c, err := r.execAll(s.body, e)
		if err != nil {
			return ctlNext, err
		}
		if c == ctlBreak {
			break
		}
		// The reference records an iteration at the end of the body, which continue skips.
		ran = ran || c != ctlContinue
	}
	if !ran && s.elseScope != nil {
		s.elseScope.prepare(e)
		return r.execAll(s.other, e)
	}
	return ctlNext, nil
}

// filtered yields the items for which the loop's test holds.
func (s *forStmt) filtered(r *renderer, it *value.Iterator, e *env) *value.Iterator {
	entered := false
	return value.Generator(r.run, "t_1", func() (value.Value, bool, error) {
		if !entered {
			s.testScope.prepare(e)
			entered = true
		}
		for {
			v, ok, err := it.Step()
			if !ok || err != nil {
				return nil, false, err
			}
			if err := r.run.Tick(); err != nil {
				return nil, false, err
			}
			if err := r.assign(s.testTarget, v, e); err != nil {
				return nil, false, err
			}
			t, err := s.test.eval(r, e)
			if err != nil {
				return nil, false, err
			}
			if yes, err := r.run.Truth(t); err != nil {
				return nil, false, err
			} else if yes {
				// A target with several names turns each item into a new tuple.
				v, err := s.testTarget.eval(r, e)
				return v, true, err
			}
		}
	})
}
