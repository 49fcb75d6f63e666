package arch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/arch/types"
)

// checkpoint is a file of testdata/gen/arch/tables.py: the contents of a tiny model's checkpoint.
type checkpoint struct {
	Name    string
	Config  json.RawMessage   `json:"config"`
	Tensors map[string]string `json:"tensors"` // type and dimensions
}

func checkpoints(t testing.TB) []checkpoint {
	t.Helper()
	all, err := readCheckpoints()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var readCheckpoints = sync.OnceValues(func() ([]checkpoint, error) {
	files, err := filepath.Glob("testdata/tables/*.json")
	if err == nil && len(files) == 0 {
		err = errors.New("no tables")
	}
	var out []checkpoint
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		c := checkpoint{Name: strings.TrimSuffix(filepath.Base(f), ".json")}
		if err := json.Unmarshal(data, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		out = append(out, c)
	}
	return out, err
})

func (c checkpoint) have(t testing.TB) []table.TensorInfo {
	t.Helper()
	var out []table.TensorInfo
	for name, spec := range c.Tensors {
		fields := strings.Fields(spec)
		h := table.TensorInfo{Name: name, DType: fields[0], Shape: []int64{}, File: "model.safetensors"}
		for _, f := range fields[1:] {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			h.Shape = append(h.Shape, n)
		}
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b table.TensorInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (c checkpoint) detect(t testing.TB) arch.Model {
	t.Helper()
	m, err := arch.Detect(c.Config)
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return m
}

func TestCheckpointsFit(t *testing.T) {
	for _, c := range checkpoints(t) {
		t.Run(c.Name, func(t *testing.T) {
			m := c.detect(t)
			tab, have := m.Table(), c.have(t)
			match, err := tab.Check(have)
			if err != nil {
				t.Fatal(err)
			}
			shapes := map[string][]int64{}
			for _, h := range have {
				shapes[h.Name] = h.Shape
			}
			for _, tensor := range match.Tensors {
				checkPieces(t, tensor, shapes)
			}
			for _, d := range match.Dropped {
				if d.Reason == "" {
					t.Errorf("%s is dropped without a reason", d.Name)
				}
			}
			for _, s := range tab.Specs {
				if tab.PartOf(s.Name) == "mtp" {
					continue
				}
				if !s.Optional && !slices.ContainsFunc(match.Tensors, func(m table.Matched) bool { return m.Spec.Name == s.Name }) {
					t.Errorf("%s is nowhere", s.Name)
				}
			}
			// The imported tensors are a valid checkpoint themselves.
			var again []table.TensorInfo
			for _, tensor := range match.Tensors {
				dtype := "BF16"
				if tensor.Spec.Types != nil {
					dtype = tensor.Spec.Types[0]
				}
				again = append(again, table.TensorInfo{Name: tensor.Spec.Name, DType: dtype, Shape: tensor.Spec.Shape})
			}
			second, err := tab.Check(again)
			if err != nil || len(second.Tensors) != len(match.Tensors) || len(second.Dropped) > 0 {
				t.Fatalf("the image's tensors: %v, %d of %d, %d dropped", err, len(second.Tensors), len(match.Tensors),
					len(second.Dropped))
			}
			for _, tensor := range second.Tensors {
				if tensor.Make != table.Copy || tensor.Sources[0] != tensor.Spec.Name {
					t.Errorf("%s would be made from %v by %s again", tensor.Spec.Name, tensor.Sources, tensor.Make)
				}
			}
		})
	}
}

// checkPieces verifies a tensor's pieces: they yield all its elements, use no source element twice, and use every
// source element unless rows are gathered.
func checkPieces(t *testing.T, m table.Matched, shapes map[string][]int64) {
	t.Helper()
	total := int64(0)
	seen := make([]map[int64]bool, len(m.Sources))
	for p := range m.Pieces() {
		if seen[p.Source] == nil {
			seen[p.Source] = map[int64]bool{}
		}
		size := table.Elements(shapes[m.Sources[p.Source]])
		if p.Begin < 0 || p.Count <= 0 || p.Begin+p.Count > size || seen[p.Source][p.Begin] {
			t.Errorf("%s: piece %+v of a source of %d elements, again: %v", m.Spec.Name, p, size, seen[p.Source][p.Begin])
		}
		seen[p.Source][p.Begin] = true
		total += p.Count
	}
	if want := table.Elements(m.Spec.Shape); total != want {
		t.Errorf("%s: pieces give %d elements, want %d", m.Spec.Name, total, want)
	}
	all := int64(0)
	for _, s := range m.Sources {
		all += table.Elements(shapes[s])
	}
	if m.Make != table.Gather && all != total {
		t.Errorf("%s: pieces give %d elements of %d", m.Spec.Name, total, all)
	}
	isBias := strings.HasSuffix(m.Spec.Name, ".bias") // which is never quantized
	if cols := m.Spec.Shape[len(m.Spec.Shape)-1]; m.Make != table.Reshape && len(m.Spec.Shape) > 1 && !isBias {
		for p := range m.Pieces() {
			if p.Begin%cols != 0 || p.Count%cols != 0 {
				t.Errorf("%s: piece %+v is not of whole rows of %d", m.Spec.Name, p, cols)
			}
		}
	}
}

// Each imported tensor is required, its shape is checked, and no other tensor is accepted.
func TestMismatchedCheckpoints(t *testing.T) {
	for _, c := range checkpoints(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			tab, have := c.detect(t).Table(), c.have(t)
			match, err := tab.Check(have)
			if err != nil {
				t.Fatal(err)
			}
			needed, canonical := map[string]bool{}, map[string]string{}
			for _, m := range match.Tensors {
				for _, s := range m.Sources {
					needed[s] = !m.Spec.Optional
					canonical[s] = m.Spec.Name
				}
			}
			dropped := 0
			for i, h := range have {
				if _, imported := needed[h.Name]; !imported {
					if dropped++; dropped > 5 {
						continue // tensors of towers are alike; one is enough
					}
				}
				_, err := tab.Check(slices.Delete(slices.Clone(have), i, i+1))
				wantTableError(t, err, needed[h.Name], "without "+h.Name, h.Name, canonical[h.Name])

				wrong := slices.Clone(have)
				wrong[i].Shape = append([]int64{3}, h.Shape...)
				_, err = tab.Check(wrong)
				_, imported := needed[h.Name]
				wantTableError(t, err, imported, "with another shape of "+h.Name, h.Name)
			}
			for _, name := range []string{"x", "model.layers.0.self_attn.x_proj.weight", have[0].Name + ".extra"} {
				_, err := tab.Check(append(slices.Clone(have), table.TensorInfo{Name: name, DType: "BF16", Shape: []int64{4}}))
				// A dropped tower may hold any tensors.
				if _, dropped := tab.Names().Drops(name); !dropped {
					wantTableError(t, err, true, "with "+name, name)
				}
			}
		})
	}
}

// wantTableError checks that an error names the tensor in the checkpoint or in the table.
func wantTableError(t *testing.T, err error, want bool, what string, names ...string) {
	t.Helper()
	if !want {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	var te *table.TableError
	if !errors.As(err, &te) {
		t.Errorf("%s: error %v, want a table error", what, err)
		return
	}
	if !slices.ContainsFunc(te.Problems, func(p table.Problem) bool { return namesOne(p.Tensor, names) }) {
		t.Errorf("%s: %v does not name it", what, err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: more than one line: %q", what, err)
	}
}

// namesOne reports whether name is one of names, ignoring the prefix of its part.
func namesOne(name string, names []string) bool {
	for _, prefix := range append([]string{"visual."}, config.TextPrefixes...) {
		rest, ok := strings.CutPrefix(name, prefix)
		if ok && slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, rest) }) {
			return true
		}
	}
	return false
}

