package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// messages are shortened ones of govulncheck v1.9.0: a function that is reached in two ways, a package that is only
// imported, the standard library, and a module without a fix.
const messages = `{"config": {"protocol_version": "v1.0.0", "db": "file:///db"}}
{"progress": {"message": "Scanning"}}
{"osv": {"id": "GO-2026-0001", "summary": "Panic in x", "aliases": ["CVE-2026-1", "GHSA-a"]}}
{"osv": {"id": "GO-2026-0002", "summary": "Loop in y"}}
{"osv": {"id": "GO-2026-0003", "summary": "Crash in net/http"}}
{"osv": {"id": "GO-2026-0004", "summary": "Leak in z"}}
{"finding": {"osv": "GO-2026-0001", "fixed_version": "v1.2.0", "trace": [
  {"module": "example.com/x", "version": "v1.1.0"}]}}
{"finding": {"osv": "GO-2026-0001", "fixed_version": "v1.2.0", "trace": [
  {"module": "example.com/x", "version": "v1.1.0", "package": "example.com/x", "function": "Read", "receiver": "*T"},
  {"module": "example.com/w", "version": "v1.0.0", "package": "example.com/w", "function": "Walk"},
  {"module": "github.com/ingotml/ingot", "package": "github.com/ingotml/ingot/server/pdf", "function": "Text",
   "position": {"filename": "server/pdf/pdf.go", "line": 20}},
  {"module": "github.com/ingotml/ingot", "package": "github.com/ingotml/ingot/cmd", "function": "Main"}]}}
{"finding": {"osv": "GO-2026-0001", "fixed_version": "v1.2.0", "trace": [
  {"module": "example.com/x", "version": "v1.1.0", "package": "example.com/x", "function": "Parse"},
  {"module": "github.com/ingotml/ingot", "package": "github.com/ingotml/ingot/cmd", "function": "Show",
   "position": {"filename": "cmd/show.go", "line": 7}}]}}
{"finding": {"osv": "GO-2026-0002", "fixed_version": "v2.0.1", "trace": [
  {"module": "example.com/y", "version": "v2.0.0", "package": "example.com/y"}]}}
{"finding": {"osv": "GO-2026-0003", "fixed_version": "v1.26.9", "trace": [
  {"module": "stdlib", "version": "v1.26.8", "package": "net/http", "function": "Do", "receiver": "*Client"},
  {"module": "github.com/ingotml/ingot", "package": "github.com/ingotml/ingot/cmd", "function": "Main"}]}}
{"finding": {"osv": "GO-2026-0004", "trace": [
  {"module": "example.com/z", "version": "v0.1.0", "package": "example.com/z", "function": "F"},
  {"module": "github.com/ingotml/ingot", "package": "github.com/ingotml/ingot/cmd", "function": "Main"}]}}
`

func TestJudge(t *testing.T) {
	found, err := parse(strings.NewReader(messages))
	if err != nil {
		t.Fatal(err)
	}
	const (
		x = "GO-2026-0001, CVE-2026-1, GHSA-a: Panic in x: example.com/x v1.1.0 is reached: " +
			"github.com/ingotml/ingot/cmd.Show (cmd/show.go:7) calls example.com/x.Parse: go get example.com/x@v1.2.0"
		http = "GO-2026-0003: Crash in net/http: stdlib v1.26.8 is reached: github.com/ingotml/ingot/cmd.Main " +
			"calls net/http.Client.Do: go mod edit -toolchain=go1.26.9"
		z = "GO-2026-0004: Leak in z: example.com/z v0.1.0 is reached: github.com/ingotml/ingot/cmd.Main " +
			"calls example.com/z.F: there is no fixed version: do without the function, or accept it in " +
			"cmd/supply/vulns/exceptions.txt"
		needless = " is no longer reached or no longer there: remove it from cmd/supply/vulns/exceptions.txt"
	)
	for name, c := range map[string]struct {
		accepted string
		want     []string
	}{
		"none accepted":            {"", []string{x, http, z}},
		"one accepted":             {"# why\n\nGO-2026-0004 2026-11-30 no input reaches it\n", []string{x, http}},
		"all accepted":             {"GO-2026-0001 2026-11-30 a\nGO-2026-0003 2026-11-30 b\nGO-2026-0004 2026-11-30 c", nil},
		"one that is only present": {"GO-2026-0002 2026-11-30 a", []string{x, http, z, "GO-2026-0002" + needless}},
		"one that is gone":         {"GO-2020-0009 2026-11-30 a", []string{x, http, z, "GO-2020-0009" + needless}},
	} {
		accepted, err := parseExceptions(c.accepted)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, problem := range judge(found, accepted) {
			got = append(got, problem.Error())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

func TestExceptions(t *testing.T) {
	if _, err := parseExceptions(exceptionsText); err != nil {
		t.Error(err)
	}
	for _, line := range []string{"GO-2026-0001", "GO-2026-0001 2026-11-30", "GO-2026-0001 soon it does no harm",
		"GO-2026-0001 2026-13-01 a", "CVE-2026-1 2026-11-30 a"} {
		_, err := parseExceptions("# a comment\n" + line)
		if err == nil || !strings.Contains(err.Error(), "exceptions.txt:2") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestAgeNote(t *testing.T) {
	made := time.Date(2026, 11, 5, 23, 49, 57, 0, time.UTC)
	for days, old := range map[int]bool{0: false, 59: false, 61: true} {
		note := ageNote("v0.0.0-20261105234957-e22db6528018", made.AddDate(0, 0, days))
		if old != strings.Contains(note, fmt.Sprintf("%d days old", days)) || !old && note != "" {
			t.Errorf("after %d days: %q", days, note)
		}
	}
	if note := ageNote(databaseVersion, made); strings.Contains(note, "not known") {
		t.Error(note)
	}
	if note := ageNote("v1.0.0", made); !strings.Contains(note, "not known") {
		t.Errorf("a version without a time: %q", note)
	}
}
