package arch_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/ingotml/ingot/arch"
)

// elsewhere are facts that other tests need: those of docs/models.md and of the types that models/decoders builds, in
// package models/all.
var elsewhere = []string{"ModelType", "Docs", "Plain", "Latent", "DraftOnly", "Plainest"}

// Each fact of each type is needed: without it the type does something else, which TestBehaviour notices. A list or a
// map is as many facts as it has elements.
func TestEveryFactIsNeeded(t *testing.T) {
	for _, a := range arch.All() {
		want := records(t, a)
		for what, b := range withoutFacts(a) {
			undo := arch.Replace(b)
			needed := false
			for i := range want {
				needed = needed || differs(t, a, i, want[i])
			}
			undo()
			if !needed {
				t.Errorf("arch/types: nothing needs %s of %s: delete it, or add a checkpoint to testdata/tables that does",
					what, a.ModelType)
			}
		}
	}
}

// differs reports whether an aspect of a type has changed.
func differs(t *testing.T, a arch.Arch, aspect int, want record) (yes bool) {
	defer func() {
		yes = yes || recover() != nil // such as a type without classes
	}()
	got := record{}
	aspects[aspect](t, a, got)
	return !maps.EqualFunc(want, got, slices.Equal)
}

// withoutFacts returns a type without each of its facts.
func withoutFacts(a arch.Arch) map[string]arch.Arch {
	out := map[string]arch.Arch{}
	v := reflect.ValueOf(a)
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || slices.Contains(elsewhere, field.Name) {
			continue
		}
		for what, value := range less(v.Field(i)) {
			b := a
			reflect.ValueOf(&b).Elem().Field(i).Set(value)
			out[field.Name+what] = b
		}
	}
	return out
}

// less returns a value without each of the facts that it holds.
func less(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	switch {
	case v.IsZero():
	case v.Kind() == reflect.Slice:
		step := 1
		if v.Type().Elem().Kind() == reflect.String && v.Len()%2 == 0 && isPairs(v) {
			step = 2
		}
		for i := 0; i < v.Len(); i += step {
			rest := reflect.AppendSlice(v.Slice3(0, i, i), v.Slice(i+step, v.Len()))
			out[fmt.Sprintf("[%d]", i)] = rest
		}
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			rest := reflect.MakeMap(v.Type())
			for _, k := range v.MapKeys() {
				if k.Interface() != key.Interface() {
					rest.SetMapIndex(k, v.MapIndex(k))
				}
			}
			out[fmt.Sprintf("[%v]", key)] = rest
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			for what, value := range less(v.Field(i)) {
				rest := reflect.New(v.Type()).Elem()
				rest.Set(v)
				rest.Field(i).Set(value)
				out["."+v.Type().Field(i).Name+what] = rest
			}
		}
	case v.Kind() == reflect.Pointer:
		for what, value := range less(v.Elem()) {
			rest := reflect.New(v.Type().Elem())
			rest.Elem().Set(value)
			out[what] = rest
		}
	default:
		out[""] = reflect.Zero(v.Type())
	}
	return out
}

// isPairs reports whether a list is of names and of what replaces them.
func isPairs(v reflect.Value) bool { return v.Len() > 0 && v.Index(0).String()[0] == '.' }
