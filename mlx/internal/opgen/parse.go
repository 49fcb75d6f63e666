package main

import (
	"bufio"
	"fmt"
	"regexp"
	"strings"
)

// op is one entry of ops.txt.
type op struct {
	Name, Expr string
	Doc        string // text of the comment, in lines
	Args       []arg
	Many       bool // the result is a list
}

type arg struct{ Name, Type string }

// types maps argument types to how C++ reads them and how Go declares and packs them.
var types = map[string]struct{ cc, goType, pack string }{
	"array":  {"array()", "*Array", "array"},
	"array?": {"optional()", "*Array", "optional"},
	"arrays": {"arrays()", "[]*Array", "arrays"},
	"int":    {"integer()", "int", "int"},
	"wide":   {"wide()", "uint64", "wide"},
	"ints":   {"integers()", "[]int", "ints"},
	"optint": {"optional_integer()", "int", "int"},
	"bool":   {"flag()", "bool", "bool"},
	"float":  {"real()", "float64", "real"},
	"dtype":  {"dtype()", "DType", "dtype"},
	"mode":   {"mode()", "QuantMode", "mode"},
}

var lineRE = regexp.MustCompile(`^(\w+)\(([^)]*)\)( -> many)? = (.*?)(?: -- (.*))?$`)

func parse(text string) ([]op, error) {
	var ops []op
	seen := map[string]bool{}
	var above []string // lines of a comment
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if doc, ok := strings.CutPrefix(line, "//"); ok {
			above = append(above, strings.TrimPrefix(doc, " "))
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			if above != nil {
				return nil, fmt.Errorf("ops.txt:%d: the comment before has no operation", n)
			}
			continue
		}
		m := lineRE.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("ops.txt:%d: not of the form Name(args) = expression -- doc: %q", n, line)
		}
		o := op{Name: m[1], Many: m[3] != "", Expr: m[4], Doc: strings.Join(above, "\n")}
		if above = nil; m[5] != "" && o.Doc != "" {
			return nil, fmt.Errorf("ops.txt:%d: %s has two comments", n, o.Name)
		} else if m[5] != "" {
			o.Doc = o.Name + " " + m[5]
		}
		if seen[o.Name] {
			return nil, fmt.Errorf("ops.txt:%d: %s is defined twice", n, o.Name)
		}
		seen[o.Name] = true
		if exported(o.Name) && o.Doc == "" {
			return nil, fmt.Errorf("ops.txt:%d: %s has no doc", n, o.Name)
		}
		if o.Doc != "" && !strings.HasPrefix(o.Doc, o.Name+" ") {
			return nil, fmt.Errorf("ops.txt:%d: the comment of %s does not begin with the name", n, o.Name)
		}
		for _, field := range strings.Split(m[2], ",") {
			a, err := parseArg(strings.Fields(field))
			if err != nil {
				return nil, fmt.Errorf("ops.txt:%d: %s: %w", n, o.Name, err)
			}
			o.Args = append(o.Args, a)
		}
		ops = append(ops, o)
	}
	return ops, lines.Err()
}

func parseArg(words []string) (arg, error) {
	switch len(words) {
	case 1:
		return arg{words[0], "array"}, nil
	case 2:
		if _, ok := types[words[1]]; ok {
			return arg{words[0], words[1]}, nil
		}
		return arg{}, fmt.Errorf("argument %s has the unknown type %q", words[0], words[1])
	}
	return arg{}, fmt.Errorf("argument %q is not NAME or NAME TYPE", strings.Join(words, " "))
}

func exported(name string) bool { return name[0] >= 'A' && name[0] <= 'Z' }
