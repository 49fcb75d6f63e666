package cmd_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd"
)

// The parts of a checkpoint that an image lacks are shown for it and for what was made from it.
func TestShowNotImported(t *testing.T) {
	t.Setenv("INGOT_HOME", filepath.Join(t.TempDir(), "store"))
	call := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := cmd.Main(args, nil, &out, &errs); code != 0 {
			t.Fatalf("%q: exit code %d, %s", args, code, errs.String())
		}
		return out.String() + errs.String()
	}
	const line = "vision_tower: 32 tensors, 13 kB: pictures are not supported for gemma3, its text model is imported"
	folder := filepath.Join("..", "testdata", "models", "gemma3-published")
	for _, args := range [][]string{
		{"create", "a", folder, "--dry-run"}, {"create", "a", folder}, {"show", "a"}, {"show", "a", "--provenance"},
		{"quantize", "a", "b", "int8"}, {"show", "b"},
	} {
		if shown := call(args...); strings.Contains(shown, line) != (args[0] != "quantize") {
			t.Errorf("%q prints %s", args, shown)
		}
	}
	type part struct {
		Part, Why string
		Tensors   int
		Bytes     int64
	}
	type parts struct {
		NotImported []part `json:"not_imported"`
	}
	var shown parts
	var records []parts
	var plan parts
	for args, into := range map[string]any{
		"show a --json": &shown, "show a --provenance --json": &records, "create c " + folder + " --dry-run --json": &plan,
	} {
		if err := json.Unmarshal([]byte(call(strings.Fields(args)...)), into); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	for _, p := range append(records, shown, plan) {
		if len(p.NotImported) != 2 || p.NotImported[1].Part != "vision_tower" || p.NotImported[1].Tensors != 32 ||
			p.NotImported[1].Bytes < 12000 || p.NotImported[1].Why == "" {
			t.Errorf("%+v", p)
		}
	}
	s := call("show", "a", "--format", "{{range .NotImported}}{{.Part}} {{end}}")
	if !strings.Contains(s, "vision_tower ") {
		t.Errorf("the template prints %s", s)
	}
}
