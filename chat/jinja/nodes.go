package jinja

import (
	"github.com/ingotml/ingot/chat/jinja/value"
)

// expr is the code of an expression, with its names resolved to variables.
type expr interface {
	eval(r *renderer, e *env) (value.Value, error)
}

// stmt is the code of a statement.
type stmt interface {
	exec(r *renderer, e *env) (control, error)
}

// control tells how a statement ended.
type control int

const (
	ctlNext control = iota
	ctlBreak
	ctlContinue
)

// Expressions.
type (
	constExpr struct{ v value.Value }
	nameExpr  struct {
		name string
		ref  ref
	}
	nsRef struct { // target "ns.attr"
		attr string
		ref  ref
	}
	tupleExpr struct{ items []expr }
	listExpr  struct{ items []expr }
	dictExpr  struct{ keys, values []expr }
	condExpr  struct{ test, yes, no expr } // no is nil without else
	andExpr   struct{ l, r expr }
	orExpr    struct{ l, r expr }
	notExpr   struct{ x expr }
	unaryExpr struct {
		op   byte
		x    expr
		line int
	}
	binExpr struct {
		op   string
		l, r expr
		line int
	}
	concatExpr  struct{ items []expr }
	compareExpr struct {
		first expr
		ops   []string
		rest  []expr
		line  int
	}
	attrExpr struct {
		x    expr
		name string
		line int
	}
	itemExpr struct {
		x, arg expr
		line   int
		folded bool // the reference evaluates it at compile time: a failing slice is undefined
	}
	sliceExpr struct{ start, stop, step expr } // each may be nil
	callArgs  struct {
		pos      []expr
		names    []string
		named    []expr
		dynPos   expr // *args, or nil
		dynNamed expr // **kwargs, or nil
	}
	callExpr struct {
		fn   expr
		args callArgs
		line int
	}
	filterExpr struct {
		x    expr // nil: the text of the block
		name string
		args callArgs
		line int
		fn   *value.Builtin // nil: unknown filter
	}
	testExpr struct {
		x    expr
		name string
		args callArgs
		line int
		fn   *value.Builtin
	}
)

// Statements.
type (
	outputStmt struct {
		items []expr
		lines []int
	}
	dataExpr struct{ text string }
	ifStmt   struct {
		tests  []expr
		bodies [][]stmt
		other  []stmt
		line   int
	}
	forStmt struct {
		target, iter, test expr // test may be nil
		testTarget         expr // copy of target with the variables of test
		body, other        []stmt
		recursive          bool
		line               int

		bodyScope, elseScope, testScope *scope
		loopRef                         ref
		extended                        bool
		fn                              *function // of a recursive loop
	}
	setStmt struct {
		target, value expr
		line          int
		exports       []*nameExpr // names that are also set in the context
	}
	setBlock struct {
		target  expr
		filter  expr // may be nil
		body    []stmt
		line    int
		scope   *scope
		exports []*nameExpr
	}
	macroStmt struct {
		name     string
		args     []*nameExpr
		defaults []expr
		body     []stmt
		line     int
		ref      ref
		export   bool
		fn       *function
		takes    macroTakes
	}
	callStmt struct {
		call  *callExpr
		macro *macroStmt // the body as an anonymous macro
		line  int
	}
	filterStmt struct {
		filter expr
		body   []stmt
		line   int
		scope  *scope
	}
	withStmt struct {
		targets, values []expr
		body            []stmt
		line            int
		scope           *scope
	}
	controlStmt struct{ what control }
)

// macroTakes tells which special arguments a macro's body reads.
type macroTakes struct {
	caller, kwargs, varargs  bool
	callerRef, kwRef, varRef ref
	explicitCaller           bool
}
