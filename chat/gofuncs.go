package chat

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"reflect"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// Names of template functions that count. count and countReads insert calls of them.
const (
	stepFunc = "ingotStep" // nodes
	readFunc = "ingotRead" // what a function reads of a value, which it returns
	showFunc = "ingotShow" // what printing a value takes, which it returns
)

// Costs in steps of a stepFunc call and of each node. A step is one of Jinja's, which is faster than one of
// text/template.
const (
	callWeight = 32
	nodeWeight = 4
)

// functions returns the functions of Go templates. It replaces those of text/template that produce text: each reserves
// the maximum size of its result from the run's memory before producing it.
func (g *goRun) functions() template.FuncMap {
	now := g.now
	if now == nil {
		now = time.Now
	}
	one := func(times int, fn func(...any) string) func(...any) (string, error) {
		return func(args ...any) (string, error) {
			return g.text(times*sizeOf(args), func() (string, error) { return fn(args...), nil })
		}
	}
	return template.FuncMap{
		stepFunc: func(n int) (string, error) { return "", g.step(n) },
		readFunc: func(v reflect.Value) (reflect.Value, error) { return v, g.read(v) },
		showFunc: func(v reflect.Value) (reflect.Value, error) { return v, g.show(v) },
		"json": func(v any) (string, error) {
			return g.text(6*sizeOf(v), func() (string, error) {
				b, err := json.Marshal(toMarshal(v))
				return string(b), err
			})
		},
		"currentDate":   func(...string) string { return now().Format("2006-01-02") },
		"yesterdayDate": func(...string) string { return now().AddDate(0, 0, -1).Format("2006-01-02") },
		"toTypeScriptType": func(schema any) (string, error) {
			return g.text(2*sizeOf(schema), func() (string, error) { return typeScript(schema), nil })
		},
		"printf": func(format string, args ...any) (string, error) {
			n, err := g.formatSize(format, args)
			if err != nil {
				return "", err
			}
			return g.text(n, func() (string, error) { return fmt.Sprintf(format, args...), nil })
		},
		"print":    one(1, fmt.Sprint),
		"println":  one(1, fmt.Sprintln),
		"html":     one(6, template.HTMLEscaper),
		"js":       one(6, template.JSEscaper),
		"urlquery": one(3, template.URLQueryEscaper),
	}
}

// text returns the text that make produces, which has at most maxBytes bytes, and counts it against the limits.
func (g *goRun) text(maxBytes int, make func() (string, error)) (string, error) {
	if err := g.work(int64(maxBytes) / 128); err != nil {
		return "", err
	}
	if g.memory+int64(maxBytes) > g.limits.Memory {
		return "", g.fail("more than %d bytes of memory", g.limits.Memory)
	}
	s, err := make()
	g.memory += int64(len(s))
	return s, err
}

// read counts what it takes to compare a value, to find it in a map or to order its keys.
func (g *goRun) read(v reflect.Value) error {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return g.work(int64(v.Len()) / 256)
	case reflect.Map:
		return g.work(int64(v.Len()) * int64(bits.Len(uint(v.Len()))))
	}
	return nil
}

// show counts what it takes to print a value: maps are sorted, and all of it is text before it is written.
func (g *goRun) show(v reflect.Value) error {
	if !v.IsValid() || v.Kind() == reflect.String || !v.CanInterface() {
		return nil
	}
	return g.work(int64(sizeOf(v.Interface())) / 32)
}

// formatSize returns an upper bound of the bytes that printf produces.
func (g *goRun) formatSize(format string, args []any) (int, error) {
	const widest = 1000
	n := sizeOf(args)
	if strings.ContainsAny(format, "qxX#") {
		n *= 8 // worst case of a quoted or hexadecimal string
	}
	n += len(format)
	_, rest, found := strings.Cut(format, "%")
	for found {
		var verb string
		verb, rest, found = strings.Cut(rest, "%")
		spec := verb[:len(verb)-len(strings.TrimLeft(verb, "+-# 0123456789.*[]"))]
		if strings.ContainsAny(spec, "*[") {
			return 0, g.fail("a format must not take its width or index from its arguments")
		}
		for _, number := range strings.FieldsFunc(spec, func(r rune) bool { return r < '0' || r > '9' }) {
			width, err := strconv.Atoi(number)
			if err != nil || width > widest {
				return 0, g.fail("a format has a width of more than %d", widest)
			}
			n += width
		}
		n += 32 // the message for a missing argument
	}
	return n, nil
}

// sizeOf returns an upper bound of the bytes that fmt prints for a value, either plain or as JSON without escapes.
func sizeOf(v any) int {
	const plain = 400 // all digits of a float64
	switch v := v.(type) {
	case nil:
		return 8
	case string:
		return len(v) + 8
	case bool, int, int64:
		return 32
	case goTool:
		return len(v.text) + 8
	case goFunction:
		return len(v.text) + 8
	case goParameters:
		return len(v.text) + 8
	case goObject:
		return 6 * sizeOf(map[string]any(v))
	case map[string]any:
		n := 16
		for k, x := range v {
			n += len(k) + 8 + sizeOf(x)
		}
		return n
	case []any:
		n := 16
		for _, x := range v {
			n += sizeOf(x)
		}
		return n
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Slice, reflect.Array:
		n := 16
		for i := range r.Len() {
			n += sizeOf(r.Index(i).Interface())
		}
		return n
	case reflect.Pointer:
		if r.IsNil() {
			return 8
		}
		return sizeOf(r.Elem().Interface())
	case reflect.Struct:
		n := 16
		for i := range r.NumField() {
			if f := r.Field(i); r.Type().Field(i).IsExported() {
				n += 32 + sizeOf(f.Interface())
			}
		}
		return n
	}
	return plain
}

// typeScript returns the TypeScript type for a JSON schema.
func typeScript(schema any) string {
	m, ok := schema.(map[string]any)
	if !ok {
		return "any"
	}
	if list, ok := m["anyOf"].([]any); ok && len(list) > 0 {
		var parts []string
		for _, x := range list {
			parts = append(parts, typeScript(x))
		}
		return strings.Join(parts, " | ")
	}
	one := func(t string) string {
		switch t {
		case "string", "boolean", "null":
			return t
		case "integer", "number":
			return "number"
		case "array":
			return typeScriptItems(m["items"]) + "[]"
		case "object":
			return "Record<string, any>"
		}
		return "any"
	}
	switch t := m["type"].(type) {
	case string:
		return one(t)
	case []any:
		var parts []string
		for _, x := range t {
			parts = append(parts, one(fmt.Sprint(x)))
		}
		if len(parts) > 0 {
			return strings.Join(parts, " | ")
		}
	}
	return "any"
}

func typeScriptItems(items any) string {
	if t := typeScript(items); !strings.Contains(t, " ") {
		return t
	}
	return "any"
}
