package arch_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

var update = flag.Bool("update", false, "write testdata/behaviour.json")

// namesOf returns the values of model_type that a type goes by.
func namesOf(a arch.Arch) []string { return append([]string{a.ModelType}, a.Aliases...) }

// digest shortens what a type does to a line.
func digest(v any) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%v", v)))[:12]
}

// writtenAs says how the tensors of a model are written under a name of its type and in a style.
func writtenAs(m arch.Model, name string, style table.Style) string {
	tab := m.Table()
	var have []table.TensorInfo
	for _, s := range tab.Specs {
		have = append(have, table.TensorInfo{Name: s.Name, DType: "BF16", Shape: s.Shape})
	}
	written, err := tab.Write(have, table.WriteOptions{Style: style, Published: arch.Published(name)})
	lines := []string{fmt.Sprint(err)}
	for _, w := range written {
		lines = append(lines, fmt.Sprint(w.Name, w.Shape, w.Transposed, w.From))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// checkpointsOf returns the checkpoints of a type: those of testdata/tables, and those of the repository.
func checkpointsOf(t testing.TB, a arch.Arch) []checkpoint {
	t.Helper()
	byType, err := readByType()
	if err != nil || len(byType[a.ModelType]) == 0 {
		t.Fatalf("%s: no checkpoint in testdata/tables (%v)", a.ModelType, err)
	}
	return byType[a.ModelType]
}

var readByType = sync.OnceValues(func() (map[string][]checkpoint, error) {
	all, err := readCheckpoints()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob("../testdata/models/*/config.json")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		// Variants that testdata/tables lacks.
		if name := filepath.Base(filepath.Dir(f)); strings.HasSuffix(name, "-saved") ||
			bytes.Contains(data, []byte("text_config")) {
			all = append(all, checkpoint{Name: name + " of testdata/models", Config: data})
		}
	}
	byType := map[string][]checkpoint{}
	for _, c := range all {
		m, err := arch.Detect(c.Config)
		if err != nil {
			return nil, err
		}
		byType[m.Facts().ModelType] = append(byType[m.Facts().ModelType], c)
	}
	return byType, nil
})

// named is a file of GGUF that says its architecture and no more.
type named string

func (n named) Value(key string) (any, bool) {
	if key == "general.architecture" {
		return string(n), true
	}
	return nil, false
}
func (n named) Shape(string) ([]int64, bool)     { return nil, false }
func (n named) Floats(string) ([]float32, error) { return nil, gguf.ErrMetadata }

// record is what a type does, by what is tried.
type record map[string][]string

func (r record) add(what string, v ...any) { r[what] = append(r[what], fmt.Sprintln(v...)) }

// aspects are what is recorded of a type, what is fast first.
var aspects = []func(t testing.TB, a arch.Arch, r record){
	// By which names, classes and files it is found, and which chat format these reveal.
	func(t testing.TB, a arch.Arch, r record) {
		for _, name := range namesOf(a) {
			d, err := arch.DetectFamily(fmt.Appendf(nil, `{"model_type":%q,"vision_config":{"a":1}}`, name))
			_, refused := arch.Detect(fmt.Appendf(nil, `{"model_type":%q,"architectures":["Other"]}`, name))
			r.add("family of "+name, d, err, refused)
		}
		for _, class := range a.Architectures {
			d, err := arch.DetectFamily(fmt.Appendf(nil, `{"architectures":[%q]}`, class))
			r.add("classes", class, d, err)
		}
		if a.Chat != nil {
			for _, mark := range a.Chat.Marks {
				d, err := arch.DetectFamily(fmt.Appendf(nil, `{"architectures":[%q]}`, mark))
				r.add("marks", mark, d, err)
			}
		}
		for _, g := range a.GGUF {
			found, err := arch.DetectGGUF(named(g.Architecture))
			r.add("files", g.Architecture, found.Config["model_type"], err != nil)
		}
	},
	// How a configuration is read.
	func(t testing.TB, a arch.Arch, r record) {
		c := checkpointsOf(t, a)[0]
		keys := triedKeys(a)
		for _, name := range namesOf(a) {
			r.add("keys of "+name, tryKeys(c, name, keys))
			as, err := arch.DetectAs(c.with("model_type", "another"), name)
			r.add("read as "+name, string(as.Config), err)
		}
		for _, class := range a.Architectures {
			r.add("read with "+class, read(c.with("architectures", []string{class})))
		}
		own := arch.ByName(a.ModelType)
		r.add("idle", slices.DeleteFunc(keys, func(key string) bool { return !arch.IsIdle(key, own) }))
	},
	// What is known of its models.
	func(t testing.TB, a arch.Arch, r record) {
		for _, c := range checkpointsOf(t, a) {
			m, err := arch.Detect(c.Config)
			if err != nil {
				r.add("refused", c.Name, err)
				continue
			}
			g, header, err := arch.GGUFOf(m)
			r.add("GGUF", c.Name, g.Architecture, header, err != nil)
			r.add("facts", "wide", arch.Wide(m), "equalizable", arch.Equalizable(m), "unread", arch.Unread(c.Config))
		}
	},
	// How its tensors are written.
	func(t testing.TB, a arch.Arch, r record) {
		for _, c := range checkpointsOf(t, a) {
			m, err := arch.Detect(c.Config)
			if err != nil {
				continue
			}
			for _, name := range namesOf(a) {
				for _, style := range []table.Style{table.HuggingFace, table.MLX, table.ForGGUF} {
					r.add(fmt.Sprintf("%s for %s", name, style), c.Name, writtenAs(m, name, style))
				}
			}
		}
	},
}

// read says how a configuration is read.
func read(config []byte) string {
	m, err := arch.Detect(config)
	fields, _ := json.Marshal(m)
	return fmt.Sprint(string(fields), err)
}

// with returns a configuration with another value of a key; nil = without it.
func (c checkpoint) with(key string, value any) []byte {
	var config map[string]json.RawMessage
	_ = json.Unmarshal(c.Config, &config) // it is an object
	if delete(config, key); value != nil {
		config[key], _ = json.Marshal(value)
	}
	text, _ := json.Marshal(config) // raw JSON always encodes
	return text
}

// records returns a type's record of each aspect.
func records(t testing.TB, a arch.Arch) (all []record) {
	for _, aspect := range aspects {
		r := record{}
		aspect(t, a, r)
		all = append(all, r)
	}
	return all
}

// tryKeys says what becomes of a configuration under a name of its type: as it is, without a key, and with a value that
// no key can have.
func tryKeys(c checkpoint, name string, keys []string) (lines []string) {
	c.Config = c.with("architectures", nil)
	c.Config = c.with("model_type", name)
	plain := read(c.Config)
	lines = append(lines, plain)
	for _, key := range keys {
		without, bad := read(c.with(key, nil)), read(c.with(key, [][]int{{}}))
		if bad != plain || without != plain {
			lines = append(lines, key, without, bad)
		}
	}
	return lines
}

// Exports, configurations and files of GGUF stay as they are. Run with -update after a change that is meant.
func TestBehaviour(t *testing.T) {
	const file = "testdata/behaviour.json"
	got := map[string]map[string]string{}
	for _, a := range arch.All() {
		got[a.ModelType] = map[string]string{}
		for _, r := range records(t, a) {
			for what, lines := range r {
				got[a.ModelType][what] = digest(lines)
			}
		}
	}
	text, err := json.MarshalIndent(got, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]string{}
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if diff := cmp.Diff(want[name], got[name]); diff != "" {
			t.Errorf("%s (-want, +got): %s", name, diff)
		}
	}
}

// triedKeys are the keys of config.json that a type says something about.
func triedKeys(a arch.Arch) (keys []string) {
	keys = append(keys, a.Names...)
	for _, f := range a.Fixed {
		keys = append(keys, f.Key)
	}
	for _, i := range a.Idle {
		keys = append(keys, i.Keys...)
	}
	for _, defaults := range a.Defaults {
		keys = append(keys, slices.Collect(maps.Keys(defaults))...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
