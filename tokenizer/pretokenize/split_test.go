package pretokenize

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/pattern"
	"github.com/ingotml/ingot/tokenizer/tokenizertest"
)

// TestPatterns compares the pieces of Split with the reference's, for the scanners and the general engine.
func TestPatterns(t *testing.T) {
	var golden struct {
		Texts    []string `json:"texts"`
		Patterns []struct {
			Kind    string `json:"kind"`
			Pattern string `json:"pattern"`
			Pieces  []struct {
				Behavior string   `json:"behavior"`
				Invert   bool     `json:"invert"`
				Pieces   []string `json:"pieces"`
			} `json:"pieces"`
		} `json:"patterns"`
	}
	tokenizertest.ReadJSON(t, "../../testdata/patterns.json", &golden)
	for _, p := range golden.Patterns {
		t.Run(p.Kind+" "+p.Pattern, func(t *testing.T) {
			c := jsonfile.Component{Part: "pre_tokenizer", Name: "Split"}
			engines := map[string]pattern.Pattern{}
			if p.Kind == "String" {
				engines["literal"] = pattern.Literal(p.Pattern)
			} else {
				re, err := pattern.CompileRegex(c, p.Pattern)
				if err != nil {
					t.Fatal(err)
				}
				engines["general"] = re
				if s, ok := pattern.NewScanner(p.Pattern); ok {
					engines["scanner"] = s
				}
			}
			for name, engine := range engines {
				for i, want := range p.Pieces {
					s := split{engine, behaviours[want.Behavior], want.Invert}
					got := piecesOf(t, s, golden.Texts[i])
					if !slices.Equal(got, want.Pieces) {
						t.Errorf("%s, %s, invert %v, %q:\n got %q\nwant %q",
							name, want.Behavior, want.Invert, golden.Texts[i], got, want.Pieces)
					}
				}
			}
		})
	}
}

func piecesOf(t testing.TB, p PreTokenizer, s string) []string {
	t.Helper()
	var out []string
	err := p.Pieces(work.Start(t.Context(), work.Limits{}), s, true, func(piece string, _ bool) error {
		out = append(out, piece)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestKnownPatternsHaveScanners(t *testing.T) {
	for _, name := range tokenizertest.Trained {
		var file struct {
			Pre json.RawMessage `json:"pre_tokenizer"`
		}
		tokenizertest.ReadJSON(t, "../../testdata/"+name+"/tokenizer.json", &file)
		r, err := jsonfile.NewReader("pre_tokenizer", file.Pre)
		if err != nil {
			t.Fatal(err)
		}
		n, err := r.Value()
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(n)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range p {
			if s, ok := step.(split); ok {
				if _, ok := s.p.(*pattern.Regex); ok {
					t.Errorf("%s: the general engine runs %s", name, s.p.(*pattern.Regex).Label)
				}
			}
		}
	}
}
