// Package parameterstest compares the requests of an API with the table of parameters.
package parameterstest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/ingotml/ingot/modelfile/parameters"
)

// Undeclared returns the names of an API that no struct has a member for, except those of the parameters in without.
func Undeclared(a parameters.API, structs []any, without ...string) (names []string) {
	for _, p := range parameters.OfRequests() {
		for _, name := range p.Names(a) {
			if !slices.Contains(without, p.Name) && !slices.ContainsFunc(structs, func(s any) bool {
				return declares(reflect.TypeOf(s), name)
			}) {
				names = append(names, name)
			}
		}
	}
	return names
}

// declares reports whether a struct, or one that it embeds, has an exported field with a JSON name.
func declares(t reflect.Type, name string) bool {
	return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		own, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return own == name && f.IsExported()
	})
}
