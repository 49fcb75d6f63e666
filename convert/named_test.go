package convert

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/convert/export"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/hub"
)

// named returns the templates of a model as name=text, sorted.
func named(t *testing.T, st *store.Store, name string) (out []string) {
	t.Helper()
	texts := mustTexts(t, st, name)
	if err := texts.Templates.Err(); err != nil {
		t.Fatal(err)
	}
	for _, n := range texts.Templates.All() {
		out = append(out, n.Name+"="+n.Text)
	}
	slices.Sort(out)
	return out
}

// withNamed writes a checkpoint with a tokenizer and other files, which may be in folders.
func withNamed(t *testing.T, files map[string]string) string {
	t.Helper()
	ck := tiny(t, tinyConfig, 1)
	data, err := os.ReadFile(filepath.Join("..", "testdata", "models", "demo", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	ck.files["tokenizer.json"] = string(data)
	dir := ck.write(t, t.TempDir())
	copyNamed(t, dir, files)
	return dir
}

// copyNamed writes files, which may be in folders.
func copyNamed(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, []byte(text))
	}
}

var namedFolder = map[string]string{
	"chat_template.jinja":                         "d",
	"additional_chat_templates/tool_use.jinja":    "t{{ tools }}",
	"additional_chat_templates/rag.jinja":         "r",
	"additional_chat_templates/a b.jinja":         "x",
	"additional_chat_templates/README.md":         "{{",
	"additional_chat_templates/tool_use.json":     "{{",
	"additional_chat_templates/.hidden.jinja":     "{{",
	"additional_chat_templates/old/default.jinja": "{{",
}

var namedWant = []string{"a b=x", "default=d", "rag=r", "tool_use=t{{ tools }}"}

// Named templates survive every way: from a folder and the hub, through an image, to a folder and a GGUF file and back.
func TestNamedTemplatesEveryWay(t *testing.T) {
	st := openStore(t)
	dir := withNamed(t, namedFolder)
	first := mustCreate(t, st, "m", from(dir), Options{})
	if d := cmp.Diff(namedWant, named(t, st, "m")); d != "" || len(first.Warnings) > 1 {
		t.Error(d, first.Warnings)
	}
	if c := mustResolve(t, st, "m").Image.Config.Capabilities; !slices.Contains(c, "tools") {
		t.Errorf("capabilities %v", c)
	}

	h := newHub(t)
	if _, err := h.AddFolder("tiny/named", dir); err != nil {
		t.Fatal(err)
	}
	again := mustCreate(t, st, "hub", from("hf.co/tiny/named"), Options{Remote: hubClient(h, hub.Options{})})
	if again.Digest != first.Digest {
		t.Errorf("from the hub: %s, want %s: %v", again.Digest, first.Digest, named(t, st, "hub"))
	}

	out := filepath.Join(t.TempDir(), "out")
	mustExport(t, st, "m", out, export.Options{})
	if again := mustCreate(t, st, "again", from(out), Options{}); again.Digest != first.Digest {
		t.Errorf("from its export: %s, want %s: %v", again.Digest, first.Digest, named(t, st, "again"))
	}

	demo := t.TempDir() // its weights are finite
	if err := os.CopyFS(demo, os.DirFS(filepath.Join("..", "testdata", "models", "demo"))); err != nil {
		t.Fatal(err)
	}
	copyNamed(t, demo, namedFolder)
	mustCreate(t, st, "demo", from(demo), Options{})
	path, result, err := exportGGUF(t, st, "demo", "source")
	if err != nil {
		t.Fatal(err)
	}
	mustCreate(t, st, "g", from(path), Options{})
	want := slices.Clone(namedWant)
	want[0] = "a_b=x" // as the Python package gguf names it
	if d := cmp.Diff(want, named(t, st, "g")); d != "" {
		t.Error(d, result.Notes)
	}

	// Beside a GGUF file, the folder's templates are not the model's.
	beside := t.TempDir()
	if err := os.Rename(path, filepath.Join(beside, "m.gguf")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(beside, "additional_chat_templates"),
		os.DirFS(filepath.Join(dir, "additional_chat_templates"))); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, st, "beside", from(beside), Options{})
	if d := cmp.Diff(want, named(t, st, "beside")); d != "" {
		t.Error(d)
	}

	// A TEMPLATE line is the only template, also after an export; an empty one brings the others back.
	mustCreate(t, st, "own", parsed(t, "FROM m\nTEMPLATE own"), Options{})
	if got := named(t, st, "own"); !slices.Equal(got, []string{"default=own"}) {
		t.Errorf("TEMPLATE: %q", got)
	}
	if c := mustResolve(t, st, "own").Image.Config.Capabilities; slices.Contains(c, "tools") {
		t.Errorf("capabilities %v", c)
	}
	ownOut := filepath.Join(t.TempDir(), "own")
	r := mustExport(t, st, "own", ownOut, export.Options{})
	if n := strings.Count(strings.Join(r.Notes, "\n"), "the TEMPLATE line replaces it"); n != 3 {
		t.Errorf("notes %q", r.Notes)
	}
	mustCreate(t, st, "own2", from(ownOut), Options{})
	if got := named(t, st, "own2"); !slices.Equal(got, []string{"default=own"}) {
		t.Errorf("TEMPLATE, exported: %q", got)
	}
	mustCreate(t, st, "back", parsed(t, "FROM own\nTEMPLATE \"\""), Options{})
	if d := cmp.Diff(namedWant, named(t, st, "back")); d != "" {
		t.Error(d)
	}
}

