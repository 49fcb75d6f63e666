package safetensors

import (
	"slices"
	"strings"
	"testing"
)

func TestParseIndex(t *testing.T) {
	got, err := parseIndex([]byte(`{
  "metadata": {"total_size": 123, "x": [1.5e3, -2, true, false, null, {"weight_map": {"no": "no"}}], "s": "\u00e9"},
  "weight_map": {"a.weight": "model-00001-of-00002.safetensors", "b": "Größe 2.safetensors"},
  "later": []
}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []placed{{"a.weight", "model-00001-of-00002.safetensors"}, {"b", "Größe 2.safetensors"}}
	if !slices.Equal(got, want) {
		t.Errorf("weight_map %q, want %q", got, want)
	}
}

func TestParseIndexDamaged(t *testing.T) {
	shard := func(name string) string { return `{"weight_map":{"t":"` + name + `"}}` }
	const notPlain = ` is not a plain file name`
	for _, tt := range []struct {
		name, index, want string
	}{
		{"empty", ``, "invalid index: JSON byte 0: want '{', found the end"},
		{"not JSON", `weight_map`, "invalid index: JSON byte 0: want '{', found 'w'"},
		{"cut off", `{"weight_map":{"t":"m.safetensors"`, "invalid index: JSON byte 34: want ',', found the end"},
		{"trailing data", shard("m.safetensors") + "x", "invalid index: JSON byte 36: want the end, found 'x'"},
		{"not UTF-8", "{\"\xff\":1}", "invalid index: not UTF-8"},
		{"no weight_map", `{"metadata":{}}`, "invalid index: weight_map is absent or empty"},
		{"empty weight_map", `{"weight_map":{}}`, "invalid index: weight_map is absent or empty"},
		{"null weight_map", `{"weight_map":null}`, "invalid index: JSON byte 14: want '{', found 'n'"},
		{"two weight_maps", `{"weight_map":{},"weight_map":{}}`, `invalid index: duplicate key "weight_map"`},
		{"number for a shard", `{"weight_map":{"t":1}}`, `tensor "t": invalid index: JSON byte 19: want '"', found '1'`},
		{"duplicate tensor", `{"weight_map":{"t":"a.safetensors","t":"b.safetensors"}}`,
			`tensor "t": invalid index: duplicate: it occurs twice in the weight_map`},
		{"empty tensor name", `{"weight_map":{"":"a.safetensors"}}`,
			`tensor "": invalid index: invalid tensor name: it is empty`},
		{"reserved tensor name", `{"weight_map":{"__metadata__":"a.safetensors"}}`,
			`tensor "__metadata__": invalid index: invalid tensor name: it is reserved`},
		{"parent folder", shard("../m.safetensors"), `tensor "t": invalid index: shard "../m.safetensors"` + notPlain},
		{"sub-folder", shard("x/m.safetensors"), `tensor "t": invalid index: shard "x/m.safetensors"` + notPlain},
		{"absolute", shard("/m.safetensors"), `tensor "t": invalid index: shard "/m.safetensors"` + notPlain},
		{"escaped slash", shard(`..\/m.safetensors`), `tensor "t": invalid index: shard "../m.safetensors"` + notPlain},
		{"backslash", shard(`..\\m.safetensors`), `tensor "t": invalid index: shard "..\\m.safetensors"` + notPlain},
		{"drive", shard(`c:m.safetensors`), `tensor "t": invalid index: shard "c:m.safetensors"` + notPlain},
		{"zero byte", shard(`m\u0000.safetensors`), `tensor "t": invalid index: shard "m\x00.safetensors"` + notPlain},
		{"line break", shard(`m\n.safetensors`), `tensor "t": invalid index: shard "m\n.safetensors"` + notPlain},
		{"dot file", shard(".safetensors"), `tensor "t": invalid index: shard ".safetensors"` + notPlain},
		{"empty shard", shard(""), `tensor "t": invalid index: shard ""` + notPlain},
		{"deep nesting", `{"metadata":` + strings.Repeat("[", 1<<20),
			"invalid index: JSON byte 45: more than 32 levels of nesting"},
		{"bad value", `{"metadata":nope}`, "invalid index: JSON byte 12: want null"},
		{"bad number", `{"metadata":01}`, "invalid index: JSON byte 12: want a value, found '0'"},
		{"no value", `{"metadata":}`, "invalid index: JSON byte 12: want a value, found '}'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseIndex([]byte(tt.index))
			wantError(t, err, ErrIndex, tt.want)
		})
	}
}
