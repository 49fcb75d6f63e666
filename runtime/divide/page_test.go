package divide

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	_ "github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/runtime/fit"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/scaling.md")

const (
	page  = "../../docs/scaling.md"
	begin = "<!-- predictions: written by `go test ./runtime/divide -run Page -update` -->\n"
	end   = "<!-- end of predictions -->\n"
)

// shapes are models of published sizes.
var shapes = []struct{ name, config string }{
	{"dense, 8 B", `{"model_type":"llama","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,
		"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,"tie_word_embeddings":false,
		"max_position_embeddings":131072,"rms_norm_eps":1e-5,"rope_theta":500000}`},
	{"dense, 70 B", `{"model_type":"llama","hidden_size":8192,"intermediate_size":28672,"num_hidden_layers":80,
		"num_attention_heads":64,"num_key_value_heads":8,"vocab_size":128256,"tie_word_embeddings":false,
		"max_position_embeddings":131072,"rms_norm_eps":1e-5,"rope_theta":500000}`},
	{"mixture, 30 B, 3 B active", `{"model_type":"qwen3_moe","hidden_size":2048,"intermediate_size":6144,
		"moe_intermediate_size":768,"num_experts":128,"num_experts_per_tok":8,"norm_topk_prob":true,
		"num_hidden_layers":48,"num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"vocab_size":151936,
		"tie_word_embeddings":false,"max_position_embeddings":40960,"rms_norm_eps":1e-6,"rope_theta":1000000}`},
}

// links are those of the predictions.
var links = []struct {
	name string
	Link
}{
	{"1 Gbit/s, 100 us", Link{125e6, 100e-6}}, {"10 Gbit/s, 30 us", usualLink}, {"100 Gbit/s, 10 us", Link{12.5e9, 10e-6}},
	{"Thunderbolt, 40 Gbit/s, 20 us", Link{5e9, 20e-6}},
}

var sizes = []int{2, 4, 8, 16}

// bitsPerWeight is the size of int4 weights with their scales.
const bitsPerWeight = 4.5

func TestPageHasThePredictions(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the tables", page)
	}
	var text strings.Builder
	for _, s := range shapes {
		m, err := arch.Detect([]byte(s.config))
		if err != nil {
			t.Fatal(err)
		}
		predictions(t, &text, s.name, m)
	}
	if want := before + begin + text.String() + end + after; *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(b) != want {
		t.Errorf("%s differs from the model: run `go test ./runtime/divide -run Page -update`", page)
	}
}

// predictions writes the tables of a model.
func predictions(t *testing.T, to *strings.Builder, name string, m arch.Model) {
	in := Input{Model: m, Sizes: sizesOf(m, bitsPerWeight/8), Use: fit.Use{Context: 4096}}.prepared()
	alone := Alone(in)
	fmt.Fprintf(to, "\n**%s.** One machine that has the memory: %.3g / %.3g.\n\n", name,
		1/alone.Token, 1/alone.Prompt)
	to.WriteString("| Link | Division | 2 machines | 4 | 8 | 16 |\n|---|---|---|---|---|---|\n")
	for _, l := range links {
		for _, mode := range []Mode{Tensor, Pipeline} {
			fmt.Fprintf(to, "| %s | %s |", l.name, mode)
			for _, n := range sizes {
				in.Machines, in.Mode, in.Link = make([]Machine, n), mode, &l.Link
				for i := range in.Machines {
					in.Machines[i].Host = fmt.Sprint(i)
				}
				p, err := Make(in)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(to, " %.3g / %.3g |", 1/p.Time.Token, 1/p.Time.Prompt)
			}
			to.WriteString("\n")
		}
	}
}

// The model has the figures that its constants were measured with, of the shape "dense" in docs/performance.md.
func TestMeasured(t *testing.T) {
	m, err := arch.Detect([]byte(`{"model_type":"llama","hidden_size":2048,"intermediate_size":5632,"num_hidden_layers":16,
		"num_attention_heads":16,"num_key_value_heads":4,"head_dim":128,"vocab_size":32000,"tie_word_embeddings":false,
		"max_position_embeddings":8192,"rms_norm_eps":1e-5,"rope_theta":500000}`))
	if err != nil {
		t.Fatal(err)
	}
	e := Alone(Input{Model: m, Sizes: sizesOf(m, bitsPerWeight/8)})
	for what, c := range map[string][2]float64{"tokens/s": {1 / e.Token, 52.8}, "prompt tokens/s": {1 / e.Prompt, 122.1}} {
		if ratio := c[0] / c[1]; ratio < 0.95 || ratio > 1.05 {
			t.Errorf("the model says %.1f %s, measured are %.1f", c[0], what, c[1])
		}
	}
	// Ranks pass short arrays on whole, and long ones in parts, twice, the second time rounded.
	for _, ranks := range []int{2, 4} {
		n := gathered(ranks)
		short, long := FreeLink.Sum(ranks, n, n/2), FreeLink.Sum(ranks, n+1, n/2)
		if short != float64(ranks-1)*ringStep || long != 2*short {
			t.Errorf("a short sum of %d ranks takes %.0f us, a long one %.0f", ranks, 1e6*short, 1e6*long)
		}
	}
	slow := Link{Bandwidth: 1e6}
	if got := slow.SumOver(2, 4e6, 2e6); math.Abs(got-3) > 1e-9 {
		t.Errorf("the bytes of a long sum of 2 ranks take %v s, want those of half of it and of half of the rounded one", got)
	}
}
