package jinja

import "fmt"

// loopContext is the value of loop in a for statement.
type loopContext struct {
	r        *renderer
	iterable Value
	it       *iterator
	index0   int64
	depth0   int64
	count    int64 // -1: unknown yet
	after    Value // the next item if it was read ahead, otherwise missing
	current  Value
	before   Value
	changed  Value
	recurse  func(items Value, depth int64) (Value, error)
}

func newLoop(r *renderer, items Value, it *iterator, depth int64) *loopContext {
	return &loopContext{r: r, iterable: items, it: it, index0: -1, depth0: depth, count: -1,
		after: missing, current: missing, before: missing, changed: missing}
}

func (l *loopContext) next() (Value, bool, error) {
	v, ok := l.after, true
	if v == missing {
		var err error
		if v, ok, err = l.it.step(); !ok || err != nil {
			return nil, false, err
		}
	}
	l.after = missing
	l.index0++
	l.before, l.current = l.current, v
	return v, true, nil
}

func (l *loopContext) nextPair() (Value, bool, error) {
	v, ok, err := l.next()
	return tuple(v, l), ok, err
}

func (l *loopContext) peek() (Value, error) {
	if l.after != missing {
		return l.after, nil
	}
	v, ok, err := l.it.step()
	if err != nil {
		return nil, err
	}
	if ok {
		l.after = v
	}
	return l.after, nil
}

func (l *loopContext) length(r *run) (int64, error) {
	if l.count >= 0 {
		return l.count, nil
	}
	n, err := r.length(l.iterable)
	if isKind(err, "TypeError") {
		rest, err := r.collect(l.it)
		if err != nil {
			return 0, err
		}
		l.it = sliceIter(rest)
		n = int64(len(rest)) + l.index0 + 1
		if l.after != missing {
			n++
		}
	} else if err != nil {
		return 0, err
	}
	l.count = n
	return n, nil
}

// attr returns an attribute of loop.
func (l *loopContext) attr(r *run, name string) (Value, bool, error) {
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
		n, err := l.length(r)
		return n, true, err
	case "revindex":
		n, err := l.length(r)
		return n - l.index0, true, err
	case "revindex0":
		n, err := l.length(r)
		return n - l.index0 - 1, true, err
	case "last":
		v, err := l.peek()
		return v == missing, true, err
	case "previtem":
		if l.index0 == 0 {
			return undefinedHint("there is no previous item"), true, nil
		}
		return l.before, true, nil
	case "nextitem":
		v, err := l.peek()
		if v == missing {
			return undefinedHint("there is no next item"), true, err
		}
		return v, true, err
	case "cycle":
		return &builtin{name: "cycle", fn: func(r *run, a *arguments) (Value, error) {
			if len(a.pos) == 0 {
				return nil, typeError("no items for cycling given")
			}
			return a.pos[l.index0%int64(len(a.pos))], a.noNames("cycle")
		}}, true, nil
	case "changed":
		return &builtin{name: "changed", fn: func(run *run, a *arguments) (Value, error) {
			now := tuple(a.pos...)
			if l.changed != missing {
				if eq, err := run.equal(l.changed, now); eq || err != nil {
					return false, err
				}
			}
			l.changed = now
			return true, a.noNames("changed")
		}}, true, nil
	}
	return nil, false, nil
}

func (l *loopContext) typeName() string { return "LoopContext" }

func (l *loopContext) repr(r *run) (string, error) {
	n, err := l.length(r)
	return fmt.Sprintf("<LoopContext %d/%d>", l.index0+1, n), err
}

func (l *loopContext) iterate() *iterator { return objectIter(l.r.run, l.typeName(), l.nextPair) }

func (l *loopContext) call(_ *run, a *arguments) (Value, error) {
	v, err := a.bind("__call__", "iterable")
	if err != nil {
		return nil, err
	}
	if l.recurse == nil {
		return nil, typeError("The loop must have the 'recursive' marker to be called recursively.")
	}
	return l.recurse(v[0], l.depth0+1)
}

func (s *forStmt) exec(r *renderer, e *env) (control, error) {
	v, err := s.iter.eval(r, e)
	if err != nil {
		return ctlNext, atLine(err, s.line)
	}
	if !s.recursive {
		return s.loop(r, v, e, 0, nil)
	}
	var recurse func(items Value, depth int64) (Value, error)
	recurse = func(items Value, depth int64) (Value, error) {
		if err := r.run.enterCall(); err != nil {
			return nil, atLine(err, s.line)
		}
		defer r.run.leaveCall()
		inner, err := r.newEnv(s.fn, e, e.ctx)
		if err != nil {
			return nil, atLine(err, s.line)
		}
		text, _, err := r.capture(func() (control, error) { return s.loop(r, items, inner, depth, recurse) })
		return text, err
	}
	out, err := recurse(v, 0)
	if err != nil {
		return ctlNext, err
	}
	t, _ := out.(string)
	return ctlNext, atLine(r.write(t), s.line)
}

// loop runs the body for each item. e holds the loop's variables.
func (s *forStmt) loop(
	r *renderer, items Value, e *env, depth int64, recurse func(Value, int64) (Value, error),
) (control, error) {
	it, err := iterate(items)
	if err != nil {
		return ctlNext, atLine(err, s.line)
	}
	if s.test != nil {
		it = s.filtered(r, it, e)
		items = it
	}
	l := newLoop(r, items, it, depth)
	l.recurse = recurse
	ran := false
	for {
		if err := r.run.tick(); err != nil {
			return ctlNext, atLine(err, s.line)
		}
		v, ok, err := l.next()
		if err != nil {
			return ctlNext, atLine(err, s.line)
		}
		if !ok {
			break
		}
		if err := r.assign(s.target, v, e); err != nil {
			return ctlNext, atLine(err, s.line)
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
func (s *forStmt) filtered(r *renderer, it *iterator, e *env) *iterator {
	entered := false
	return generator(r.run, "t_1", func() (Value, bool, error) {
		if !entered {
			s.testScope.prepare(e)
			entered = true
		}
		for {
			v, ok, err := it.step()
			if !ok || err != nil {
				return nil, false, err
			}
			if err := r.run.tick(); err != nil {
				return nil, false, err
			}
			if err := r.assign(s.testTarget, v, e); err != nil {
				return nil, false, err
			}
			t, err := s.test.eval(r, e)
			if err != nil {
				return nil, false, err
			}
			if yes, err := r.run.truth(t); err != nil {
				return nil, false, err
			} else if yes {
				// A target with several names turns each item into a new tuple.
				v, err := s.testTarget.eval(r, e)
				return v, true, err
			}
		}
	})
}
