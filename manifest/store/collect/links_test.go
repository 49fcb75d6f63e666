package collect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
)

func links(text string) []link {
	var got []link
	scanLinks([]byte(text), func(l link) { got = append(got, l) })
	return got
}

func TestScanLinks(t *testing.T) {
	for text, want := range map[string][]link{
		`{"config":{"digest":"c","size":3},"layers":[{"size":4,"digest":"a"},{"digest":"b","annotations":{"digest":"x",` +
			`"size":"7"}}]}`: {
			{"c", 3, false}, {"a", 4, false}, {"b", 0, false},
		},
		" {\n\"manifests\" : [ { \"digest\" : \"m\" , \"size\" : 5 } ] , \"blobs\":[{\"digest\":\"b\"}]}\n": {
			{"m", 5, true}, {"b", 0, false},
		},
		`{"annotations":{"layers":[{"digest":"x"}],"q":"\\\"layers\":[{"},"layers":[{"urls":["\"}],\\"],"digest":"a"}]}`: {
			{"a", 0, false},
		},
		`{"layers":[],"config":null,"blobs":7}`:                       nil,
		`{"layers":{"digest":"x"},"config":[{"digest":"y"}]}`:         nil,
		`{"layers":[7,null,[{"digest":"x"}],{"digest":5,"size":-1}]}`: nil,
		`[{"layers":[{"digest":"x"}]}]`:                               nil,
		`{"layers":[{"digest":"a"},{"digest":"b`:                      {{"a", 0, false}},
		``:                                                            nil, `{`: nil, `{"layers"`: nil, `"`: nil, `]`: nil,
	} {
		if got := links(text); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestScanLinksNesting(t *testing.T) {
	deep := func(levels int) string {
		return `{"annotations":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) +
			`,"layers":[{"digest":"a"}]}`
	}
	if got := links(deep(limits.ManifestNesting)); len(got) != 1 {
		t.Errorf("at the limit: %v", got)
	}
	if got := links(deep(limits.ManifestNesting + 1)); got != nil {
		t.Errorf("beyond the limit: %v", got)
	}
}

// BenchmarkScanLinks scans the manifest of a model with 1,000 tensors.
func BenchmarkScanLinks(b *testing.B) {
	var layers []string
	for i := range 1000 {
		layers = append(layers, fmt.Sprintf(`{"mediaType":"application/vnd.ollama.image.tensor","digest":"sha256:%064d",`+
			`"size":%d,"annotations":{"name":"model.layers.%d.mlp.down_proj.weight"}}`, i, i, i))
	}
	text := []byte(`{"schemaVersion":2,"layers":[` + strings.Join(layers, ",") + `]}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		scanLinks(text, func(link) { n++ })
		if n != len(layers) {
			b.Fatal(n)
		}
	}
}

// FuzzScanLinks checks that a layer is found whatever surrounds it, and that scanning terminates.
func FuzzScanLinks(f *testing.F) {
	f.Add("a\"}],", "{\"layers\":[", int64(7))
	f.Add("\\", "]", int64(-1))
	f.Fuzz(func(t *testing.T, before, after string, size int64) {
		links(before)
		doc, err := json.Marshal(map[string]any{
			"annotations": map[string]string{before: after},
			"layers":      []any{map[string]any{"a": []string{before}, "digest": "d", "size": size, "z": after}},
			"subject":     []any{after, map[string]string{after: before}},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []link{{"d", max(0, size), false}}
		if got := links(string(doc)); !slices.Equal(got, want) {
			t.Errorf("%s: %v", doc, got)
		}
		links(string(doc[:len(doc)*3/4]))
	})
}
