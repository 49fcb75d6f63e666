package jinja

import (
	"strings"

	"github.com/ingotml/ingot/limits"
)

type targetOptions struct {
	nameOnly, namespace bool
	end                 string // name that ends a tuple
}

// parseTarget parses the target of an assignment.
func (p *parser) parseTarget(o targetOptions) (astExpr, error) {
	if o.nameOnly {
		t, err := p.expectName()
		if err != nil {
			return nil, err
		}
		x := &astName{name: t.text, use: useStore, line: t.line}
		return x, checkTarget(x, t.line)
	}
	line := p.cur().line
	x, err := p.parseTuple(tupleOptions{simple: true, end: o.end, namespace: o.namespace})
	if err != nil {
		return nil, err
	}
	setUse(x, useStore)
	return x, checkTarget(x, line)
}

func setUse(x astExpr, use nameUse) {
	switch x := x.(type) {
	case *astName:
		x.use = use
	case *astTuple:
		for _, i := range x.items {
			setUse(i, use)
		}
	}
}

func checkTarget(x astExpr, line int) error {
	switch x := x.(type) {
	case *astNSRef:
		return nil
	case *astName:
		switch x.name {
		case "true", "false", "none", "True", "False", "None":
			return syntaxError(line, "can't assign to 'name'")
		}
		return nil
	case *astTuple:
		for _, i := range x.items {
			if err := checkTarget(i, line); err != nil {
				return err
			}
		}
		return nil
	}
	return syntaxError(line, "can't assign to this expression")
}

type tupleOptions struct {
	simple, condExpr, parens, namespace bool
	end                                 string
}

// parseTuple parses an expression, or several separated by commas as a tuple.
func (p *parser) parseTuple(o tupleOptions) (astExpr, error) {
	var args []astExpr
	tuple := false
	for {
		if len(args) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		t := p.cur()
		if t.kind == tokVarEnd || t.kind == tokBlockEnd || t.is(")") || o.end != "" && t.name(o.end) {
			break
		}
		var x astExpr
		var err error
		if o.simple {
			x, err = p.parsePrimary(o.namespace)
		} else {
			x, err = p.parseExpr(o.condExpr)
		}
		if err != nil {
			return nil, err
		}
		args = append(args, x)
		if !p.cur().is(",") {
			break
		}
		tuple = true
	}
	if !tuple {
		if len(args) > 0 {
			return args[0], nil
		}
		if !o.parens {
			return nil, syntaxError(p.cur().line, "expected an expression, got '%s'", p.cur().describe())
		}
	}
	return &astTuple{args}, nil
}

func (p *parser) parseExpr(condExpr bool) (astExpr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if condExpr {
		return p.parseCond()
	}
	return p.parseOr()
}

func (p *parser) parseCond() (astExpr, error) {
	line := p.cur().line
	x, err := p.parseOr()
	for err == nil && p.skipName("if") {
		c := &astCond{yes: x, line: line}
		if c.test, err = p.parseOr(); err != nil {
			return nil, err
		}
		if p.skipName("else") {
			if err = p.enter(); err != nil {
				return nil, err
			}
			c.no, err = p.parseCond()
			p.leave()
		}
		x, line = c, p.cur().line
	}
	return x, err
}

func (p *parser) parseOr() (astExpr, error) {
	l, err := p.parseAnd()
	for err == nil && p.skipName("or") {
		var r astExpr
		r, err = p.parseAnd()
		l = &astOr{l, r}
	}
	return l, err
}

func (p *parser) parseAnd() (astExpr, error) {
	l, err := p.parseNot()
	for err == nil && p.skipName("and") {
		var r astExpr
		r, err = p.parseNot()
		l = &astAnd{l, r}
	}
	return l, err
}

func (p *parser) parseNot() (astExpr, error) {
	if p.skipName("not") {
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		x, err := p.parseNot()
		return &astNot{x}, err
	}
	return p.parseCompare()
}

func (p *parser) parseCompare() (astExpr, error) {
	line := p.cur().line
	first, err := p.parseBinary(0)
	if err != nil {
		return nil, err
	}
	c := &astCompare{first: first, line: line}
	for {
		t := p.cur()
		op := ""
		switch {
		case t.is("==") || t.is("!=") || t.is("<") || t.is("<=") || t.is(">") || t.is(">="):
			op = p.next().text
		case t.name("in"):
			op = p.next().text
		case t.name("not") && p.look().name("in"):
			p.next()
			p.next()
			op = "not in"
		}
		if op == "" {
			break
		}
		x, err := p.parseBinary(0)
		if err != nil {
			return nil, err
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, x)
	}
	if len(c.ops) == 0 {
		return first, nil
	}
	return c, nil
}

