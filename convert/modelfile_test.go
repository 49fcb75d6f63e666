package convert

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

func mustTexts(t *testing.T, s *store.Store, name string) *settings.Texts {
	t.Helper()
	texts, err := settings.Read(s, mustResolve(t, s, name))
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// shown returns the Modelfile of a model.
func shown(t *testing.T, s *store.Store, name string) (text string, notes []string) {
	t.Helper()
	f, notes := mustTexts(t, s, name).Modelfile(name)
	text, err := f.Format()
	if err != nil {
		t.Fatal(err)
	}
	return text, notes
}

const allLines = `TEMPLATE """{{ .System }}
{{ .Prompt }}"""
SYSTEM "  be brief "
RENDERER mine
PARSER glm-4.7
REQUIRES 0.3.1
PARAMETER seed 9007199254740993
PARAMETER stop <|im_end|>
PARAMETER stop " two words"
PARAMETER temperature 0.5
PARAMETER top_k 20
MESSAGE user hi "there"
MESSAGE assistant """hello
you"""
LICENSE terms
LICENSE terms
`

// The output of show --modelfile creates the same image.
func TestModelfileRoundTrip(t *testing.T) {
	c := finiteWeights(tiny(t, wideConfig, 1))
	c.files["generation_config.json"] = `{"temperature": 0.7, "top_k": 20}`
	c.files["LICENSE"] = "caf\xe9: not UTF-8"
	dir := c.write(t, t.TempDir())
	draft := finiteWeights(tiny(t, wideConfig, 2)).write(t, t.TempDir())
	qwen := tiny(t, moeConfig, 1).write(t, t.TempDir())
	for _, c := range []struct {
		name, from, lines, want string
		options                 Options
		notes                   int
	}{
		{"plain", dir, "", "PARAMETER temperature 0.7\nPARAMETER top_k 20\n", Options{}, 1},
		{"family", qwen, "", "RENDERER qwen3-coder\nPARSER qwen3\n", Options{}, 0},
		{"all", qwen, allLines, allLines, Options{}, 0},
		{"quantized", dir, "SYSTEM x\n", "SYSTEM x\nPARAMETER temperature 0.7\nPARAMETER top_k 20\n",
			Options{Precision: recipe.Precision{
				Type: quantize.Int4, Rules: []recipe.Rule{{Match: "*down_proj*", Type: quantize.Int8}},
			}}, 1},
		{"draft", dir, "DRAFT " + draft + "\nTEMPLATE t\n", "TEMPLATE t\nPARAMETER temperature 0.7\nPARAMETER top_k 20\n",
			Options{Precision: recipe.Precision{Type: quantize.MXFP8, Draft: quantize.Int4}}, 1},
		{"unquotable", qwen, "TEMPLATE \"x\n\"\"\"y'\nz\"\n", "", Options{}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := openStore(t)
			c.options.Version = "1.0.0"
			made := mustCreate(t, store, "m", parsed(t, "FROM "+c.from+"\n"+c.lines), c.options)
			text, notes := shown(t, store, "m")
			if c.notes >= 0 && text != "FROM m\n"+c.want {
				t.Error(cmp.Diff("FROM m\n"+c.want, text))
			}
			if c.notes >= 0 && len(notes) != c.notes {
				t.Errorf("notes %q", notes)
			}
			again := mustCreate(t, store, "again", parsed(t, text), Options{Version: "1.0.0"})
			if again.Digest != made.Digest {
				t.Errorf("digest %s, want %s; layers %v", again.Digest, made.Digest, mustResolve(t, store, "again").Image.Layers)
			}
		})
	}
}

func TestTexts(t *testing.T) {
	c := tiny(t, tinyConfig, 1)
	c.files["tokenizer_config.json"] = `{"chat_template": [{"name": "tool_use", "template": "tools"}, ` +
		`{"name": "default", "template": "shipped"}]}`
	dir := c.write(t, t.TempDir())
	store := openStore(t)
	mustCreate(t, store, "a", from(dir), Options{})
	if got := mustTexts(t, store, "a"); got.Template != "shipped" || got.System != "" || got.Licenses != nil ||
		got.Parameters != nil {
		t.Errorf("%+v", got)
	}
	c.files["chat_template.jinja"] = "file"
	mustCreate(t, store, "b", from(c.write(t, dir)), Options{})
	if got := mustTexts(t, store, "b").Template; got != "file" {
		t.Errorf("template %q", got)
	}
	mustCreate(t, store, "c",
		parsed(t, "FROM b\nTEMPLATE own\nSYSTEM s\nMESSAGE user hi\nPARAMETER stop a\nPARAMETER stop b"), Options{})
	got := mustTexts(t, store, "c")
	if got.Template != "own" || got.System != "s" ||
		!slices.Equal(got.Messages, []settings.Message{{Role: "user", Content: "hi"}}) {
		t.Errorf("%+v", got)
	}
	// Lines replace the image's settings, and empty ones remove them.
	mustCreate(t, store, "d", parsed(t, "FROM c\nTEMPLATE \"\"\nSYSTEM other\nMESSAGE user a\nMESSAGE assistant b"),
		Options{})
	got = mustTexts(t, store, "d")
	if got.Template != "file" || got.System != "other" || len(got.Messages) != 2 || len(got.Parameters) != 1 {
		t.Errorf("%+v", got)
	}
	if r := mustCreate(t, store, "e", parsed(t, "FROM c\nTEMPLATE \"\"\nSYSTEM \"\""), Options{}); r.Digest == "" ||
		mustTexts(t, store, "e").System != "" {
		t.Errorf("%+v", mustTexts(t, store, "e"))
	}
}

