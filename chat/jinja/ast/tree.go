package ast

import (
	"github.com/ingotml/ingot/chat/jinja/value"
)

// Expressions.
type (
	// Expr is an expression.
	Expr interface{ exprNode() }

	Const struct{ V value.Value }
	Name  struct {
		Name string
		Use  nameUse
		Line int
	}
	NSRef struct { // target "ns.attr"
		Name, Attr string
		Line       int
	}
	Tuple struct{ Items []Expr }
	List  struct{ Items []Expr }
	Dict  struct{ Keys, Values []Expr }
	Cond  struct {
		Test, Yes, No Expr // no is nil without else
		line          int
	}
	And   struct{ L, R Expr }
	Or    struct{ L, R Expr }
	Not   struct{ X Expr }
	Unary struct {
		Op   byte
		X    Expr
		Line int
	}
	Binary struct {
		Op   string
		L, R Expr
		Line int
	}
	Concat  struct{ Items []Expr }
	Compare struct {
		First Expr
		Ops   []string
		Rest  []Expr
		Line  int
	}
	Attr struct {
		X    Expr
		Name string
		Line int
	}
	Item struct {
		X, Arg Expr
		Line   int
	}
	Slice struct{ Start, Stop, Step Expr } // each may be nil
	Args  struct {
		Pos      []Expr
		Names    []string
		Named    []Expr
		DynPos   Expr // *args, or nil
		DynNamed Expr // **kwargs, or nil
	}
	Call struct {
		Fn   Expr
		Args Args
		Line int
	}
	Filter struct {
		X    Expr // nil: the text of the block
		Name string
		Args Args
		Line int
	}
	Test struct {
		X    Expr
		Name string
		Args Args
		Line int
	}
	Data struct{ Text string } // template text
)

// Statements.
type (
	// Stmt is a statement.
	Stmt interface{ stmtNode() }

	Output struct {
		Items []Expr
		Lines []int
	}
	If struct {
		Tests  []Expr
		Bodies [][]Stmt
		Other  []Stmt
		Line   int
	}
	For struct {
		Target, Iter, Test Expr // test may be nil
		TestTarget         Expr // copy of target with the variables of test
		Body, Other        []Stmt
		Recursive          bool
		Line               int
	}
	Set struct {
		Target, Value Expr
		Line          int
	}
	SetBlock struct {
		Target Expr
		Filter Expr // may be nil
		Body   []Stmt
		Line   int
	}
	Macro struct {
		Name     string // "" for the body of a call or generation block
		Args     []*Name
		Defaults []Expr
		Body     []Stmt
		Line     int
	}
	CallBlock struct {
		Call  *Call
		Macro *Macro // the body as an anonymous macro
		Line  int
	}
	Generation struct {
		Macro *Macro
		Line  int
	}
	FilterBlock struct {
		Filter Expr
		Body   []Stmt
		Line   int
	}
	With struct {
		Targets, Values []Expr
		Body            []Stmt
		Line            int
	}
	Control struct {
		Word string // break or continue
		Line int
	}
)

// nameUse tells what a template does with a name.
type nameUse int

const (
	UseLoad nameUse = iota
	UseStore
	UseParam
)

func (*Const) exprNode() {}

func (*Name) exprNode() {}

func (*NSRef) exprNode() {}

func (*Tuple) exprNode() {}

func (*List) exprNode() {}

func (*Dict) exprNode() {}

func (*Cond) exprNode() {}

func (*And) exprNode() {}

func (*Or) exprNode() {}

func (*Not) exprNode() {}

func (*Unary) exprNode() {}

func (*Binary) exprNode() {}

func (*Concat) exprNode() {}

func (*Compare) exprNode() {}

func (*Attr) exprNode() {}

func (*Item) exprNode() {}

func (*Slice) exprNode() {}

func (*Call) exprNode() {}

func (*Filter) exprNode() {}

func (*Test) exprNode() {}

func (*Data) exprNode() {}

func (*Output) stmtNode() {}

func (*If) stmtNode() {}

func (*For) stmtNode() {}

func (*Set) stmtNode() {}

func (*SetBlock) stmtNode() {}

func (*Macro) stmtNode() {}

func (*CallBlock) stmtNode() {}

func (*Generation) stmtNode() {}

func (*FilterBlock) stmtNode() {}

func (*With) stmtNode() {}

func (*Control) stmtNode() {}
