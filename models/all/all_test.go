package all

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/models"
)

const root = "../.."

func exists(path ...string) bool {
	_, err := os.Stat(filepath.Join(append([]string{root}, path...)...))
	return err == nil
}

// Every model type of arch has a model, and every model a type. A failure names the file to write.
func TestEveryTypeHasAModel(t *testing.T) {
	runs, drafts := models.Types(), models.DraftTypes()
	for _, a := range arch.All() {
		name := a.ModelType
		file := filepath.Join("models", name, name+".go")
		registered := runs
		if a.DraftOnly {
			registered = drafts
		}
		switch {
		case !exists("arch/types", name+".go"):
			t.Errorf("model type %s is not registered by arch/types/%s.go", name, name)
		case slices.Contains(registered, name):
		case !exists(file):
			t.Errorf("model type %s has no model: set Plain in arch/types/%s.go, or write %s", name, name, file)
		case slices.Contains(runs, name) || slices.Contains(drafts, name):
			t.Errorf("%s and arch/types/%s.go disagree on whether %s can only draft", file, name, name)
		default:
			t.Errorf("model type %s: register it in %s and import the package in models/all/all.go", name, file)
		}
	}
	folders, err := os.ReadDir(filepath.Join(root, "models"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		shared := slices.Contains([]string{"all", "decoders", "latent", "modeltest", "nn", "shard"}, f.Name())
		if f.IsDir() && !shared && !slices.Contains(runs, f.Name()) && !slices.Contains(drafts, f.Name()) {
			t.Errorf("models/%s registers no model type of its name: import it in models/all/all.go", f.Name())
		}
	}
	for _, name := range slices.Concat(runs, drafts) {
		if !slices.ContainsFunc(arch.All(), func(a arch.Arch) bool { return a.ModelType == name }) {
			t.Errorf("models/%s registers model type %s, which arch does not know: write arch/types/%s.go", name, name, name)
		}
	}
}

// Every model type has checkpoints of random weights with goldens, which TestReference runs, and tables of published
// tensors. Their configurations name the type everywhere alike, and have a state for each layer, or as many for each.
func TestEveryTypeIsTested(t *testing.T) {
	fixtures := detected(t, "testdata/models/*/config.json", func(b []byte) []byte { return b })
	tables := detected(t, "arch/testdata/tables/*.json", func(b []byte) []byte {
		var table struct{ Config json.RawMessage }
		if err := json.Unmarshal(b, &table); err != nil {
			t.Fatal(err)
		}
		return table.Config
	})
	for _, a := range arch.All() {
		name := a.ModelType
		if !fixtures[name] {
			t.Errorf("no checkpoint in testdata/models is of type %s: write its generator in testdata/gen/models", name)
		}
		if !tables[name] {
			t.Errorf("no table in arch/testdata/tables is of type %s: add it to testdata/gen/arch/tables.py", name)
		}
		if test := filepath.Join("models", name, name+"_test.go"); a.DraftOnly && !exists(test) {
			t.Errorf("model type %s only drafts, and is not compared with its reference: write %s", name, test)
		}
	}
}

// A checkpoint of testdata/models is named after its type, so that TestReference runs it. The others are named in the
// tests that run them.
func TestCheckpointsAreNamedAfterTheirType(t *testing.T) {
	named := []string{"demo", "long-phi3", "long-phimoe", "long-qwen3-dynamic", "long-qwen3-longrope"}
	files, err := filepath.Glob(filepath.Join(root, "testdata/models/*/config.json"))
	if err != nil {
		t.Fatal(err)
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
		name, modelType := filepath.Base(filepath.Dir(file)), m.Facts().ModelType
		if !strings.HasPrefix(name, modelType+"-") && !slices.Contains(named, name) {
			t.Errorf("testdata/models/%s is of type %s: no test runs it; begin its name with %s-", name, modelType, modelType)
		}
	}
}

// detected returns the model types of the configurations in the files that match pattern.
func detected(t *testing.T, pattern string, config func(file []byte) []byte) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files (%v)", pattern, err)
	}
	types := map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := arch.Detect(config(b))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name := m.Facts().ModelType
		types[name] = true
		if table := m.Table().ModelType; table != name {
			t.Errorf("%s: the table is of type %s, the facts of %s", file, table, name)
		}
		if n := len(m.State()); (n == 0 || n%int(m.Facts().Layers) != 0) && !draftOnly(name) {
			t.Errorf("%s: %d states for %d layers", file, n, m.Facts().Layers)
		}
	}
	return types
}

func draftOnly(modelType string) bool {
	return slices.ContainsFunc(arch.All(), func(a arch.Arch) bool { return a.ModelType == modelType && a.DraftOnly })
}