func TestRequires(t *testing.T) {
	for _, c := range []struct {
		requires, version string
		refused, warned   bool
	}{
		{"0.19.0", "0.19.0", false, false}, {"0.19", "v0.19.0", false, false}, {"0.19.1", "0.19.0", true, false},
		{"1", "0.99.99", true, false}, {"0.9.0", "0.10.0", false, false}, {"0.10.0", "0.9.0", true, false},
		{"00000000000000000000000000001.0.0", "99999999999999999999999999999.0.0", false, false},
		{"0.2.0-rc1", "0.1.0", true, false},
		{"0.2", "dev", false, true}, {"0.2", "", false, true},
	} {
		f := parsed(t, "FROM x\nREQUIRES "+c.requires)
		warnings, err := checkVersion(f, f.Commands[1], c.version)
		if (err != nil) != c.refused || (len(warnings) > 0) != c.warned {
			t.Errorf("%s of %s: %v, %q", c.requires, c.version, err, warnings)
		}
	}
}

// A source image that requires a later version is rejected.
func TestRequiresOfImage(t *testing.T) {
	store := openStore(t)
	mustCreate(t, store, "new", parsed(t, "FROM "+tiny(t, tinyConfig, 1).write(t, t.TempDir())+"\nREQUIRES 2.0"),
		Options{Version: "2.1"})
	_, err := Create(t.Context(), store, modelName(t, "x"), parsed(t, "FROM new"), Options{Version: "1.9"})
	if err == nil || err.Error() != "new:latest requires ingot 2.0, and this is 1.9: update it" {
		t.Errorf("error %v", err)
	}
	mustCreate(t, store, "x", parsed(t, "FROM new"), Options{Version: "2.0"})
	if got := mustTexts(t, store, "x").Requires; got != "2.0" {
		t.Errorf("requires %q", got)
	}
}

// The parsers named by package arch exist.
func TestFamiliesHaveParsers(t *testing.T) {
	modelTypes := []string{"deepseek_v3", "nemotron_h"} // families without a file in package arch
	for _, a := range arch.All() {
		if a.Chat != nil {
			modelTypes = append(append(modelTypes, a.ModelType), a.Aliases...)
		}
	}
	for _, modelType := range modelTypes {
		d, err := arch.DetectFamily([]byte(`{"model_type":"` + modelType + `"}`))
		if err != nil || !parse.Known(d.Parser) {
			t.Errorf("%s: parser %q, %v", modelType, d.Parser, err)
		}
		tools, thinking := parse.Abilities(d.Parser)
		if tools != slices.Contains(d.Capabilities, arch.CapTools) ||
			thinking != slices.Contains(d.Capabilities, arch.CapThinking) {
			t.Errorf("%s: capabilities %q, its parser has tools %v, thinking %v", modelType, d.Capabilities, tools, thinking)
		}
	}
}

func TestUnknownParserWarns(t *testing.T) {
	dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
	r := mustCreate(t, openStore(t), "x", parsed(t, "FROM "+dir+"\nPARSER nosuch\n"), Options{})
	if !slices.ContainsFunc(r.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "Modelfile:2:1: this version does not know the parser (known: apertus, cohere, ")
	}) {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// Every parameter value survives a round trip.
func TestParameterValues(t *testing.T) {
	for _, p := range parameters.All() {
		if p.Deprecated {
			continue
		}
		value := map[parameters.Type]string{parameters.Int: "1", parameters.Float: "0.25", parameters.Bool: "false",
			parameters.Strings: "a b"}[p.Type]
		params, _, err := parsed(t, "FROM x\nPARAMETER "+p.Name+" "+value).Params()
		if err != nil {
			t.Fatal(err)
		}
		data, err := manifest.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		back, err := settings.DecodeParameters(data)
		if err != nil {
			t.Fatal(err)
		}
		f, notes := (&settings.Texts{Parameters: back}).Modelfile("x")
		if len(notes) != 0 || len(f.Commands) != 2 || f.Commands[1].Key != p.Name || f.Commands[1].Value != value {
			t.Errorf("%s: %+v, %q", p.Name, f.Commands, notes)
		}
	}
}