// Both key styles describe the same model.
func TestPublishedConfigsAreEquivalent(t *testing.T) {
	byName := map[string]checkpoint{}
	for _, c := range checkpoints(t) {
		byName[c.Name] = c
	}
	pairs := 0
	for name, c := range byName {
		saved, ok := byName[strings.TrimSuffix(name, "-published")]
		if !ok || saved.Name == name {
			continue
		}
		pairs++
		a, b := saved.detect(t), c.detect(t)
		if name == "gemma3-published" {
			// Only the published configuration scales rope; the saved one does not.
			b.(*types.Gemma3).Rope = a.(*types.Gemma3).Rope
		}
		sameConfig(t, name, a, b)
	}
	if pairs < 10 {
		t.Errorf("only %d pairs", pairs)
	}
}

func TestGatheredRows(t *testing.T) {
	data, err := os.ReadFile("testdata/gathered_rows.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string]json.RawMessage
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	m, err := arch.Detect(golden["config"])
	if err != nil {
		t.Fatal(err)
	}
	hidden := m.Facts().Hidden
	for _, s := range m.Table().Specs {
		name, ok := strings.CutPrefix(s.Name, "model.layers.0.linear_attn.")
		if !ok || len(s.Forms) == 0 {
			continue
		}
		var want, got []int64
		if err := json.Unmarshal(golden[strings.TrimSuffix(name, ".weight")], &want); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for p := range (table.Matched{Repeat: 1, Runs: s.Forms[0].Runs}).Pieces() {
			for row := p.Begin / hidden; row < (p.Begin+p.Count)/hidden; row++ {
				got = append(got, row)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: rows %v, want %v", name, got, want)
		}
	}
}

// sameConfig compares two configurations, ignoring what a key style cannot express.
func sameConfig(t *testing.T, name string, a, b arch.Model) {
	t.Helper()
	if d := cmp.Diff(a, b, cmpopts.IgnoreFields(config.Common{}, "EOS", "BOS")); d != "" {
		t.Errorf("%s: %s", name, d)
	}
}
