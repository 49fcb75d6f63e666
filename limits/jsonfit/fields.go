package jsonfit

import (
	"reflect"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// fields are the fields of a struct by their names in JSON.
type fields struct {
	exact  map[string][]int // indexes for reflect
	folded map[string][]int // by name in any case
}

// find returns the index of a field. A name in another case counts if no field has the name itself.
func (f *fields) find(key []byte) (index []int, known bool) {
	if index, known = f.exact[string(key)]; known {
		return index, true
	}
	var buffer [64]byte
	index, known = f.folded[string(fold(buffer[:0], key))]
	return index, known
}

// fold appends a name in a form that is equal for all its cases.
func fold(to, name []byte) []byte {
	for len(name) > 0 {
		r, n := utf8.DecodeRune(name)
		name = name[n:]
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		to = utf8.AppendRune(to, least)
	}
	return to
}

var known sync.Map // of *fields by reflect.Type

// fieldsOf returns the fields of a struct.
func fieldsOf(t reflect.Type) *fields {
	if f, ok := known.Load(t); ok {
		return f.(*fields)
	}
	f := &fields{exact: map[string][]int{}, folded: map[string][]int{}}
	f.add(t, nil)
	known.Store(t, f)
	return f
}

// add adds the fields of a struct, and then those of the structs embedded in it, which the former hide.
func (f *fields) add(t reflect.Type, above []int) {
	type inner struct {
		t     reflect.Type
		index []int
	}
	var embedded []inner
	for i := range t.NumField() {
		field := t.Field(i)
		index := append(append([]int(nil), above...), i)
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		plain := field.Type
		if plain.Kind() == reflect.Pointer {
			plain = plain.Elem()
		}
		switch {
		case tag == "-", field.Type.Kind() == reflect.Pointer && field.Anonymous && !field.IsExported(): // cannot be set
		case field.Anonymous && name == "" && plain.Kind() == reflect.Struct:
			embedded = append(embedded, inner{plain, index})
		case field.IsExported():
			if name == "" {
				name = field.Name
			}
			if _, hidden := f.exact[name]; !hidden {
				f.exact[name] = index
			}
			key := string(fold(nil, []byte(name)))
			if _, hidden := f.folded[key]; !hidden {
				f.folded[key] = index
			}
		}
	}
	for _, e := range embedded {
		f.add(e.t, e.index)
	}
}
