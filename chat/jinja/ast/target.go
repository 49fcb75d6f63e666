package ast

import (
	"github.com/ingotml/ingot/chat/jinja/value"
)

type targetOptions struct {
	nameOnly, namespace bool
	end                 string // name that ends a tuple
}

// parseTarget parses the target of an assignment.
func (p *parser) parseTarget(o targetOptions) (Expr, error) {
	if o.nameOnly {
		t, err := p.expectName()
		if err != nil {
			return nil, err
		}
		x := &Name{Name: t.text, Use: UseStore, Line: t.line}
		return x, checkTarget(x, t.line)
	}
	line := p.cur().line
	x, err := p.parseTuple(tupleOptions{simple: true, end: o.end, namespace: o.namespace})
	if err != nil {
		return nil, err
	}
	setUse(x, UseStore)
	return x, checkTarget(x, line)
}

func setUse(x Expr, use nameUse) {
	switch x := x.(type) {
	case *Name:
		x.Use = use
	case *Tuple:
		for _, i := range x.Items {
			setUse(i, use)
		}
	}
}

func checkTarget(x Expr, line int) error {
	switch x := x.(type) {
	case *NSRef:
		return nil
	case *Name:
		switch x.Name {
		case "true", "false", "none", "True", "False", "None":
			return value.SyntaxError(line, "can't assign to 'name'")
		}
		return nil
	case *Tuple:
		for _, i := range x.Items {
			if err := checkTarget(i, line); err != nil {
				return err
			}
		}
		return nil
	}
	return value.SyntaxError(line, "can't assign to this expression")
}

type tupleOptions struct {
	simple, condExpr, parens, namespace bool
	end                                 string
}

// parseTuple parses an expression, or several separated by commas as a tuple.
func (p *parser) parseTuple(o tupleOptions) (Expr, error) {
	var args []Expr
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
		var x Expr
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
			return nil, value.SyntaxError(p.cur().line, "expected an expression, got '%s'", p.cur().describe())
		}
	}
	return &Tuple{args}, nil
}
