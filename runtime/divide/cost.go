package divide

import (
	"strings"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/models/shard"
)

// Estimate is a prediction for one stream.
type Estimate struct {
	Token   float64 `json:"token"`   // seconds per generated token
	Prompt  float64 `json:"prompt"`  // seconds per prompt token, of a long prompt
	Between float64 `json:"between"` // of Token
	Bytes   float64 `json:"bytes"`   // that a rank sends per generated token, at most
}

// The constants of the model are measured; docs/scaling.md says how.
const (
	// readBandwidth is how fast a machine reads weights while it generates, in bytes per second.
	readBandwidth = 24.3e9
	// promptRate is how many multiplications and additions a machine does per second in a prompt.
	promptRate = 88e9
	// layerOverhead is the time per layer of a step that is neither in kernels nor between ranks.
	layerOverhead = 40e-6
	// ringStep is the time of a step of the ring on one machine, whatever its size.
	ringStep = 60e-6
	// messageCost is the time to send and receive a message on one machine, whatever its size.
	messageCost = 60e-6
	// promptRows is the number of rows of a prompt in a step.
	promptRows = 512
	// promptSteps is the number of steps of a long prompt, which a pipeline overlaps.
	promptSteps = 8
)

func (in Input) link() Link {
	if in.Link != nil {
		return *in.Link
	}
	return usualLink
}

// work is what a rank computes for a token.
type work struct {
	read     float64 // bytes of weights
	elements float64 // of weights, each a multiplication and an addition per row
}

// work returns what each rank computes, which has these fractions of the tensors.
func (in Input) work(fractions []func(tensor) float64) []work {
	all := make([]work, len(fractions))
	for rank, share := range fractions {
		for _, x := range in.tensors {
			own := share(x)
			all[rank].read += own * x.read * x.bytes
			all[rank].elements += own * x.rows
		}
	}
	return all
}

// Alone returns the estimate for one machine that has the memory for the model.
func Alone(in Input) (e Estimate) {
	in = in.prepared()
	w := in.work([]func(tensor) float64{func(tensor) float64 { return 1 }})[0]
	return Estimate{
		Token:  w.read/readBandwidth + layerOverhead*float64(in.facts.Layers),
		Prompt: w.elements / promptRate,
	}
}

// estimateTensor estimates ranks that have parts of tensors and compute sums in each step.
func (in Input) estimateTensor(all []work, sums float64) (e Estimate) {
	n, link := len(in.Machines), in.link()
	var compute, prompt float64
	for rank, w := range all {
		compute = max(compute, w.read/readBandwidth/in.relative(rank))
		prompt = max(prompt, w.elements/promptRate/in.relative(rank))
	}
	logits, width := 4*float64(in.facts.Vocab), 4*float64(in.facts.Hidden)
	e.Between = sums*link.Sum(n, width, width/2) + link.Sum(n, logits, logits)/2
	e.Token = compute + layerOverhead*float64(in.facts.Layers) + e.Between
	e.Prompt = prompt + sums*link.Sum(n, promptRows*width, promptRows*width/2)/promptRows
	e.Bytes = (2*sums*width + logits) * float64(n-1) / float64(n)
	return e
}

// sumsOf returns the number of sums over all ranks in a step: one for each block whose last matrix has divided inputs,
// and one for the experts of a layer.
func sumsOf(tensors []tensor, parts map[string]shard.Part) (n float64) {
	experts := map[int]bool{}
	for _, x := range tensors {
		p, divided := parts[x.Name]
		if !divided || x.layers == nil {
			continue
		}
		switch {
		case x.Split.Kind == table.ByExpert:
			experts[x.layers[0]] = true
		case p.Sum && !strings.Contains(x.Name, "expert"):
			n++
		}
	}
	return n + float64(len(experts))
}

// estimatePipeline estimates ranks that have different layers.
func (in Input) estimatePipeline(ranks []Rank, all []work) (e Estimate) {
	n, link := len(in.Machines), in.link()
	slowest := 0.0
	for rank, w := range all {
		e.Token += w.read / readBandwidth / in.relative(rank)
		slowest = max(slowest, w.elements/promptRate/in.relative(rank)+link.Message(promptRows*ranks[rank].Sends)/promptRows)
		e.Between += link.Message(ranks[rank].Sends)
		e.Bytes = max(e.Bytes, ranks[rank].Sends)
	}
	e.Token += layerOverhead*float64(in.facts.Layers) + e.Between
	e.Prompt = slowest * float64(promptSteps+n-1) / promptSteps
	return e
}

// relative returns the speed of a rank's machine relative to the mean, or its share if several ranks have it.
func (in Input) relative(rank int) float64 {
	total, sharing := 0.0, 0.0
	for _, m := range in.Machines {
		total += speed(m)
		if m.Host != "" && m.Host == in.Machines[rank].Host {
			sharing++
		}
	}
	return speed(in.Machines[rank]) * float64(len(in.Machines)) / total / max(sharing, 1)
}
