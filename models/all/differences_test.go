package all

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
)

// differences are the columns of docs/differences.md, and what is in them: phrases, each with the question whether a
// model has that difference.
var differences = []struct {
	column  string
	phrases []phrase
}{
	{"Norms", []phrase{
		{"LayerNorm", func(m config.Decoder) bool { return m.Norm.LayerNorm }},
		{"without biases", func(m config.Decoder) bool { return m.Norm.LayerNorm && !m.Norm.Bias && !m.Norm.Unweighed }},
		{"without weights", func(m config.Decoder) bool { return m.Norm.Unweighed }},
		{"weights are offsets from 1", func(m config.Decoder) bool { return m.Norm.Offset }},
		{"one for attention and network", func(m config.Decoder) bool {
			return m.Names().Mixer != "" && m.Names().Mixer == m.Names().Network
		}},
		{"after attention and network only", func(m config.Decoder) bool { return m.Names().Mixer == "" }},
		{"also after attention and network", func(m config.Decoder) bool {
			return m.Names().Mixer != "" && m.Names().MixerPost != ""
		}},
		{"of query and key heads", heads(decoder.Head)},
		{"of query and key heads, each with its own weights", heads(decoder.OwnHead)},
		{"of all queries and of all keys of a row", heads(decoder.Row)},
		{"these come after the rope", func(m config.Decoder) bool { return m.HeadNorms.AfterRope }},
	}},
	{"Positions", []phrase{
		{"interleaved rope", func(m config.Decoder) bool { return m.Interleaved }},
		{"partial rope", func(m config.Decoder) bool { return rotates(m, true) && m.Rope.PartialFactor != 1 }},
		{"no rope", func(m config.Decoder) bool { return !rotates(m, true) }},
		{"no rope in some layers", func(m config.Decoder) bool { return rotates(m, true) && rotates(m, false) }},
		{"sliding layers have their own rope", func(m config.Decoder) bool { return m.SlidingRope != nil }},
		{"learned vectors", func(m config.Decoder) bool { return m.Positions > 0 }},
		{"queries grow with the position", func(m config.Decoder) bool { return m.Growth.Beta != 0 }},
	}},
	{"Attention", []phrase{
		{"window", func(m config.Decoder) bool { return m.Window > 0 && !slices.Contains(m.Sliding, false) }},
		{"window in some layers", func(m config.Decoder) bool { return m.Window > 0 && slices.Contains(m.Sliding, false) }},
		{"biases of queries, keys and values", func(m config.Decoder) bool { return m.AttentionBias }},
		{"bias of the output", func(m config.Decoder) bool { return m.OutputBias }},
		{"its own scale", func(m config.Decoder) bool { return m.AttentionScale != 0 }},
		{"clipped queries, keys and values", func(m config.Decoder) bool { return m.Clip > 0 }},
		{"sinks", func(m config.Decoder) bool { return slices.Contains(m.Sinks, true) }},
		{"gated output", func(m config.Decoder) bool { return m.Gate != "" }},
	}},
	{"Network", []phrase{
		{"experts", func(m config.Decoder) bool { return m.Mixture != nil }},
		{"shared experts", func(m config.Decoder) bool { return m.Mixture != nil && m.Mixture.Shared > 0 }},
		{"sigmoid router", func(m config.Decoder) bool { return m.Mixture != nil && m.Mixture.Router.Sigmoid }},
		{"dense layers in between", func(m config.Decoder) bool {
			return m.Mixture != nil && slices.Contains(m.Mixture.Sparse, false)
		}},
		{"no gate", func(m config.Decoder) bool { return m.Plain != decoder.Plain{} }},
		{"GELU", func(m config.Decoder) bool { return strings.HasPrefix(m.Activation, "gelu") }},
		{"ReLU", func(m config.Decoder) bool { return m.Activation == "relu" }},
		{"squared ReLU", func(m config.Decoder) bool { return m.Activation == "relu2" }},
		{"biases", func(m config.Decoder) bool { return m.MLPBias }},
		{"parallel to attention", func(m config.Decoder) bool { return m.Parallel }},
	}},
	{"Scales and head", []phrase{
		{"scaled embeddings", func(m config.Decoder) bool { return m.EmbeddingScale != 0 }},
		{"scaled residuals", func(m config.Decoder) bool { return m.ResidualScale != 0 }},
		{"scaled logits", func(m config.Decoder) bool { return m.LogitScale != 0 }},
		{"capped logits", func(m config.Decoder) bool { return m.LogitCap != 0 }},
		{"bias of the head", func(m config.Decoder) bool { return m.HeadBias }},
	}},
}

