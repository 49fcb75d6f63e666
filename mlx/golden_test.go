package mlx_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/safetensors"
)

// golden is a case of testdata/ops.json, which testdata/gen/mlx/ops.py generates.
type golden struct {
	Op    string
	Args  []json.RawMessage // in the order of ops.txt; an array is given by the name of a tensor in ops.safetensors
	Out   []string
	Relax string // a rule of ops_test.go; "" means that all bits must be equal

	line int
}

func (g golden) String() string {
	args, _ := json.Marshal(g.Args)
	return fmt.Sprintf("ops.json:%d: %s%s", g.line, g.Op, args)
}

type goldens struct {
	cases []golden
	file  *safetensors.File
}

func openGoldens(t *testing.T) goldens {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "ops.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g goldens
	if err := json.Unmarshal(text, &g.cases); err != nil {
		t.Fatal(err)
	}
	for i := range g.cases {
		g.cases[i].line = i + 2 // one case per line, after the opening bracket
	}
	if g.file, err = safetensors.Open(filepath.Join("testdata", "ops.safetensors")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.file.Close() })
	return g
}

var ofDType = map[safetensors.DType]mlx.DType{
	"BOOL": mlx.Bool, "U8": mlx.Uint8, "U16": mlx.Uint16, "U32": mlx.Uint32, "U64": mlx.Uint64,
	"I8": mlx.Int8, "I16": mlx.Int16, "I32": mlx.Int32, "I64": mlx.Int64,
	"F16": mlx.Float16, "F32": mlx.Float32, "F64": mlx.Float64, "BF16": mlx.BFloat16,
}

// values is an array of the golden file.
type values struct {
	dtype mlx.DType
	shape []int
	bytes []byte
}

func (g goldens) values(name string) values {
	tensor, ok := g.file.Lookup(name)
	if !ok {
		panic("no tensor " + name)
	}
	data, err := io.ReadAll(g.file.Reader(tensor))
	if err != nil {
		panic(err)
	}
	dtype, ok := ofDType[tensor.DType]
	if !ok {
		panic("no type for " + tensor.DType)
	}
	v := values{dtype: dtype, shape: []int{}, bytes: data}
	for _, n := range tensor.Shape {
		v.shape = append(v.shape, int(n))
	}
	return v
}

func (g goldens) array(e *mlx.Thread, name string) *mlx.Array {
	v := g.values(name)
	return mlx.FromBytes(e, v.bytes, v.dtype, v.shape...)
}

// arguments converts the arguments of a case for its Go function.
func (g goldens) arguments(e *mlx.Thread, c golden) (in []reflect.Value) {
	kind := reflect.TypeOf(mlx.OpFuncs[c.Op])
	if kind.In(0) == reflect.TypeFor[*mlx.Thread]() {
		in = append(in, reflect.ValueOf(e))
	}
	if got, want := len(c.Args), kind.NumIn()-len(in); got != want {
		panic(fmt.Sprintf("%v: %d arguments for %d parameters", c, got, want))
	}
	for _, a := range c.Args {
		in = append(in, reflect.ValueOf(g.argument(e, a, kind.In(len(in)))))
	}
	return in
}

// call calls the Go function of an operation.
func call(name string, in []reflect.Value) []*mlx.Array {
	f := reflect.ValueOf(mlx.OpFuncs[name])
	run := f.Call
	if f.Type().IsVariadic() {
		run = f.CallSlice
	}
	out := run(in)[0].Interface()
	if list, ok := out.([]*mlx.Array); ok {
		return list
	}
	return []*mlx.Array{out.(*mlx.Array)}
}

func (g goldens) argument(e *mlx.Thread, raw json.RawMessage, kind reflect.Type) any {
	switch kind {
	case reflect.TypeFor[*mlx.Array]():
		if string(raw) == "null" {
			return (*mlx.Array)(nil)
		}
		return g.array(e, parse[string](raw))
	case reflect.TypeFor[[]*mlx.Array]():
		var list []*mlx.Array
		for _, name := range parse[[]string](raw) {
			list = append(list, g.array(e, name))
		}
		return list
	case reflect.TypeFor[int]():
		return parse[int](raw)
	case reflect.TypeFor[[]int]():
		return parse[[]int](raw)
	case reflect.TypeFor[uint64]():
		return parse[uint64](raw)
	case reflect.TypeFor[bool]():
		return parse[bool](raw)
	case reflect.TypeFor[float64]():
		if raw[0] != '"' {
			return parse[float64](raw)
		}
		v, err := strconv.ParseFloat(parse[string](raw), 64) // infinities are strings: JSON has none
		if err != nil {
			panic(err)
		}
		return v
	case reflect.TypeFor[mlx.DType]():
		return dtypeNamed(parse[string](raw))
	case reflect.TypeFor[mlx.QuantMode]():
		return map[string]mlx.QuantMode{"affine": mlx.Affine, "mxfp4": mlx.MXFP4, "mxfp8": mlx.MXFP8,
			"nvfp4": mlx.NVFP4}[parse[string](raw)]
	}
	panic(fmt.Sprintf("no argument of type %v", kind))
}

func parse[T any](raw json.RawMessage) T {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		panic(err)
	}
	return v
}

func dtypeNamed(name string) mlx.DType {
	for d := mlx.Bool; d <= mlx.BFloat16; d++ {
		if d.String() == name {
			return d
		}
	}
	panic("no type " + name)
}
