package pooling

import (
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
		modes, err := parse([]byte(config))
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
		if _, err := parse([]byte(config)); err == nil || !strings.Contains(err.Error(), want) {
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
		if got, err := configName([]byte("[" + list + "]")); got != want || err != nil {
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
		if _, err := configName([]byte("[" + list + "]")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", list, err, want)
		}
	}
}