type phrase struct {
	text string
	has  func(m config.Decoder) bool
}

// optional are differences that Llama's configuration has, too. Types are listed that always have them.
var optional = []string{"biases of queries, keys and values", "bias of the output", "biases"}

func heads(over decoder.Over) func(config.Decoder) bool {
	return func(m config.Decoder) bool { return m.HeadNorms.Q != "" && m.HeadNorms.Over == over }
}

// rotates reports whether some layer has the rope, or has none.
func rotates(m config.Decoder, has bool) bool {
	for i := range m.Layers {
		if m.Rotates(i) == has {
			return true
		}
	}
	return false
}

// described returns the descriptions of the configurations in the test data, by type.
func described(t *testing.T) map[string][]config.Decoder {
	t.Helper()
	models := map[string][]config.Decoder{}
	files, err := filepath.Glob(filepath.Join(root, "testdata/models/*/config.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no checkpoints (%v)", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := arch.Detect(b)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d, ok := m.(arch.Described); ok {
			name := m.Facts().ModelType
			models[name] = append(models[name], d.Decoder())
		}
	}
	return models
}

// docs/differences.md says what each description says.
func TestPageOfDifferences(t *testing.T) {
	models := described(t)
	page := filepath.Join(root, "docs", "differences.md")
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	var rows strings.Builder
	rows.WriteString("| Model type |")
	for _, d := range differences {
		rows.WriteString(" " + d.column + " |")
	}
	rows.WriteString(" Code of its own |\n|---" + strings.Repeat("|---", len(differences)) + "|---|\n")
	for _, a := range arch.All() {
		list := models[a.ModelType]
		if list == nil {
			continue
		}
		fmt.Fprintf(&rows, "| `%s` |", a.ModelType)
		for _, d := range differences {
			rows.WriteString(" " + cell(list, d.phrases) + " |")
		}
		if file := filepath.Join("models", a.ModelType, a.ModelType+".go"); exists(file) {
			fmt.Fprintf(&rows, " [%s](../models/%[1]s/%[1]s.go)", a.ModelType)
		}
		rows.WriteString(" |\n")
	}
	want := before + begin + rows.String() + end + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(b) != want {
		t.Errorf("%s differs from the descriptions: run `go test ./models/all -run Page -update`", page)
	}
}

// cell lists the differences that models of a type have. Those that only some have are in parentheses.
func cell(models []config.Decoder, phrases []phrase) string {
	var texts []string
	for _, p := range phrases {
		n := 0
		for _, m := range models {
			if p.has(m) {
				n++
			}
		}
		switch {
		case n == len(models):
			texts = append(texts, p.text)
		case n > 0 && !slices.Contains(optional, p.text):
			texts = append(texts, "("+p.text+")")
		}
	}
	return strings.Join(texts, "; ")
}

// What one type alone has is not a field of descriptions: it stays in the type's package below models.
func TestFieldsOfDescriptionsAreShared(t *testing.T) {
	users := map[string]map[string]bool{}
	var count func(modelType, path string, v reflect.Value)
	count = func(modelType, path string, v reflect.Value) {
		for i := range v.NumField() {
			name, field := path+v.Type().Field(i).Name, v.Field(i)
			if users[name] == nil {
				users[name] = map[string]bool{}
			}
			if !field.IsZero() {
				users[name][modelType] = true
			}
			if field.Kind() == reflect.Struct {
				count(modelType, name+".", field)
			}
		}
	}
	for modelType, list := range described(t) {
		for _, m := range list {
			count(modelType, "", reflect.ValueOf(m.Description))
		}
	}
	for field, types := range users {
		if len(types) < 2 {
			t.Errorf("arch/decoder: %d model types use %s of Description; it belongs into a package below models",
				len(types), field)
		}
	}
}
