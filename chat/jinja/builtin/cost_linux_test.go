package builtin

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/chat/jinja/value"
	"github.com/ingotml/ingot/internal/limits/runtest"
)

// called is a call of a function, method, test, filter or operator, and of what its result yields.
type called struct {
	name string
	run  func(r *value.Run) (value.Value, error)
}

// costValues are values of about n bytes or items, and small ones.
func costValues(n int) map[string]value.Value {
	items := make([]value.Value, n/16)
	numbers := make([]value.Value, n/16)
	dict := value.NewDict()
	for i := range items {
		items[i], numbers[i] = fmt.Sprintf("item %d", i%97), int64(i%89)
		dict.Put(fmt.Sprint("key", i), int64(i))
	}
	long := func(s string) value.Value { return strings.Repeat(s, n/len(s)) }
	return map[string]value.Value{
		"a": long("a"), "b": long("b"), "é": long("é"), "ß": long("ß"), "words": long("ab cd "), "hyphens": long("ab-"),
		"dashes": long("-"), "spaces": long(" "), "lines": long("a\n"), "digits": long("7"), "hex": long("f"),
		"dots": long("."), "fields": long("{0}"), "named": long("{x}"), "verbs": long("%s"), "dates": long("%Y"),
		"quotes": long(`"'`), "commas": long("a,b"),
		"list": &value.List{Items: items}, "numbers": &value.List{Items: numbers}, "tuple": &value.Tuple{Items: items},
		"dict": dict, "big": new(big.Int).Lsh(big.NewInt(12345), uint(min(n, value.MaxBits/2))),
		"one": int64(1), "minus": int64(-1), "many": int64(n), "float": 1.1, "tenth": 0.1, "x": "x", "empty": "", "none": nil,
	}
}

// drain reads what a lazy filter yields.
func drain(r *value.Run, v value.Value, err error) (value.Value, error) {
	if it, ok := v.(*value.Iterator); ok && err == nil {
		_, err = r.Collect(it)
	}
	return v, err
}

// calls returns every call with every combination of at most two of the values.
func calls(values map[string]value.Value) (list []called) {
	add := func(name string, run func(r *value.Run) (value.Value, error)) {
		list = append(list, called{name, func(r *value.Run) (value.Value, error) {
			v, err := run(r)
			return drain(r, v, err)
		}})
	}
	names := slices.Sorted(maps.Keys(values))
	small := []string{"one", "many", "a", "é", "list", "dots", "big"}
	for _, on := range names {
		self := values[on]
		for kind, table := range map[string]map[string]*value.Builtin{"filter": filters, "test": tests} {
			for name, b := range table {
				add(fmt.Sprintf("%s|%s %s", on, name, kind), func(r *value.Run) (value.Value, error) {
					return r.CallBuiltin(b, &value.Arguments{Pos: []value.Value{self}})
				})
				for _, arg := range small {
					add(fmt.Sprintf("%s|%s(%s) %s", on, name, arg, kind), func(r *value.Run) (value.Value, error) {
						return r.CallBuiltin(b, &value.Arguments{Pos: []value.Value{self, values[arg]}})
					})
				}
			}
		}
		for _, methods := range []map[string]method{strMethods, listMethods, tupleMethods, dictMethods} {
			for name := range methods {
				for _, arg := range append(small, "") {
					var pos []value.Value
					if arg != "" {
						pos = append(pos, values[arg])
					}
					add(fmt.Sprintf("%s.%s(%s)", on, name, arg), func(r *value.Run) (value.Value, error) {
						m, err := Getattr(r, self, name)
						if err != nil || !value.IsCallable(m) {
							return nil, err
						}
						return r.Call(m, &value.Arguments{Pos: pos})
					})
				}
			}
		}
		for name, fn := range globals {
			add(fmt.Sprintf("%s(%s)", name, on), func(r *value.Run) (value.Value, error) {
				return r.Call(fn, &value.Arguments{Pos: []value.Value{self}})
			})
		}
		for _, with := range names {
			other := values[with]
			for _, op := range []string{"+", "-", "*", "/", "//", "%", "**"} {
				add(fmt.Sprintf("%s %s %s", on, op, with), func(r *value.Run) (value.Value, error) {
					return Binary(r, op, self, other)
				})
			}
			for _, op := range []string{"==", "<", "in"} {
				add(fmt.Sprintf("%s %s %s", on, op, with), func(r *value.Run) (value.Value, error) {
					ok, err := r.Compare(op, self, other)
					return ok, err
				})
			}
			add(fmt.Sprintf("%s[%s]", on, with), func(r *value.Run) (value.Value, error) {
				return Getitem(r, self, other)
			})
		}
		add(on+"[::-1]", func(r *value.Run) (value.Value, error) { return r.Slice(self, &value.Slice{Step: int64(-1)}) })
		add(on+"[1:-1]", func(r *value.Run) (value.Value, error) {
			return r.Slice(self, &value.Slice{Start: int64(1), Stop: int64(-1)})
		})
		add(on+" as text", func(r *value.Run) (value.Value, error) { return r.Str(self) })
	}
	for _, by := range []string{"a", "é", "b"} { // arguments that only fit together
		add("replace by "+by, func(r *value.Run) (value.Value, error) {
			return replaceMethod(r, values[by], &value.Arguments{Pos: []value.Value{"a", "", int64(-1)}})
		})
	}
	for _, base := range []int64{2, 7, 16, 32} {
		for _, digits := range []string{"digits", "hex"} {
			add(fmt.Sprintf("int(%s, %d)", digits, base), func(r *value.Run) (value.Value, error) {
				return filterInt(r, []value.Value{values[digits], value.Missing, base})
			})
		}
	}
	for _, method := range []string{"ceil", "floor", "common"} {
		for _, digits := range []int64{-1, -40, -1000, -30000} {
			add(fmt.Sprintf("big|round(%d, %s)", digits, method), func(r *value.Run) (value.Value, error) {
				return filterRound(r, []value.Value{values["big"], digits, method})
			})
		}
	}
	return list
}

// TestCost: no operation takes longer than the steps that it counts: what is not linear counts what it does. The bound
// is generous: what is quadratic misses it by far.
func TestCost(t *testing.T) {
	const perStep, fixed = 2 * time.Microsecond, 20 * time.Millisecond
	bounds := value.Limits{Steps: 200_000, Depth: 100, Output: 1 << 40, Memory: 1 << 30}
	charges := func(n int) runtest.Charges {
		all := runtest.Charges{}
		list := calls(costValues(n))
		slices.SortFunc(list, func(a, b called) int { return strings.Compare(a.name, b.name) })
		some := runtest.Pick(5, 1) // 5 does not divide the number of arguments
		for i := 0; i < len(list); i += some {
			all[list[i].name] = func() int64 {
				r := value.NewRun(context.Background(), bounds, 100, nil)
				_, _ = list[i].run(r) // what does not fit together is an error, whose cost counts too
				return r.Steps()
			}
		}
		return all
	}
	runtest.CheckCharges(t, charges(2_000), charges(20_000), perStep, fixed)
}
