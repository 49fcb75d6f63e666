package arch_test

import (
	"slices"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/types"
)

// What embeddings of n-grams need follows from the configuration. The values are those of transformers 5.23, and the
// published table has 320,001,536 rows.
func TestNGrams(t *testing.T) {
	m, ok := publishedModel(t, "Qwen3.8-Flash-Next").(*types.Qwen4Exp)
	if !ok {
		t.Fatal("Qwen3.8-Flash-Next is no qwen4_exp")
	}
	g := m.NGrams
	if len(g.Tables) != 1 || g.Hashes() != 16 || g.Tail() != 9 || g.EOS != 248044 {
		t.Fatalf("%+v", g)
	}
	table := g.Tables[0]
	if want := []int64{23703573157769, 20109073645365, 8052911324071}; !slices.Equal(table.Multipliers, want) {
		t.Errorf("multipliers %v, want %v", table.Multipliers, want)
	}
	want := []int64{20000003, 20000023, 20000033, 20000047, 20000059, 20000063, 20000069, 20000077, 20000081, 20000093,
		20000107, 20000147, 20000153, 20000159, 20000161, 20000171}
	if table.Layer != 1 || !slices.Equal(table.Rows, want) || table.Total != 320_001_536 {
		t.Errorf("layer %d has %d rows, in parts %v, want %v", table.Layer, table.Total, table.Rows, want)
	}
	for _, n := range table.Multipliers {
		if last := int64(m.Vocab - 1); n*last/last != n {
			t.Errorf("%d overflows when multiplied by token %d", n, last)
		}
	}
}

// The tables of later layers go on with the primes of earlier ones, and have multipliers of their own.
func TestNGramsOfLayers(t *testing.T) {
	config := edited(t, "qwen4_exp", "text_config.layer_types", `["linear_attention","linear_attention"]`)
	m, err := arch.Detect(config)
	if err != nil {
		t.Fatal(err)
	}
	if m.(*types.Qwen4Exp).Index.Block != 0 {
		t.Error("a model without attention has an indexer")
	}
	both, err := arch.Detect(setKey(t, config, []string{"text_config", "ple_layer_ids"}, "[2,1,2]"))
	if err != nil {
		t.Fatal(err)
	}
	tables := both.(*types.Qwen4Exp).NGrams.Tables
	if len(tables) != 2 || tables[0].Layer != 0 || tables[1].Layer != 1 {
		t.Fatalf("%+v", tables)
	}
	if all := slices.Concat(tables[0].Rows, tables[1].Rows); !slices.Equal(all, []int64{31, 37, 41, 43, 47, 53, 59, 61}) {
		t.Errorf("rows %v", all)
	}
	if slices.Equal(tables[0].Multipliers, tables[1].Multipliers) {
		t.Error("both layers have the same multipliers")
	}
}