// Capabilities are those of the templates that requests choose.
func TestCapabilitiesOfNamedTemplates(t *testing.T) {
	list := func(pairs ...string) map[string]string {
		text := `{"chat_template": [`
		for i := 0; i < len(pairs); i += 2 {
			text += `{"name": "` + pairs[i] + `", "template": "` + pairs[i+1] + `"},`
		}
		return map[string]string{"tokenizer_config.json": strings.TrimSuffix(text, ",") + "]}"}
	}
	both := maps.Clone(namedFolder)
	maps.Copy(both, list("default", "d", "tool_use", "<think>{{ tools }}"))
	for name, c := range map[string]struct {
		files           map[string]string
		tools, thinking bool
		warning         string
	}{
		"tool_use":             {list("default", "d", "tool_use", "{{ tools }}"), true, false, ""},
		"default":              {list("default", "{{ tools }}", "rag", "r"), true, false, ""},
		"tool_use without":     {list("default", "{{ tools }}", "tool_use", "x"), false, false, ""},
		"another":              {list("default", "d", "other", "{{ tools }}<think>"), false, false, ""},
		"rag":                  {list("default", "d", "rag", "{{ tools }}<think>"), false, true, ""},
		"thinking in tool_use": {list("default", "d", "tool_use", "<think>{{ tools }}"), true, true, ""},
		"no default":           {list("tool_use", "{{ tools }}"), true, false, `there is no "default", but tool_use`},
		"file over a list":     {both, true, false, ""},
		"unusable": {list("default", "d", "tool_use", "{% for %}{{ tools }}"), true, false,
			`tokenizer_config.json: the chat template cannot be used: template "tool_use": template line 1`},
		"unusable file": {map[string]string{"chat_template.jinja": "d", "additional_chat_templates/x.jinja": "{{"}, false,
			false, `additional_chat_templates/x.jinja: the chat template cannot be used: template "x"`},
	} {
		st := openStore(t)
		r := mustCreate(t, st, "m", from(withNamed(t, c.files)), Options{})
		can := mustResolve(t, st, "m").Image.Config.Capabilities
		if slices.Contains(can, "tools") != c.tools || slices.Contains(can, "thinking") != c.thinking {
			t.Errorf("%s: %v, want tools %v, thinking %v", name, can, c.tools, c.thinking)
		}
		warned := strings.Join(r.Warnings, "\n")
		if !strings.Contains(warned, c.warning) || c.warning == "" && strings.Contains(warned, "template") {
			t.Errorf("%s: warnings %q, want %q", name, r.Warnings, c.warning)
		}
	}
}

// Names that no file of an image can have are refused at once.
func TestTemplateNamesRefused(t *testing.T) {
	for _, name := range []string{"a:b", `a\b`, "a\nb"} {
		dir := withNamed(t, map[string]string{"additional_chat_templates/" + name + ".jinja": "x"})
		_, err := Create(t.Context(), openStore(t), modelName(t, "m"), from(dir), Options{})
		if err == nil || !strings.Contains(err.Error(), "rename or remove it") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
