// Package statistics is the format of what calibration knows about the inputs of a model's linear layers: an artifact
// that quantizations of the same weights use.
//
// A [Set] is data. Its file is in the safetensors format, with the description as JSON in the metadata. Its digest
// identifies it: a quantization is a function of weights, statistics and options. In a store, it is a referrer of the
// image whose weights were calibrated.
//
// Contract:
//   - Encoding the same set gives the same bytes.
//   - [Parse] checks everything that a reader relies on: shapes, counts, finite numbers. A damaged file is an
//     [ErrStatistics], never a panic.
package statistics

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/opencontainers/go-digest"
)

// ErrStatistics reports a file that holds no statistics, or statistics of other weights.
var ErrStatistics = errors.New("bad calibration statistics")

// About describes a calibration.
type About struct {
	Image   digest.Digest `json:"image"`   // manifest of the image that was calibrated
	Weights digest.Digest `json:"weights"` // identity of its weights, see [Weights]
	Text    digest.Digest `json:"text"`    // of the texts, as they were read
	Tokens  int64         `json:"tokens"`
	Program string        `json:"program"`
	Block   int           `json:"block,omitempty"` // columns of a block of second moments; 0 = only their diagonal
}

// Layer holds the statistics of the input of one or more linear layers.
type Layer struct {
	Width   int
	Rows    []int64   // that each expert saw; one number for a layer without experts
	Squares []float32 // mean squares [experts, width]
	// Moments returns the mean products of the columns of a block, [n, n], for each block of [About.Block] columns, of
	// which the last may have fewer. It is nil if they were not asked for.
	Moments func(block int) ([]float32, error)
}

// MinRows is how many rows an expert must have seen for statistics of its own. Others take the mean of the layer.
const MinRows = 128

// Expert returns the mean squares of an expert's input. own is false if it saw too few rows, and the result is the mean
// of all experts, weighted by their rows.
func (l *Layer) Expert(i int) (squares []float32, own bool) {
	if len(l.Rows) == 1 || l.Rows[i] >= MinRows {
		return l.Squares[i*l.Width:][:l.Width], true
	}
	mean := make([]float32, l.Width)
	var rows float64
	for _, n := range l.Rows {
		rows += float64(n)
	}
	for c := range mean {
		var sum float64
		for e, n := range l.Rows {
			sum += float64(float64(n) * float64(l.Squares[e*l.Width+c]))
		}
		mean[c] = float32(sum / max(rows, 1))
	}
	return mean, false
}

// Set is the statistics of a model.
type Set struct {
	About
	layers map[string]*Layer // by tensor
}

// New returns an empty set.
func New(about About) *Set { return &Set{About: about, layers: map[string]*Layer{}} }

// Add adds the statistics of the input that the tensors share.
func (s *Set) Add(l *Layer, tensors ...string) {
	for _, name := range tensors {
		s.layers[name] = l
	}
}

// Layer returns the statistics of a tensor's input, or nil.
func (s *Set) Layer(tensor string) *Layer { return s.layers[tensor] }

// Tensors lists the tensors that have statistics, sorted.
func (s *Set) Tensors() []string { return slices.Sorted(maps.Keys(s.layers)) }

// Few lists the stacks of which some experts saw fewer than [MinRows] rows, for users.
func (s *Set) Few() (list []string) {
	for _, name := range s.Tensors() {
		few, rows := 0, s.layers[name].Rows
		for _, n := range rows {
			if n < MinRows {
				few++
			}
		}
		if few > 0 && len(rows) > 1 {
			list = append(list, fmt.Sprintf("%s: %d of %d experts saw fewer than %d rows, and take the mean of all",
				name, few, len(rows), MinRows))
		}
	}
	return list
}

// Fit returns an error unless the statistics of a tensor, if there are any, are those of a matrix with rows of width
// elements, or of a stack of as many matrices as there are experts.
func (s *Set) Fit(tensor string, width int64, experts int64) error {
	l := s.layers[tensor]
	if l == nil || int64(l.Width) == width && int64(len(l.Rows)) == experts {
		return nil
	}
	return fmt.Errorf("%w: tensor %s has %d inputs of %d experts, the statistics have %d of %d: they are of another model",
		ErrStatistics, tensor, width, experts, l.Width, len(l.Rows))
}

// Blocks returns the sizes of the blocks of width columns.
func Blocks(width, block int) (sizes []int) {
	for at := 0; at < width; at += block {
		sizes = append(sizes, min(block, width-at))
	}
	return sizes
}

// check verifies a layer.
func (l *Layer) check(name string) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrStatistics, name, fmt.Sprintf(format, args...))
	}
	if l.Width <= 0 || len(l.Rows) == 0 || len(l.Squares) != l.Width*len(l.Rows) {
		return bad("%d mean squares of %d experts with %d inputs", len(l.Squares), len(l.Rows), l.Width)
	}
	for _, n := range l.Rows {
		if n < 0 {
			return bad("an expert saw %d rows", n)
		}
	}
	for _, v := range l.Squares {
		if !(v >= 0) || math.IsInf(float64(v), 0) {
			return bad("a mean square is %v", v)
		}
	}
	return nil
}
