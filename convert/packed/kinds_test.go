package packed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// Every kind has checkpoints in testdata/sources and is on the page. Every checkpoint is compared with its golden.
func TestEveryKindIsTested(t *testing.T) {
	page := text(t, "docs", "sources.md")
	scripts := text(t, "cmd", "testdata", "script", "sources.txtar") + text(t, "cmd", "testdata", "script", "packed.txtar")
	found := map[string]bool{}
	for _, name := range published(t) {
		r, err := load(t, name).read(t)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(r.Recognized) == 0 {
			t.Errorf("testdata/sources/%s: nothing is recognized", name)
		}
		for _, k := range r.Recognized {
			found[k.Kind] = true
		}
		if !strings.Contains(scripts, "--reference $SOURCES/"+name+"/") {
			t.Errorf("testdata/sources/%s: compare it with its reference in cmd/testdata/script/packed.txtar", name)
		}
	}
	for _, k := range kinds {
		if !found[k.Name] {
			t.Errorf("%s: no checkpoint of testdata/sources is of this kind: write its generator in testdata/gen", k.Name)
		}
		if !strings.Contains(strings.ToLower(page), k.Name) {
			t.Errorf("%s: docs/sources.md lacks it", k.Name)
		}
	}
}

// Codes and floats of every checkpoint's weights agree.
func TestEveryKindReadsTheSame(t *testing.T) {
	for _, name := range runtest.Sample(published(t)) {
		t.Run(name, func(t *testing.T) {
			r, err := load(t, name).read(t)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range r.Weights {
				checkBatches(t, w)
			}
		})
	}
}

// Without its scales no weight of any kind is read, neither as packed nor as plain.
func TestEveryKindNeedsItsScales(t *testing.T) {
	for _, name := range published(t) {
		whole, err := load(t, name).read(t)
		if err != nil {
			t.Fatal(err)
		}
		w := whole.Weights[len(whole.Weights)/2]
		f := load(t, name)
		for _, p := range w.Parts[1:] {
			delete(f.tensors, p.Name)
		}
		if _, err := f.read(t); !errors.Is(err, ErrSource) {
			t.Errorf("%s: %s is read from its codes alone: %v", name, w.Name, err)
		}
	}
}

func published(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("../../testdata/sources")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func text(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", filepath.Join(path...)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
