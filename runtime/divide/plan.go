package divide

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/fit"
)

// Mode is a way to divide a model.
type Mode string

// The modes.
const (
	Auto     Mode = "auto"     // the better of the others
	Tensor   Mode = "tensor"   // each rank has a part of every tensor
	Pipeline Mode = "pipeline" // each rank has some layers
)

// ParseMode reads a mode. The empty one is Auto.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case "":
		return Auto, nil
	case Auto, Tensor, Pipeline:
		return m, nil
	}
	return "", fmt.Errorf("%q is not auto, tensor or pipeline", text)
}

// Machine is what a rank runs on. Ranks with equal hosts share the memory.
type Machine struct {
	Host   string  `json:"host"`
	Memory int64   `json:"memory"` // bytes that models may use; 0: not known
	Speed  float64 `json:"speed"`  // relative to the others; 0: 1
}

// Input is what a plan follows from.
type Input struct {
	Model    arch.Model
	Sizes    map[string]int64 // bytes of each tensor of the model
	Machines []Machine        // by rank
	Mode     Mode
	Link     *Link // between the ranks; nil: not known
	Use      fit.Use

	tensors        []tensor
	table          table.Table
	facts          config.Facts
	context        int   // tokens of a sequence
	state, working int64 // bytes of a sequence, and of a step
}

// tensor is a tensor that the image has.
type tensor struct {
	table.Spec
	bytes  float64
	layers []int   // that use it; nil: it belongs to no layer
	read   float64 // the share that is read for a token
	rows   float64 // elements that each row of a prompt is multiplied by
}

// prepared returns the input with what follows from the model.
func (in Input) prepared() Input {
	if in.tensors != nil {
		return in
	}
	in.table, in.facts = in.Model.Table(), in.Model.Facts()
	in.context, in.working = fit.ContextOf(in.Model, in.Use), fit.Working(in.Model, in.Use)
	in.state = fit.State(in.Model, in.context, in.Use.Float32s, in.Use.KV)
	for _, s := range in.table.Specs {
		size, there := in.Sizes[s.Name]
		if !there {
			continue
		}
		x := tensor{Spec: s, bytes: float64(size), read: arch.ReadShare(in.Model, s)}
		x.layers = arch.Uses(in.Model, in.table, int(in.facts.Layers), s.Name)
		if x.rows = x.read; s.IsHead() || s.IsEmbedding() { // few rows of a prompt have logits
			x.rows = 0
		}
		for _, n := range s.Shape {
			x.rows *= float64(n)
		}
		in.tensors = append(in.tensors, x)
	}
	return in
}

// Plan says how ranks divide a model.
type Plan struct {
	Mode   Mode         `json:"mode"`
	Why    string       `json:"why"`              // it is this mode
	Stages shard.Stages `json:"stages,omitempty"` // of a pipeline
	Ranks  []Rank       `json:"ranks"`
	Time   Estimate     `json:"estimate"`
}

// Rank is a rank's share of a model.
type Rank struct {
	Rank    int     `json:"rank"`
	Host    string  `json:"host"`
	Memory  int64   `json:"memory"`  // of the host
	Layers  [2]int  `json:"layers"`  // the first, and the one after the last
	Weights int64   `json:"weights"` // bytes
	State   int64   `json:"state"`   // bytes, of one sequence
	Working int64   `json:"working"` // bytes, of a step
	Sends   float64 `json:"sends"`   // bytes per generated token
}

// Needs returns the bytes that the rank needs.
func (r Rank) Needs() int64 { return r.Weights + r.State + r.Working }

// Make returns a plan. If none fits, the error says what does not, and what to do.
func Make(in Input) (Plan, error) {
	if len(in.Machines) < 2 {
		return Plan{}, fmt.Errorf("a model on %d rank is not divided: %w", len(in.Machines), shard.ErrRanks)
	}
	in = in.prepared()
	switch in.Mode {
	case Tensor:
		return in.checked(in.tensor())
	case Pipeline:
		return in.checked(in.pipeline())
	}
	tensor, failed := in.checked(in.tensor())
	pipeline, otherwise := in.checked(in.pipeline())
	switch {
	case failed != nil && otherwise != nil:
		return Plan{}, fmt.Errorf("as tensors: %w; as a pipeline: %w", failed, otherwise)
	case failed != nil:
		pipeline.Why = "parts of tensors are not possible: " + reason(failed)
		return pipeline, nil
	case otherwise == nil && in.Link != nil && pipeline.Time.Token < tensor.Time.Token:
		pipeline.Why = fmt.Sprintf("parts of tensors would take %.1f ms for a token over this link, a pipeline %.1f ms",
			1000*tensor.Time.Token, 1000*pipeline.Time.Token)
		return pipeline, nil
	}
	tensor.Why = "the model divides, and the parts fit"
	return tensor, nil
}

// reason returns what an error says without its kind.
func reason(err error) string {
	for _, kind := range []error{shard.ErrRanks, runtime.ErrMemory} {
		if errors.Is(err, kind) {
			return strings.TrimSuffix(err.Error(), ": "+kind.Error())
		}
	}
	return err.Error()
}

func (in Input) tensor() (Plan, error) {
	p := Plan{Mode: Tensor, Why: "as asked for"}
	fractions := make([]func(tensor) float64, len(in.Machines))
	sums := 0.0
	for rank, m := range in.Machines {
		parts, err := shard.Parts(in.table, rank, len(in.Machines))
		if err != nil {
			return p, err
		}
		fractions[rank] = func(x tensor) float64 { return shareOf(parts, x.Name) }
		sums = sumsOf(in.tensors, parts)
		r := in.rank(rank, m)
		r.Layers = [2]int{0, int(in.facts.Layers)}
		r.Weights = in.weight(fractions[rank])
		r.State = int64(float64(in.state) * stateShare(in.table, parts))
		p.Ranks = append(p.Ranks, r)
	}
	p.Time = in.estimateTensor(in.work(fractions), sums)
	for i := range p.Ranks {
		p.Ranks[i].Sends = p.Time.Bytes
	}
	return p, nil
}

