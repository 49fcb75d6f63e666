package packed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/safetensors"
)

// How compressed-tensors divides a layer: the configuration's groups of layers, and the scales of a layer.

// packedArgs is the configuration of a group of layers.
type packedArgs struct {
	Bits     int     `json:"num_bits"`
	Type     string  `json:"type"`
	Strategy string  `json:"strategy"`
	Group    *int64  `json:"group_size"`
	Block    []int64 `json:"block_structure"`
}

// readPacked reads the groups of layers, or returns nil if the configuration has none.
func (c *Checkpoint) readPacked() (args []packedArgs, from []string, err error) {
	if c.HF == nil || c.method() != "compressed-tensors" && c.method() != "compressed_tensors" {
		return nil, nil, nil
	}
	var q struct {
		Format string `json:"format"`
		Groups map[string]struct {
			Weights *packedArgs `json:"weights"`
		} `json:"config_groups"`
	}
	if err := pyjson.Unmarshal(c.HF, &q); err != nil {
		return nil, nil, c.wrongConfig(c.hfKey, "%w", err)
	}
	from = append(from, fmt.Sprintf("config.json %s.quant_method = %q", c.hfKey, c.method()))
	if q.Format != "" {
		from = append(from, fmt.Sprintf("config.json %s.format = %q", c.hfKey, q.Format))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Groups)) {
		if w := q.Groups[name].Weights; w != nil {
			args = append(args, *w)
			from = append(from, fmt.Sprintf("config.json %s.config_groups.%s.weights: %d bits, %s",
				c.hfKey, name, w.Bits, w.Strategy))
		}
	}
	return args, from, nil
}

func (l *packedLayer) widths() (list []int) {
	for _, a := range l.config {
		list = append(list, a.Bits)
	}
	return list
}

func (l *packedLayer) configured(bits int) bool { return slices.Contains(l.widths(), bits) }

// grouping finds scales, zero points and the group index.
func (l *packedLayer) grouping(c *Checkpoint) error {
	s := *l.scales
	if !isFloat(s.DType) {
		return wrong(s, "it is %s, want F16, BF16 or F32; download the checkpoint again", s.DType)
	}
	if err := l.divide(s); err != nil {
		return err
	}
	l.zeros = c.find(l.name + ".weight_zero_point")
	if z := l.zeros; z != nil {
		lines := (l.rows + l.share - 1) / l.share
		packed := l.share == 1 && z.DType == safetensors.I32 && numbers.Count(z.Shape) == l.wordsFor(l.rows)*l.groups
		if !packed && !(z.DType == safetensors.I8 && numbers.Count(z.Shape) == lines*l.groups) {
			return wrong(*z, "it is %s %v, want I32 [%d %d] or I8 [%d %d]; download the checkpoint again",
				z.DType, z.Shape, l.wordsFor(l.rows), l.groups, lines, l.groups)
		}
	}
	l.index = c.find(l.name + ".weight_g_idx")
	return nil
}

// divide finds which elements share a scale: those of a tensor, of a block, of a row, or of a group of a row.
func (l *packedLayer) divide(s safetensors.Source) error {
	l.share, l.groups, l.group = l.rows, 1, l.columns
	if numbers.Count(s.Shape) == 1 {
		return nil
	}
	for _, a := range l.config {
		if a.Strategy != "block" || len(a.Block) != 2 || a.Block[0] < 1 || a.Block[1] < 1 {
			continue
		}
		down, across := (l.rows-1)/a.Block[0]+1, (l.columns-1)/a.Block[1]+1
		if slices.Equal(s.Shape, []int64{down, across}) {
			l.share, l.groups, l.group = a.Block[0], across, a.Block[1]
			return nil
		}
	}
	l.share = 1
	if len(s.Shape) != 2 && len(s.Shape) != 1 || s.Shape[0] != l.rows || numbers.Count(s.Shape) == 0 {
		return wrong(s, "it has shape %v, want scales for each of the weight's %d rows; download the checkpoint again",
			s.Shape, l.rows)
	}
	l.groups = numbers.Count(s.Shape) / l.rows
	if l.groups > l.columns || !l.findGroup() {
		return wrong(s, "it has %d groups, but no group_size of config.json (%s) gives that for rows of %d elements; "+
			"correct the configuration, or download the checkpoint again",
			l.groups, l.sizes(), l.columns)
	}
	return nil
}

// what describes which elements share a scale.
func (l *packedLayer) what() string {
	switch {
	case l.share > 1 && l.groups == 1 && l.share >= l.rows:
		return "one scale"
	case l.share > 1:
		return fmt.Sprintf("blocks of %d x %d", l.share, l.group)
	case l.groups == 1:
		return "one scale a row"
	}
	return fmt.Sprintf("groups of %d", l.group)
}

// findGroup sets the group size to the configured one that matches the number of scales per row.
func (l *packedLayer) findGroup() bool {
	if len(l.config) == 0 {
		l.group = (l.columns + l.groups - 1) / l.groups
		return true
	}
	for _, a := range l.config {
		l.group = l.columns
		if a.Group != nil && *a.Group > 0 {
			l.group = *a.Group
		}
		if (l.columns+l.group-1)/l.group == l.groups {
			return true
		}
	}
	return false
}

func (l *packedLayer) sizes() string {
	var out []string
	for _, a := range l.config {
		if a.Group == nil || *a.Group <= 0 {
			out = append(out, "one a row")
		} else {
			out = append(out, fmt.Sprint(*a.Group))
		}
	}
	return strings.Join(out, ", ")
}
