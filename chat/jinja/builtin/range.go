package builtin

import (
	"github.com/ingotml/ingot/chat/jinja/value"
)

// maxRange is the sandbox's limit for the length of a range.
const maxRange = 100000

func makeRange(r *value.Run, a *value.Arguments) (value.Value, error) {
	if err := a.NoNames("range"); err != nil {
		return nil, err
	}
	if len(a.Pos) == 0 || len(a.Pos) > 3 {
		return nil, value.TypeError("range expected 1 to 3 arguments, got %d", len(a.Pos))
	}
	n := [3]int64{0, 0, 1}
	for i, v := range a.Pos {
		if _, ok := value.Integer(v); !ok {
			return nil, value.TypeError("'%s' object cannot be interpreted as an integer", value.TypeName(v))
		}
		x, ok := value.SmallInt(v)
		if !ok || x > 1<<60 || x < -1<<60 {
			return nil, value.Raise("OverflowError", "Range too big.")
		}
		n[i] = x
	}
	if len(a.Pos) == 1 {
		n[0], n[1] = 0, n[0]
	}
	if n[2] == 0 {
		return nil, value.ValueError("range() arg 3 must not be zero")
	}
	c := &value.Range{Start: n[0], Stop: n[1], Step: n[2]}
	switch {
	case c.Step > 0 && c.Start < c.Stop:
		c.N = (c.Stop-c.Start-1)/c.Step + 1
	case c.Step < 0 && c.Start > c.Stop:
		c.N = (c.Start-c.Stop-1)/-c.Step + 1
	}
	if c.N > maxRange {
		return nil, value.Raise("OverflowError",
			"Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return c, nil
}
