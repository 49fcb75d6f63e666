package divide

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/fit"
)

// model returns a model of the test data, and the sizes of its tensors with two bytes for each element.
func model(t *testing.T, name string) (arch.Model, map[string]int64) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../testdata/models", name, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := arch.Detect(b)
	if err != nil {
		t.Fatal(err)
	}
	return m, sizesOf(m, 2)
}

func sizesOf(m arch.Model, each float64) map[string]int64 {
	sizes := map[string]int64{}
	for _, s := range m.Table().Specs {
		n := each
		for _, d := range s.Shape {
			n *= float64(d)
		}
		sizes[s.Name] = int64(n)
	}
	return sizes
}

func machines(memory ...int64) (all []Machine) {
	for i, m := range memory {
		all = append(all, Machine{Host: string(rune('a' + i)), Memory: m})
	}
	return all
}

// The shares of all ranks of a pipeline are the whole model, and each rank's part of the tensors is smaller.
func TestShares(t *testing.T) {
	for _, name := range []string{
		"demo", "qwen3_5-default", "qwen3_5-vision", "deepseek_v3-saved", "gemma4-e2b", "zamba2-saved",
	} {
		m, sizes := model(t, name)
		var whole, tower int64
		for name, n := range sizes {
			if whole += n; strings.HasPrefix(name, "model.visual.") {
				tower += n
			}
		}
		for _, mode := range []Mode{Tensor, Pipeline} {
			in := Input{Model: m, Sizes: sizes, Machines: machines(1<<40, 1<<40), Mode: mode, Use: fit.Use{Context: 64}}
			p, err := Make(in)
			if err != nil || p.Mode != mode || len(p.Ranks) != 2 {
				t.Fatalf("%s, %s: %+v, %v", name, mode, p, err)
			}
			sum := p.Ranks[0].Weights + p.Ranks[1].Weights
			borrowed := name == "zamba2-saved" // blocks that both ranks use
			if mode == Pipeline && sum != whole && !borrowed || mode == Tensor && sum < whole || p.Ranks[1].Weights >= whole {
				t.Errorf("%s, %s: ranks have %d and %d bytes of %d", name, mode, p.Ranks[0].Weights, p.Ranks[1].Weights, whole)
			}
			if n := p.Ranks[0].Weights - p.Ranks[1].Weights; mode == Tensor && tower > 0 && n < tower {
				t.Errorf("%s: rank 0 has %d bytes more than rank 1, and the vision tower %d", name, n, tower)
			}
			if p.Time.Token <= p.Time.Between || p.Time.Between <= 0 || p.Ranks[0].Sends <= 0 || p.Ranks[0].State <= 0 {
				t.Errorf("%s, %s: %+v", name, mode, p)
			}
		}
	}
}

// Stages follow memory and speed.
func TestStages(t *testing.T) {
	m, sizes := model(t, "demo") // five equal layers, and a tied embedding
	var whole int64
	for _, n := range sizes {
		whole += n
	}
	layer := whole / 6
	for name, c := range map[string]struct {
		machines []Machine
		want     shard.Stages
	}{
		"memory": {machines(4*layer+layer/2+1<<20, 3*layer+1<<20), nil},
		"speed":  {[]Machine{{Host: "a", Speed: 1}, {Host: "b", Speed: 4}}, shard.Stages{1, 4}},
		"shared": {[]Machine{{Host: "a"}, {Host: "a"}, {Host: "b"}}, shard.Stages{1, 1, 3}},
	} {
		p, err := Make(Input{Model: m, Sizes: sizes, Machines: c.machines, Mode: Pipeline, Use: fit.Use{Context: 16}})
		if err != nil || c.want != nil && !slices.Equal(p.Stages, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, p.Stages, err, c.want)
		}
	}
}

// auto divides tensors where that is possible, fits and is fast.
func TestAuto(t *testing.T) {
	dense, sizes := model(t, "demo")
	refused, other := model(t, "qwen4_exp-published")
	for name, c := range map[string]struct {
		in   Input
		want Mode
		why  string
		err  error
	}{
		"divides": {Input{Model: dense, Sizes: sizes, Machines: machines(1<<40, 1<<40)}, Tensor, "the parts fit", nil},
		"refused": {Input{Model: refused, Sizes: other, Machines: machines(1<<40, 1<<40)}, Pipeline, "read all heads", nil},
		"slow link": {Input{Model: dense, Sizes: sizes, Machines: machines(1<<40, 1<<40), Link: &Link{1e6, 0.05}}, Pipeline,
			"over this link", nil},
		"no memory": {Input{Model: dense, Sizes: sizes, Machines: machines(1<<40, 1000)}, "", "rank 1 needs",
			runtime.ErrMemory},
		"one rank": {Input{Model: dense, Sizes: sizes, Machines: machines(1 << 40)}, "", "1 rank", shard.ErrRanks},
		"too many": {Input{Model: dense, Sizes: sizes, Machines: machines(make([]int64, 6)...), Mode: Pipeline}, "",
			"5 layers", shard.ErrRanks},
		"not tensor": {Input{Model: refused, Sizes: other, Machines: machines(0, 0), Mode: Tensor}, "", "qwen4_exp",
			shard.ErrRanks},
	} {
		p, err := Make(c.in)
		if c.err != nil {
			if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s: %v, want %q", name, err, c.why)
			}
			continue
		}
		if err != nil || p.Mode != c.want || !strings.Contains(p.Why, c.why) {
			t.Errorf("%s: %s because %q, %v; want %s because %q", name, p.Mode, p.Why, err, c.want, c.why)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Link{
		"1Gbit/100us": {125e6, 100e-6}, "10Gbit": {1.25e9, 30e-6}, "100Mbit/1ms": {12.5e6, 1e-3}, "2.5gbit/0s": {312.5e6, 0},
	} {
		got, err := ParseLink(text)
		if err != nil || abs(got.Bandwidth-want.Bandwidth) > 1 || abs(got.Latency-want.Latency) > 1e-9 {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "Gbit", "1Tbit", "0Gbit", "-1Gbit", "NaNGbit", "1Gbit/", "1Gbit/100",
		"1Gbit/-1us", "9e9Gbit"} {
		if got, err := ParseLink(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
	for text, want := range map[string]Mode{"": Auto, "auto": Auto, "tensor": Tensor, "pipeline": Pipeline, "4": ""} {
		if got, err := ParseMode(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }
