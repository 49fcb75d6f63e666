package shard

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ingotml/ingot/arch"
)

// llama returns a model with the given number of layers.
func llama(t *testing.T, layers int) arch.Model {
	t.Helper()
	m, err := arch.Detect(fmt.Appendf(nil, `{"model_type":"llama","hidden_size":64,"intermediate_size":128,
		"num_hidden_layers":%d,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":96,
		"max_position_embeddings":512,"rms_norm_eps":1e-5,"rope_theta":10000}`, layers))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Spread balances the ranks, also where one of them is the slowest in any case.
func TestSpread(t *testing.T) {
	even := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	for _, c := range []struct {
		name    string
		cost    []float64
		ends    float64
		weights []float64
		want    Stages
	}{
		{"equal", even(8), 0, even(4), Stages{2, 2, 2, 2}},
		{"a remainder", even(7), 0, even(3), Stages{2, 2, 3}},
		{"a vocabulary", even(8), 2, even(2), Stages{3, 5}},
		{"a vocabulary larger than all parts", even(8), 6, even(4), Stages{1, 2, 2, 3}},
		{"fast and slow", even(10), 0, []float64{1, 4}, Stages{2, 8}},
		{"dear layers first", []float64{4, 4, 1, 1, 1, 1}, 0, even(3), Stages{1, 1, 4}},
		{"a layer each", even(3), 9, even(3), Stages{1, 1, 1}},
	} {
		got, err := Spread(llama(t, len(c.cost)), c.cost, c.ends, c.weights)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got, err := Even(llama(t, 7), 3); err != nil || !slices.Equal(got, Stages{2, 2, 3}) {
		t.Errorf("7 layers over 3 ranks: %v, %v", got, err)
	}
	for _, ranks := range []int{0, 4} {
		if _, err := Spread(llama(t, 3), even(3), 0, even(ranks)); !errors.Is(err, ErrRanks) {
			t.Errorf("3 layers over %d ranks: %v", ranks, err)
		}
	}
}
