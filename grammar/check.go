package grammar

import (
	"context"
	"errors"
	"time"
)

// SchemaCheck says whether a schema compiles, what that costs, and which instances the grammar accepts.
type SchemaCheck struct {
	Compiles  bool   `json:"compiles"`
	Error     string `json:"error"`      // why the schema is refused; empty if it compiles
	CompileUS int64  `json:"compile_us"` // microseconds, also of a schema that is refused
	Accepted  []bool `json:"accepted"`   // by instance, all false if the schema is refused

	Empty   bool     `json:"empty,omitempty"`    // no value satisfies the schema
	LeftOut []string `json:"left_out,omitempty"` // what best effort does not enforce
	Places  int      `json:"places,omitempty"`   // size of the program
	Example string   `json:"example,omitempty"`  // a shortest text
}

// CheckSchema compiles a schema and checks instances against the grammar, as AcceptsJSON does. An instance that is not
// JSON, or whose check exceeds the limit, is not accepted. No tokenizer is involved.
func CheckSchema(ctx context.Context, source []byte, instances [][]byte, o SchemaOptions) SchemaCheck {
	check := SchemaCheck{Accepted: make([]bool, len(instances))}
	began := time.Now()
	g, err := CompileSchemaWith(ctx, source, o)
	check.CompileUS = time.Since(began).Microseconds()
	if errors.Is(err, ErrEmpty) { // held exactly: no instance is accepted
		check.Compiles, check.Empty = true, true
		return check
	}
	if err != nil {
		check.Error = err.Error()
		return check
	}
	check.Compiles, check.LeftOut = true, g.LeftOut()
	check.Places = g.program.Size()
	check.Example = g.automaton(byteVocabulary()).Example(maxExample)
	for i, instance := range instances {
		if ctx.Err() != nil {
			check.Error = ctx.Err().Error()
			return check
		}
		ok, err := g.AcceptsJSON(instance)
		check.Accepted[i] = ok && err == nil
	}
	return check
}

// maxExample bounds the bytes of an example.
const maxExample = 2000
