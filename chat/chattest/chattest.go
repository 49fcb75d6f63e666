// Package chattest reads the published chat templates that the tests of chat's packages share.
//
// Contract: it is for tests only, whose packages are two folders below the root, and knows no package of chat.
package chattest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Variable names the environment variable with the folder of further templates. testdata/gen/chat/templates.py
// completes such a folder.
const Variable = "INGOT_CHAT_TEMPLATES"

// Render is what the reference renders, or the error that it raises.
type Render struct{ OK, Err *string }

// Set is a folder of templates with what the reference renders of each in each context.
type Set struct {
	Name      string
	Committed bool                         // testdata/chat, and not the folder that Variable names
	Templates map[string]string            // source by file name
	Contexts  map[string]json.RawMessage   // variables by the context's name
	Renders   map[string]map[string]Render // by file name, then context
}

// Sets returns the committed set and, where Variable is set, the set in that folder. A set that is missing or
// incomplete fails the test.
func Sets(t testing.TB) []Set {
	t.Helper()
	sets := []Set{read(t, filepath.Join("..", "..", "testdata", "chat"))}
	sets[0].Committed = true
	if dir := os.Getenv(Variable); dir != "" {
		sets = append(sets, read(t, dir))
	}
	return sets
}

func read(t testing.TB, dir string) Set {
	t.Helper()
	s := Set{Name: filepath.Base(dir), Templates: map[string]string{}, Renders: map[string]map[string]Render{}}
	var renders map[string]Render
	readJSON(t, filepath.Join(dir, "contexts.json"), &s.Contexts)
	readJSON(t, filepath.Join(dir, "expected.json"), &renders)
	files, err := filepath.Glob(filepath.Join(dir, "templates", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no templates: %v", dir, err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s.Templates[filepath.Base(file)] = string(source)
		s.Renders[filepath.Base(file)] = map[string]Render{}
	}
	for key, r := range renders {
		name, context, _ := strings.Cut(key, "|")
		if s.Renders[name] == nil || s.Contexts[context] == nil || (r.OK == nil) == (r.Err == nil) {
			t.Fatalf("%s: expected.json: %q has no template, no context, or not one result", dir, key)
		}
		s.Renders[name][context] = r
	}
	for name, r := range s.Renders {
		if len(r) != len(s.Contexts) {
			t.Fatalf("%s: expected.json: %s has %d of %d contexts; testdata/gen/chat/templates.py makes them", dir, name,
				len(r), len(s.Contexts))
		}
	}
	return s
}

func readJSON(t testing.TB, path string, to any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