// binaryLevels are the binary operators from lowest to highest precedence.
var binaryLevels = [][]string{{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}

func (p *parser) parseBinary(level int) (astExpr, error) {
	if level == len(binaryLevels) {
		return p.parseUnary(true)
	}
	line := p.cur().line
	l, err := p.parseBinary(level + 1)
	if err != nil {
		return nil, err
	}
	if level == 1 {
		items := []astExpr{l}
		for p.skipOp("~") {
			x, err := p.parseBinary(level + 1)
			if err != nil {
				return nil, err
			}
			items = append(items, x)
		}
		if len(items) == 1 {
			return l, nil
		}
		return &astConcat{items: items}, nil
	}
	for {
		t := p.cur()
		found := false
		for _, op := range binaryLevels[level] {
			found = found || t.is(op)
		}
		if !found {
			break
		}
		p.next()
		r, err := p.parseBinary(level + 1)
		if err != nil {
			return nil, err
		}
		l, line = &astBinary{op: t.text, l: l, r: r, line: line}, p.cur().line
	}
	// The reference compiles a ** b ** c to ((a ** b) ** c), unlike Python.
	return l, nil
}

func (p *parser) parseUnary(withFilter bool) (astExpr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	t := p.cur()
	var x astExpr
	var err error
	if t.is("-") || t.is("+") {
		p.next()
		if x, err = p.parseUnary(false); err == nil {
			x = &astUnary{op: t.text[0], x: x, line: t.line}
		}
	} else {
		x, err = p.parsePrimary(false)
	}
	if err == nil {
		x, err = p.parsePostfix(x)
	}
	if err == nil && withFilter {
		x, err = p.parseFilterExpr(x)
	}
	return x, err
}

func (p *parser) parsePrimary(namespace bool) (astExpr, error) {
	t := p.cur()
	switch {
	case t.kind == tokName:
		p.next()
		switch t.text {
		case "true", "True":
			return &astConst{true}, nil
		case "false", "False":
			return &astConst{false}, nil
		case "none", "None":
			return &astConst{nil}, nil
		}
		if namespace && p.skipOp(".") {
			attr, err := p.expectName()
			return &astNSRef{name: t.text, attr: attr.text, line: t.line}, err
		}
		return &astName{name: t.text, line: t.line}, nil
	case t.kind == tokString:
		var b strings.Builder
		for p.cur().kind == tokString {
			b.WriteString(p.next().text)
		}
		return &astConst{b.String()}, nil
	case t.kind == tokInt || t.kind == tokFloat:
		p.next()
		return &astConst{t.value}, nil
	case t.is("("):
		p.next()
		x, err := p.parseTuple(tupleOptions{condExpr: true, parens: true})
		if err != nil {
			return nil, err
		}
		return x, p.expectOp(")")
	case t.is("["):
		return p.parseList()
	case t.is("{"):
		return p.parseDict()
	}
	return nil, syntaxError(t.line, "unexpected '%s'", t.describe())
}

func (p *parser) parseList() (astExpr, error) {
	p.next()
	x := &astList{}
	for !p.cur().is("]") {
		if len(x.items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		if p.cur().is("]") {
			break
		}
		i, err := p.parseExpr(true)
		if err != nil {
			return nil, err
		}
		x.items = append(x.items, i)
	}
	return x, p.expectOp("]")
}

func (p *parser) parseDict() (astExpr, error) {
	p.next()
	x := &astDict{}
	for !p.cur().is("}") {
		if len(x.keys) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		if p.cur().is("}") {
			break
		}
		k, err := p.parseExpr(true)
		if err != nil {
			return nil, err
		}
		if err := p.expectOp(":"); err != nil {
			return nil, err
		}
		v, err := p.parseExpr(true)
		if err != nil {
			return nil, err
		}
		x.keys, x.values = append(x.keys, k), append(x.values, v)
	}
	return x, p.expectOp("}")
}

// tooMany returns an error if n parameters or arguments exceed the limit.
func (p *parser) tooMany(n int) error {
	if n <= limits.TemplateArguments {
		return nil
	}
	return atLine(limitError("more than %d arguments", limits.TemplateArguments), p.cur().line)
}

func (p *parser) parsePostfix(x astExpr) (astExpr, error) {
	var err error
	for err == nil {
		switch t := p.cur(); {
		case t.is(".") || t.is("["):
			x, err = p.parseSubscript(x)
		case t.is("("):
			x, err = p.parseCall(x)
		default:
			return x, nil
		}
	}
	return nil, err
}

func (p *parser) parseFilterExpr(x astExpr) (astExpr, error) {
	var err error
	for err == nil {
		switch t := p.cur(); {
		case t.is("|"):
			x, err = p.parseFilters(x, false)
		case t.name("is"):
			x, err = p.parseTest(x)
		case t.is("("):
			x, err = p.parseCall(x)
		default:
			return x, nil
		}
	}
	return nil, err
}

func (p *parser) parseSubscript(x astExpr) (astExpr, error) {
	t := p.next()
	if t.is(".") {
		a := p.next()
		switch a.kind {
		case tokName:
			return &astAttr{x: x, name: a.text, line: t.line}, nil
		case tokInt:
			return &astItem{x: x, arg: &astConst{a.value}, line: t.line}, nil
		}
		return nil, syntaxError(a.line, "expected name or number")
	}
	var args []astExpr
	for !p.cur().is("]") {
		if len(args) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		a, err := p.parseSlice()
		if err != nil {
			return nil, err
		}
		args = append(args, a)
	}
	p.next()
	if len(args) == 1 {
		return &astItem{x: x, arg: args[0], line: t.line}, nil
	}
	return &astItem{x: x, arg: &astTuple{args}, line: t.line}, nil
}

// parseSlice parses a subscript: an expression or start:stop:step.
func (p *parser) parseSlice() (astExpr, error) {
	s := &astSlice{}
	var err error
	if !p.skipOp(":") {
		x, err := p.parseExpr(true)
		if err != nil || !p.cur().is(":") {
			return x, err
		}
		p.next()
		s.start = x
	}
	part := func(x *astExpr) {
		if t := p.cur(); err == nil && !t.is("]") && !t.is(",") && !t.is(":") {
			*x, err = p.parseExpr(true)
		}
	}
	if part(&s.stop); err == nil && p.skipOp(":") {
		if p.cur().is(":") {
			return nil, p.unexpected("]")
		}
		part(&s.step)
	}
	return s, err
}

func (p *parser) parseCall(fn astExpr) (astExpr, error) {
	line := p.cur().line
	args, err := p.parseArgs()
	return &astCall{fn: fn, args: args, line: line}, err
}

func (p *parser) parseArgs() (a astArgs, err error) {
	line := p.cur().line
	bad := syntaxError(line, "invalid syntax for function call expression")
	if err = p.expectOp("("); err != nil {
		return a, err
	}
	for comma := false; !p.cur().is(")"); comma = true {
		if comma {
			if err = p.expectOp(","); err != nil {
				return a, err
			}
			if p.cur().is(")") {
				break
			}
		}
		switch {
		case p.skipOp("*"):
			if a.dynPos != nil || a.dynNamed != nil {
				return a, bad
			}
			a.dynPos, err = p.parseExpr(true)
		case p.skipOp("**"):
			if a.dynNamed != nil {
				return a, bad
			}
			a.dynNamed, err = p.parseExpr(true)
		case p.cur().kind == tokName && p.look().is("="):
			if a.dynNamed != nil {
				return a, bad
			}
			name := p.next().text
			p.next()
			for _, n := range a.names {
				if n == name {
					return a, syntaxError(line, "keyword argument repeated: %s", name)
				}
			}
			var x astExpr
			x, err = p.parseExpr(true)
			a.names, a.named = append(a.names, name), append(a.named, x)
		default:
			if a.dynPos != nil || a.dynNamed != nil || len(a.names) > 0 {
				return a, bad
			}
			var x astExpr
			x, err = p.parseExpr(true)
			a.pos = append(a.pos, x)
		}
		if err == nil {
			err = p.tooMany(len(a.pos) + len(a.names))
		}
		if err != nil {
			return a, err
		}
	}
	return a, p.expectOp(")")
}

// parseDotted parses the name of a filter or test.
func (p *parser) parseDotted() (string, error) {
	t, err := p.expectName()
	name := []string{t.text}
	for err == nil && p.skipOp(".") {
		t, err = p.expectName()
		name = append(name, t.text)
	}
	return strings.Join(name, "."), err
}

// parseFilters parses "|name(args)|name..."; with inline, the first "|" is absent.
func (p *parser) parseFilters(x astExpr, inline bool) (astExpr, error) {
	for inline || p.cur().is("|") {
		if !inline {
			p.next()
		}
		inline = false
		f := &astFilter{x: x, line: p.cur().line}
		var err error
		if f.name, err = p.parseDotted(); err != nil {
			return nil, err
		}
		if p.cur().is("(") {
			if f.args, err = p.parseArgs(); err != nil {
				return nil, err
			}
		}
		x = f
	}
	return x, nil
}

func (p *parser) parseTest(x astExpr) (astExpr, error) {
	line := p.next().line
	negated := p.skipName("not")
	t := &astTest{x: x, line: line}
	var err error
	if t.name, err = p.parseDotted(); err != nil {
		return nil, err
	}
	switch c := p.cur(); {
	case c.is("("):
		t.args, err = p.parseArgs()
	case c.name("is"):
		return nil, syntaxError(c.line, "you cannot chain multiple tests with is")
	case c.kind == tokName && c.text != "else" && c.text != "or" && c.text != "and",
		c.kind == tokString, c.kind == tokInt, c.kind == tokFloat, c.is("["), c.is("{"):
		if err = p.enter(); err != nil {
			return nil, err
		}
		var a astExpr
		if a, err = p.parsePrimary(false); err == nil {
			a, err = p.parsePostfix(a)
		}
		t.args.pos = []astExpr{a}
		p.leave()
	}
	if negated {
		return &astNot{t}, err
	}
	return t, err
}