// shareOf returns the part of a tensor that a rank has.
func shareOf(parts map[string]shard.Part, name string) float64 {
	p, divided := parts[name]
	switch {
	case !divided:
		return 1
	case p.Absent:
		return 0
	}
	return float64(p.Len()) / float64(p.Of)
}

// weight returns the bytes of a rank that has these fractions of the tensors.
func (in Input) weight(share func(tensor) float64) (n int64) {
	for _, x := range in.tensors {
		n += int64(share(x) * x.bytes)
	}
	return n
}

// stateShare returns the part of the state that a rank has: as many of the heads of keys as it has, or all if these are
// not divided.
func stateShare(t table.Table, parts map[string]shard.Part) float64 {
	share, found := 0.0, false
	for _, s := range t.Specs {
		if s.Split.Kind != table.HeadGroup {
			continue
		}
		own := shareOf(parts, s.Name)
		if s.Split.Shared && !found {
			share, found = own, true
		} else if !found {
			share = max(share, own)
		}
	}
	if share == 0 {
		return 1
	}
	return share
}

func (in Input) pipeline() (Plan, error) {
	p := Plan{Mode: Pipeline, Why: "as asked for"}
	layers := int(in.facts.Layers)
	cost, ends := make([]float64, layers), 0.0
	for _, x := range in.tensors {
		if x.layers != nil {
			cost[x.layers[0]] += x.bytes
		} else {
			ends += x.bytes
		}
	}
	states := in.Model.State()
	each := max(len(states)/max(layers, 1), 1)
	for i := range cost {
		for _, l := range states[i*each : (i+1)*each] {
			cost[i] += 2 * float64(l.Elements(int64(in.context)))
		}
	}
	// Stages that take equally long, or if these do not fit, ones that need equal parts of the memory.
	bySpeed, byMemory := in.weights()
	for _, weights := range [][]float64{bySpeed, byMemory} {
		stages, err := shard.Spread(in.Model, cost, ends, weights)
		if err != nil {
			return p, err
		}
		if in.stage(&p, stages); in.fits(p) == nil {
			break
		}
	}
	fractions := make([]func(tensor) float64, len(in.Machines))
	for rank := range fractions {
		fractions[rank] = p.stageShare(rank)
	}
	p.Time = in.estimatePipeline(p.Ranks, in.work(fractions))
	return p, nil
}

// stageShare returns the share of a tensor that a rank of a pipeline has: all or nothing.
func (p *Plan) stageShare(rank int) func(tensor) float64 {
	stages := p.Stages
	return func(x tensor) float64 {
		if stages.Has(x.layers, rank) {
			return 1
		}
		return 0
	}
}

// stage sets the stages of a plan.
func (in Input) stage(p *Plan, stages shard.Stages) {
	p.Stages, p.Ranks = stages, nil
	fractions := p.Stages.StateShares(in.Model)
	for rank, m := range in.Machines {
		r := in.rank(rank, m)
		r.Layers[0], r.Layers[1] = p.Stages.Range(rank)
		r.Weights = in.weight(p.stageShare(rank))
		r.State = int64(float64(in.state) * fractions[rank])
		r.Sends = float64(arch.Carried(in.Model, r.Layers[1]) * in.elementBytes())
		p.Ranks = append(p.Ranks, r)
	}
}

// weights returns how much of the model each rank should have by its speed, and by its memory.
func (in Input) weights() (bySpeed, byMemory []float64) {
	sharing := map[string]float64{}
	for _, m := range in.Machines {
		sharing[m.Host]++
	}
	for _, m := range in.Machines {
		bySpeed = append(bySpeed, speed(m)/sharing[m.Host])
		byMemory = append(byMemory, float64(max(m.Memory, 1))/sharing[m.Host])
	}
	return bySpeed, byMemory
}

func speed(m Machine) float64 {
	if m.Speed > 0 {
		return m.Speed
	}
	return 1
}

func (in Input) elementBytes() int64 {
	if in.Use.Float32s {
		return 4
	}
	return 2
}

func (in Input) rank(rank int, m Machine) Rank {
	return Rank{Rank: rank, Host: m.Host, Memory: m.Memory, Working: in.working}
}

// checked returns an error if a plan does not fit.
func (in Input) checked(p Plan, err error) (Plan, error) {
	if err != nil {
		return p, err
	}
	return p, in.fits(p)
}

// fits returns an error if the ranks of a host need more memory than it has.
func (in Input) fits(p Plan) error {
	needs, ranks := map[string]int64{}, map[string][]string{}
	for _, r := range p.Ranks {
		needs[r.Host] += r.Needs()
		ranks[r.Host] = append(ranks[r.Host], fmt.Sprint(r.Rank))
	}
	for _, r := range p.Ranks {
		if n := needs[r.Host]; r.Memory > 0 && n > r.Memory {
			return fmt.Errorf("rank %s needs %s, and models may use %s on %s (add machines, or quantize the model): %w",
				strings.Join(ranks[r.Host], " and "), gigabytes(n), gigabytes(r.Memory), r.Host, runtime.ErrMemory)
		}
	}
	return nil
}

func gigabytes(n int64) string { return fmt.Sprintf("%.2f GB", float64(n)/1e9) }
