package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/table"
)

// Every tensor of every table says how it divides over ranks, and each block ends in a sum of what its ranks computed.
func TestSplits(t *testing.T) {
	models := map[string]arch.Model{}
	for _, c := range checkpoints(t) {
		models[c.Name] = c.detect(t)
	}
	files, err := filepath.Glob("../testdata/models/*/config.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no checkpoints", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if models[file], err = arch.Detect(b); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			table := m.Table()
			for _, s := range table.Specs {
				checkSplit(t, s)
			}
			checkSums(t, table)
		})
	}
}

func checkSplit(t *testing.T, s table.Spec) {
	t.Helper()
	by := s.Split
	bad := func(format string, args ...any) { t.Errorf(s.Name+": "+format, args...) }
	if by.Axis < 0 || by.Axis >= len(s.Shape) {
		bad("split along axis %d of %v", by.Axis, s.Shape)
		return
	}
	sections := by.Sections
	if sections == nil {
		sections = []int64{s.Shape[by.Axis]}
	}
	var sum int64
	for _, n := range sections {
		if sum += n; by.Parts > 0 && n%by.Parts != 0 {
			bad("%d of %v are not %d equal parts", n, s.Shape, by.Parts)
		}
		if by.Within > 0 && !by.Shared && n%(by.Parts*by.Within) != 0 {
			bad("%d of %v are not %d times %d equal parts", n, s.Shape, by.Parts, by.Within)
		}
	}
	if sum != s.Shape[by.Axis] {
		bad("sections %v of %v", by.Sections, s.Shape)
	}
	var ok bool
	switch by.Kind {
	case table.Replicated, table.RankZero:
		ok = by.Axis == 0 && by.Parts == 0
	case table.ByToken:
		ok = by.Axis == 0 && by.Parts == 0 && len(s.Shape) == 2
	case table.Column, table.ByExpert:
		ok = by.Axis == 0 && by.Parts == 0
	case table.Row:
		ok = by.Axis == 1 && len(s.Shape) == 2 && by.Parts == 0
	case table.HeadGroup:
		ok = by.Parts > 0
	}
	if !ok {
		bad("split %+v of %v", by, s.Shape)
	}
}

// lowRank matches the end of the name of a second matrix of a product of low rank, whose outputs are added to those of
// a block's matrix, or are as many.
var lowRank = regexp.MustCompile(`(_lora\.lora|_adapter_list)\.\d+(\.1)?$`)

// checkSums checks that the blocks whose matrices have divided outputs also have one with divided inputs, of the same
// parts, and that a bias is added once.
func checkSums(t *testing.T, tab table.Table) {
	t.Helper()
	type block struct{ out, in []table.Spec }
	blocks := map[string]*block{}
	for _, s := range tab.Specs {
		if strings.HasSuffix(s.Name, "lm_head.weight") || s.Split.Kind == table.ByToken ||
			strings.HasSuffix(s.Name, ".ngram_embedding.weight") {
			continue // the tokens are divided, or the rows that hashes choose
		}
		layer, ok := strings.CutSuffix(s.Name, ".bias")
		if ok {
			i := slices.IndexFunc(tab.Specs, func(w table.Spec) bool { return w.Name == layer+".weight" })
			want := table.Outputs.Kind // of a head that is the embedding
			if i >= 0 {
				want = tab.Specs[i].Split.Bias().Kind
			}
			if i < 0 && layer != "lm_head" || s.Split.Kind != want {
				t.Errorf("%s is split as %+v", s.Name, s.Split)
			}
			continue
		}
		whole := s.Split.Kind == table.Replicated || s.Split.Kind == table.RankZero
		if len(s.Shape) != 2 || whole || strings.HasSuffix(s.Name, "_gate_bias") {
			continue // the gates of recurrent_gemma have a matrix and a vector for each head
		}
		layer = strings.TrimSuffix(s.Name, ".weight")
		name := lowRank.ReplaceAllString(layer, "")
		name = name[:strings.LastIndex(name, ".")]
		if blocks[name] == nil {
			blocks[name] = &block{}
		}
		if b := blocks[name]; s.Split.Axis == 0 {
			b.out = append(b.out, s)
		} else {
			b.in = append(b.in, s)
		}
	}
	for name, b := range blocks {
		if len(b.out) == 0 || len(b.in) != 1 {
			t.Errorf("%s: %d matrices have divided outputs, %d divided inputs", name, len(b.out), len(b.in))
			continue
		}
		in := b.in[0]
		for _, out := range b.out {
			same := out.Split.Kind == in.Split.Kind && out.Split.Parts == in.Split.Parts &&
				out.Split.Within == in.Split.Within
			if in.Split.Kind == table.Row {
				same = out.Split.Kind == table.Column && out.Shape[0] == in.Shape[1]
			}
			if !same {
				t.Errorf("%s is split as %+v, but %s as %+v", out.Name, out.Split, in.Name, in.Split)
			}
		}
	}
}
