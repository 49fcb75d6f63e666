package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed exceptions.txt
var exceptionsText string

const standardLibrary = "stdlib"

// vulnerability is what govulncheck found of one entry of the database.
type vulnerability struct {
	id      string
	aliases []string
	summary string
	module  string // of the code that is vulnerable
	version string
	fixed   string  // version without it; "" if there is none
	trace   []frame // from the vulnerable function to one of ingot's; empty if ingot does not reach it
}

type frame struct {
	Module, Version, Package, Receiver, Function string
	Position                                     *struct {
		Filename string
		Line     int
	}
}

func (f frame) String() string {
	name := f.Package + "." + f.Function
	if f.Receiver != "" {
		name = f.Package + "." + strings.TrimPrefix(f.Receiver, "*") + "." + f.Function
	}
	if f.Position == nil {
		return name
	}
	return fmt.Sprintf("%s (%s:%d)", name, f.Position.Filename, f.Position.Line)
}

func (v vulnerability) reached() bool { return len(v.trace) > 0 }

// parse reads govulncheck's messages: https://pkg.go.dev/golang.org/x/vuln/internal/govulncheck#Message.
func parse(r io.Reader) ([]vulnerability, error) {
	type entry struct {
		ID, Summary string
		Aliases     []string
	}
	entries := map[string]entry{}
	found := map[string]*vulnerability{}
	for d := json.NewDecoder(r); ; {
		var m struct {
			OSV     *entry
			Finding *struct {
				OSV          string
				FixedVersion string `json:"fixed_version"`
				Trace        []frame
			}
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("govulncheck: %w", err)
		}
		if m.OSV != nil {
			entries[m.OSV.ID] = *m.OSV
		}
		if m.Finding == nil || len(m.Finding.Trace) == 0 {
			continue
		}
		f := m.Finding
		v := found[f.OSV]
		if v == nil {
			v = &vulnerability{
				id: f.OSV, module: f.Trace[0].Module, version: f.Trace[0].Version, fixed: f.FixedVersion,
			}
			found[f.OSV] = v
		}
		if f.Trace[0].Function != "" && (v.trace == nil || len(f.Trace) < len(v.trace)) {
			v.trace = f.Trace
		}
	}
	var list []vulnerability
	for _, id := range slices.Sorted(maps.Keys(found)) {
		found[id].summary, found[id].aliases = entries[id].Summary, entries[id].Aliases
		list = append(list, *found[id])
	}
	return list, nil
}

// exception is a vulnerability that is accepted though it is reached.
type exception struct {
	id, reason string
	decided    time.Time
}

var exceptionLine = regexp.MustCompile(`^(GO-\d{4}-\d{4,}) (\d{4}-\d{2}-\d{2}) (\S.*)$`)

func parseExceptions(text string) ([]exception, error) {
	var list []exception
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := exceptionLine.FindStringSubmatch(line)
		if fields == nil {
			return nil, fmt.Errorf("cmd/supply/vulns/exceptions.txt:%d: want GO-YYYY-NNNN YYYY-MM-DD REASON", n)
		}
		decided, err := time.Parse(time.DateOnly, fields[2])
		if err != nil {
			return nil, fmt.Errorf("cmd/supply/vulns/exceptions.txt:%d: %w", n, err)
		}
		list = append(list, exception{fields[1], fields[3], decided})
	}
	return list, nil
}

// judge returns an error for each vulnerability that is reached and not accepted, and for each exception without need.
func judge(found []vulnerability, accepted []exception) (problems []error) {
	needed := map[string]bool{}
	for _, v := range found {
		if !v.reached() {
			continue
		}
		needed[v.id] = true
		if !slices.ContainsFunc(accepted, func(e exception) bool { return e.id == v.id }) {
			problems = append(problems, v.problem())
		}
	}
	for _, e := range accepted {
		if !needed[e.id] {
			problems = append(problems, fmt.Errorf("%s is no longer reached or no longer there: "+
				"remove it from cmd/supply/vulns/exceptions.txt", e.id))
		}
	}
	return problems
}

func (v vulnerability) problem() error {
	caller := v.trace[len(v.trace)-1]
	for _, f := range v.trace[1:] {
		if f.Module == "github.com/ingotml/ingot" {
			caller = f
			break
		}
	}
	name := strings.Join(slices.Concat([]string{v.id}, v.aliases), ", ")
	remedy := fmt.Sprintf("go get %s@%s", v.module, v.fixed)
	switch {
	case v.fixed == "":
		remedy = "there is no fixed version: do without the function, or accept it in cmd/supply/vulns/exceptions.txt"
	case v.module == standardLibrary:
		remedy = "go mod edit -toolchain=go" + strings.TrimPrefix(v.fixed, "v")
	}
	return fmt.Errorf("%s: %s: %s %s is reached: %s calls %s: %s",
		name, v.summary, v.module, v.version, caller, v.trace[0], remedy)
}
