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
	exact  map[string]field
	folded map[string]field // by name in any case
}

type field struct {
	name  string
	index []int // for reflect
}

// find returns a field, with its name as it is written. A name in another case counts if no field has the name itself.
func (f *fields) find(key []byte) (found field, known bool) {
	if found, known = f.exact[string(key)]; known {
		return found, true // which needs no copy of the key
	}
	var buffer [64]byte
	if found, known = f.folded[string(fold(buffer[:0], key))]; known {
		found.name = string(key)
	}
	return found, known
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
	f := &fields{exact: map[string]field{}, folded: map[string]field{}}
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
		member := t.Field(i)
		index := append(append([]int(nil), above...), i)
		tag := member.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		plain := member.Type
		if plain.Kind() == reflect.Pointer {
			plain = plain.Elem()
		}
		switch {
		case tag == "-", member.Type.Kind() == reflect.Pointer && member.Anonymous && !member.IsExported(): // cannot be set
		case member.Anonymous && name == "" && plain.Kind() == reflect.Struct:
			embedded = append(embedded, inner{plain, index})
		case member.IsExported():
			if name == "" {
				name = member.Name
			}
			if _, hidden := f.exact[name]; !hidden {
				f.exact[name] = field{name, index}
			}
			key := string(fold(nil, []byte(name)))
			if _, hidden := f.folded[key]; !hidden {
				f.folded[key] = field{name, index}
			}
		}
	}
	for _, e := range embedded {
		f.add(e.t, e.index)
	}
}
