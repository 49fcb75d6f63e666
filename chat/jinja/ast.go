package jinja

// Expressions.
type (
	// astExpr is an expression.
	astExpr interface{ exprNode() }

	astConst struct{ v Value }
	astName  struct {
		name string
		use  nameUse
		line int
	}
	astNSRef struct { // target "ns.attr"
		name, attr string
		line       int
	}
	astTuple struct{ items []astExpr }
	astList  struct{ items []astExpr }
	astDict  struct{ keys, values []astExpr }
	astCond  struct {
		test, yes, no astExpr // no is nil without else
		line          int
	}
	astAnd   struct{ l, r astExpr }
	astOr    struct{ l, r astExpr }
	astNot   struct{ x astExpr }
	astUnary struct {
		op   byte
		x    astExpr
		line int
	}
	astBinary struct {
		op   string
		l, r astExpr
		line int
	}
	astConcat  struct{ items []astExpr }
	astCompare struct {
		first astExpr
		ops   []string
		rest  []astExpr
		line  int
	}
	astAttr struct {
		x    astExpr
		name string
		line int
	}
	astItem struct {
		x, arg astExpr
		line   int
	}
	astSlice struct{ start, stop, step astExpr } // each may be nil
	astArgs  struct {
		pos      []astExpr
		names    []string
		named    []astExpr
		dynPos   astExpr // *args, or nil
		dynNamed astExpr // **kwargs, or nil
	}
	astCall struct {
		fn   astExpr
		args astArgs
		line int
	}
	astFilter struct {
		x    astExpr // nil: the text of the block
		name string
		args astArgs
		line int
	}
	astTest struct {
		x    astExpr
		name string
		args astArgs
		line int
	}
	astData struct{ text string } // template text
)

// Statements.
type (
	// astStmt is a statement.
	astStmt interface{ stmtNode() }

	astOutput struct {
		items []astExpr
		lines []int
	}
	astIf struct {
		tests  []astExpr
		bodies [][]astStmt
		other  []astStmt
		line   int
	}
	astFor struct {
		target, iter, test astExpr // test may be nil
		testTarget         astExpr // copy of target with the variables of test
		body, other        []astStmt
		recursive          bool
		line               int
	}
	astSet struct {
		target, value astExpr
		line          int
	}
	astSetBlock struct {
		target astExpr
		filter astExpr // may be nil
		body   []astStmt
		line   int
	}
	astMacro struct {
		name     string // "" for the body of a call or generation block
		args     []*astName
		defaults []astExpr
		body     []astStmt
		line     int
	}
	astCallBlock struct {
		call  *astCall
		macro *astMacro // the body as an anonymous macro
		line  int
	}
	astGeneration struct {
		macro *astMacro
		line  int
	}
	astFilterBlock struct {
		filter astExpr
		body   []astStmt
		line   int
	}
	astWith struct {
		targets, values []astExpr
		body            []astStmt
		line            int
	}
	astControl struct {
		word string // break or continue
		line int
	}
)

// nameUse tells what a template does with a name.
type nameUse int

const (
	useLoad nameUse = iota
	useStore
	useParam
)

func (*astConst) exprNode()   {}
func (*astName) exprNode()    {}
func (*astNSRef) exprNode()   {}
func (*astTuple) exprNode()   {}
func (*astList) exprNode()    {}
func (*astDict) exprNode()    {}
func (*astCond) exprNode()    {}
func (*astAnd) exprNode()     {}
func (*astOr) exprNode()      {}
func (*astNot) exprNode()     {}
func (*astUnary) exprNode()   {}
func (*astBinary) exprNode()  {}
func (*astConcat) exprNode()  {}
func (*astCompare) exprNode() {}
func (*astAttr) exprNode()    {}
func (*astItem) exprNode()    {}
func (*astSlice) exprNode()   {}
func (*astCall) exprNode()    {}
func (*astFilter) exprNode()  {}
func (*astTest) exprNode()    {}
func (*astData) exprNode()    {}

func (*astOutput) stmtNode()      {}
func (*astIf) stmtNode()          {}
func (*astFor) stmtNode()         {}
func (*astSet) stmtNode()         {}
func (*astSetBlock) stmtNode()    {}
func (*astMacro) stmtNode()       {}
func (*astCallBlock) stmtNode()   {}
func (*astGeneration) stmtNode()  {}
func (*astFilterBlock) stmtNode() {}
func (*astWith) stmtNode()        {}
func (*astControl) stmtNode()     {}
