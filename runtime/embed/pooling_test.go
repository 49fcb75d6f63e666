package embed

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParsePooling(t *testing.T) {
	for config, want := range map[string]string{
		`{"word_embedding_dimension":8,"pooling_mode_cls_token":false,` +
			`"pooling_mode_lasttoken":true,"include_prompt":true}`: "lasttoken",
		`{"pooling_mode_mean_tokens":true,"pooling_mode_max_tokens":true}`:      "max mean",
		`{"embedding_dimension":8,"pooling_mode":"mean","include_prompt":true}`: "mean",
		`{"pooling_mode":["lasttoken","cls"]}`:                                  "cls lasttoken",
		`{"pooling_mode_weightedmean_tokens":true}`:                             "weightedmean",
	} {
		modes, err := ParsePooling([]byte(config))
		var got []string
		for _, m := range modes {
			got = append(got, string(m))
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v; want %s", config, got, err, want)
		}
	}
	for config, want := range map[string]string{
		`{`:                                  "the JSON ends too early",
		`[]`:                                 "a JSON array, want an object",
		`{}`:                                 "no pooling mode",
		`{"pooling_mode":"attention"}`:       `"attention" is not supported`,
		`{"pooling_mode":7}`:                 "neither a name",
		`{"pooling_mode_mean_tokens":1}`:     `"pooling_mode_mean_tokens" is neither`,
		`{"pooling_mode_other_tokens":true}`: `"pooling_mode_other_tokens" is not supported`,
		`{"pooling_mode_mean_tokens":false}`: "no pooling mode",
	} {
		if _, err := ParsePooling([]byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}

func TestPoolingName(t *testing.T) {
	module := func(path, kind string) string {
		return `{"idx":0,"name":"0","path":"` + path + `","type":"` + kind + `"}`
	}
	first, norm := module("", "sentence_transformers.models.Transformer"),
		module("2_Normalize", "sentence_transformers.models.Normalize")
	for list, want := range map[string]string{
		first + "," + module("1_Pooling", "sentence_transformers.models.Pooling") + "," +
			norm: "1_Pooling/config.json",
		first + "," + module("p", "sentence_transformers.sentence_transformer.modules.pooling.Pooling"): "p/config.json",
	} {
		if got, err := PoolingConfig([]byte("[" + list + "]")); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", list, got, err, want)
		}
	}
	for list, want := range map[string]string{
		first: "it lists no Pooling module",
		first + "," +
			module("../p", "a.Pooling"): `"../p" is not a valid path`,
		module("p", "a.Pooling") + "," +
			module("q", "a.Pooling"): `"Pooling" is not supported`,
		module("p", "a.Pooling") + "," + module("2_Dense", "sentence_transformers.models.Dense"): `"Dense" is not supported`,
	} {
		if _, err := PoolingConfig([]byte("[" + list + "]")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", list, err, want)
		}
	}
}

// Rows arrive in chunks, and a reset discards them.
func TestPoolState(t *testing.T) {
	rows := []float32{3, 4, 1, -8, 5, 1} // three rows of two
	for mode, want := range map[Mode][]float64{
		First: {3, 4}, Last: {5, 1}, Max: {5, 4}, Mean: {3, -1}, MeanSqrt: {9, -3},
		Weighted: {20, -9},
	} {
		for _, cut := range []int{1, 2, 3} {
			p := &Vector{modes: []Mode{mode}}
			p.Add([]float32{100, 100}, 2)
			p.Reset()
			p.Add(rows[:2*cut], 2)
			if cut < 3 {
				p.Add(rows[2*cut:], 2)
			}
			got, err := p.Elements(0)
			length := math.Hypot(want[0], want[1])
			if err != nil || math.Abs(float64(got[0])-want[0]/length) > 1e-6 || math.Abs(float64(got[1])-want[1]/length) > 1e-6 {
				t.Errorf("%s cut at %d: %v, %v; want %v of length 1", mode, cut, got, err, want)
			}
		}
	}
	p := &Vector{modes: []Mode{First, Last}}
	p.Add([]float32{0, 3, 4, 9}, 2)
	if got, err := p.Elements(3); err != nil || !slices.Equal(got, []float32{0, 0.6, 0.8}) {
		t.Errorf("three elements of two vectors: %v, %v", got, err)
	}
	p.Reset()
	p.Add([]float32{float32(math.NaN()), 1}, 2)
	if _, err := p.Elements(0); err == nil {
		t.Error("a vector that is not finite is given")
	}
	p.Reset()
	p.Add([]float32{0, 0}, 2)
	if got, err := p.Elements(0); err != nil || !slices.Equal(got, []float32{0, 0, 0, 0}) {
		t.Errorf("a vector without a length: %v, %v", got, err)
	}
}
