package modelfile

import (
	"iter"
	"reflect"
	"slices"
	"strings"
)

// API is an API whose requests name parameters.
type API int

// The APIs. The names of Ollama's options are those of Modelfiles.
const (
	Ollama API = iota
	OpenAI
	Anthropic
)

// Names returns a parameter's names in an API, or none.
func (p ParameterInfo) Names(a API) []string {
	switch {
	case a == Ollama && p.Request:
		return []string{p.Name}
	case a == OpenAI:
		return p.OpenAI
	case a == Anthropic && p.Anthropic != "":
		return []string{p.Anthropic}
	}
	return nil
}

// Given returns the parameters that a struct sets and their values, in the order of [RequestParameters]. The struct's
// members have JSON names, which are those of an API. A member that is nil or false does not set its parameter. If a
// parameter has several names, each member that sets it is returned.
func Given(a API, from any) iter.Seq2[ParameterInfo, any] {
	return func(yield func(ParameterInfo, any) bool) {
		v := reflect.Indirect(reflect.ValueOf(from))
		fields := jsonMembers(v.Type())
		for _, p := range RequestParameters() {
			for _, name := range p.Names(a) {
				if f, ok := fields[name]; ok && isGiven(v.FieldByIndex(f.Index)) {
					if !yield(p, v.FieldByIndex(f.Index).Interface()) {
						return
					}
				}
			}
		}
	}
}

func isGiven(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return !v.IsNil()
	}
	return !v.IsZero()
}

// Undeclared returns the names of an API that no struct has a member for, except those of the parameters in without.
func Undeclared(a API, structs []any, without ...string) (names []string) {
	for _, p := range RequestParameters() {
		for _, name := range p.Names(a) {
			if !slices.Contains(without, p.Name) && !slices.ContainsFunc(structs, func(s any) bool {
				_, declared := jsonMembers(reflect.TypeOf(s))[name]
				return declared
			}) {
				names = append(names, name)
			}
		}
	}
	return names
}

// SetMember sets a struct's member by its JSON name to a value that converts to its type, and reports whether it could.
func SetMember(to any, name string, value any) bool {
	v := reflect.ValueOf(to).Elem()
	f, ok := jsonMembers(v.Type())[name]
	from := reflect.ValueOf(value)
	if !ok || !from.CanConvert(f.Type) {
		return false
	}
	v.FieldByIndex(f.Index).Set(from.Convert(f.Type))
	return true
}

// jsonMembers returns the exported fields of a struct, and of those that it embeds, by their JSON names.
func jsonMembers(t reflect.Type) map[string]reflect.StructField {
	all := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && f.IsExported() {
			all[name] = f
		}
	}
	return all
}
