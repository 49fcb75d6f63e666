package packed

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/safetensors"
)

// AutoGPTQ and GPTQModel store a linear layer [out, in] as X.qweight I32 [in*bits/32, out], X.qzeros I32 [groups,
// out*bits/32], X.scales [groups, out] and X.g_idx I32 [in], the group of each column. A word of qweight holds the
// codes of adjacent columns of one row, the first in its lowest bits; 3-bit codes cross words. The original format
// stores zeros minus 1, "gptq_v2" stores them unchanged.
// https://github.com/AutoGPTQ/AutoGPTQ/blob/v0.7.1/auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py
// https://github.com/ModelCloud/GPTQModel/blob/v4.0.0/gptqmodel/nn_modules/qlinear/__init__.py

func findGPTQ(c *Checkpoint) (Found, error) {
	return findTransposed(c, "gptq", "GPTQ", func(l *transposedLayer) error {
		if format := l.config.format(); format != "" && format != "gptq" && format != "gptq_v2" {
			return c.wrongConfig(l.config.key, "the format %q is for the kernels of one program; "+
				"convert it with that program, or use the checkpoint in gptq", format)
		}
		l.along = true
		var err error
		l.shift, err = l.config.zeroShift(c)
		return err
	})
}

// gptqConfig is the configuration of a GPTQ or AWQ checkpoint.
type gptqConfig struct {
	Method     string          `json:"quant_method"`
	Bits       int             `json:"bits"`
	WBit       int             `json:"w_bit"` // in AutoAWQ's own file
	Group      *int64          `json:"group_size"`
	QGroup     *int64          `json:"q_group_size"`
	Format     string          `json:"checkpoint_format"`
	NewFormat  string          `json:"format"`
	Version    string          `json:"version"`
	Marlin     bool            `json:"is_marlin_format"`
	Dynamic    json.RawMessage `json:"dynamic"` // layers with their own bits and groups
	DescAct    bool            `json:"desc_act"`
	Sym        *bool           `json:"sym"`
	ZeroPoint  *bool           `json:"zero_point"`
	Packing    string          `json:"packing_format"` // AutoRound's
	Backend    string          `json:"backend"`        // AutoRound's before it had packing_format
	Extra      json.RawMessage `json:"extra_config"`   // AutoRound's layers with their own bits and groups
	key        string          // for messages
	configured bool
}

func (t gptqConfig) format() string {
	switch {
	case t.Marlin:
		return "marlin"
	case t.Format != "":
		return strings.ToLower(t.Format)
	}
	return strings.ToLower(t.NewFormat)
}

func (t gptqConfig) uniform() bool {
	empty := func(m json.RawMessage) bool { return len(m) == 0 || string(m) == "null" || string(m) == "{}" }
	return t.configured && empty(t.Dynamic) && empty(t.Extra)
}

// readGPTQConfig reads config.json, or else the files that AutoGPTQ and AutoAWQ wrote before it had a key for this.
func (c *Checkpoint) readGPTQConfig() (t gptqConfig, from []string, err error) {
	data, file := []byte(c.HF), "config.json "+c.hfKey
	t.key = c.hfKey
	for _, name := range []string{"quantize_config.json", "quant_config.json"} {
		if data != nil {
			break
		}
		data, file = c.File(name), name
	}
	if data == nil {
		return t, nil, nil
	}
	if err := pyjson.Unmarshal(data, &t); err != nil {
		return t, nil, c.wrongConfig(file, "%w", err)
	}
	t.configured = true
	if t.key == "" {
		t.key = file
	}
	if t.Bits == 0 {
		t.Bits = t.WBit
	}
	if t.Group == nil {
		t.Group = t.QGroup
	}
	say := func(key string, value any) { from = append(from, fmt.Sprintf("%s.%s = %v", file, key, value)) }
	if t.Method != "" {
		say("quant_method", fmt.Sprintf("%q", t.Method))
	}
	if t.Bits != 0 {
		say("bits", t.Bits)
	}
	if t.Group != nil {
		say("group_size", *t.Group)
	}
	if f := t.format(); f != "" {
		say("checkpoint_format", fmt.Sprintf("%q", f))
	}
	if t.isAutoRound() {
		say("packing_format", fmt.Sprintf("%q", t.packing()))
	}
	if t.DescAct {
		say("desc_act", true)
	}
	return t, from, nil
}

// transposedLayer is a layer being read.
type transposedLayer struct {
	transposed
	name   string
	config gptqConfig
	group  int64
	index  *safetensors.Source // of groups; nil if they are consecutive
}

// findTransposed finds layers with a qweight. GPTQ and AWQ use the same names. The width of qweight distinguishes them:
// in GPTQ it equals the number of rows, in AWQ it is smaller.
func findTransposed(c *Checkpoint, method, maker string, more func(*transposedLayer) error) (Found, error) {
	var f Found
	var list []Weight
	var config gptqConfig
	kinds := map[string]int{}
	for _, t := range c.Tensors() {
		name, ok := strings.CutSuffix(t.Name, ".qweight")
		if !ok {
			continue
		}
		if list == nil {
			var err error
			if config, f.From, err = c.readGPTQConfig(); err != nil {
				return f, err
			}
		}
		l := &transposedLayer{name: name, config: config, transposed: transposed{weight: t}}
		mine, err := l.find(c, method)
		if err != nil {
			return f, err
		}
		if !mine {
			continue
		}
		if err := more(l); err != nil {
			return f, err
		}
		m, err := l.matrix(c, maker)
		if err != nil {
			return f, err
		}
		kinds[m.Format]++
		list = append(list, m)
		f.Ignored = append(f.Ignored, c.zeroBias(name)...)
	}
	if len(list) == 0 {
		return Found{}, nil
	}
	if err := c.finishWeights(list); err != nil {
		return f, err
	}
	f.Weights = list
	f.What = counted(kinds) + biasNote(f.Weights)
	var parts []string
	for _, p := range list[0].Parts {
		parts = append(parts, fmt.Sprintf("%s (%s %v)", p.Name, p.DType, p.Shape))
	}
	f.From = append(f.From, strings.Join(parts, ", "))
	return f, nil
}

// find looks up a layer's tensors, and reports whether they are packed by method.
func (l *transposedLayer) find(c *Checkpoint, method string) (bool, error) {
	var ok bool
	if l.scales, ok = c.Lookup(l.name + ".scales"); !ok {
		return false, wrong(l.weight, "it is packed by GPTQ or AWQ, but %s.scales is missing; download the checkpoint again",
			l.name)
	}
	for _, t := range []safetensors.Source{l.weight, l.scales} {
		if len(t.Shape) != 2 || numbers.Count(t.Shape) == 0 {
			return false, wrong(t, "it has shape %v, want a matrix; download the checkpoint again", t.Shape)
		}
	}
	if l.weight.DType != safetensors.I32 && l.weight.DType != safetensors.U32 {
		return false, wrong(l.weight, "it is %s, but codes are packed in I32; download the checkpoint again", l.weight.DType)
	}
	if !isFloat(l.scales.DType) {
		return false, wrong(l.scales, "it is %s, want F16, BF16 or F32; download the checkpoint again", l.scales.DType)
	}
	l.groups, l.rows = l.scales.Shape[0], l.scales.Shape[1]
	along := l.weight.Shape[1] == l.rows
	is := "awq"
	if along {
		is = "gptq"
	}
	if is != method {
		return false, nil
	}
	if m := l.config.Method; m != "" && m != method && (m == "awq" || m == "gptq") {
		return false, wrong(l.weight, "its shape %v with scales %v is that of %s, but %s.quant_method is %q; "+
			"correct the configuration",
			l.weight.Shape, l.scales.Shape, method, l.config.key, m)
	}
	return true, l.sizes(c, along)
}

// sizes derives bits and group size from shapes, and checks them against the configuration.
func (l *transposedLayer) sizes(c *Checkpoint, along bool) error {
	l.bits = l.config.Bits
	if zeros, ok := c.Lookup(l.name + ".qzeros"); ok {
		if zeros.DType != safetensors.I32 && zeros.DType != safetensors.U32 || len(zeros.Shape) != 2 ||
			zeros.Shape[0] != l.groups || zeros.Shape[1]*32%l.rows != 0 {
			return wrong(zeros,
				"it is %s %v, want I32 [%d, %d rows of the weight times bits / 32]; download the checkpoint again",
				zeros.DType, zeros.Shape, l.groups, l.rows)
		}
		bits := int(zeros.Shape[1] * 32 / l.rows)
		if l.bits != 0 && bits != l.bits && l.config.uniform() {
			return wrong(zeros, "its shape %v means %d bits, but %s.bits is %d; "+
				"correct the configuration, or download the checkpoint again", zeros.Shape, bits, l.config.key, l.config.Bits)
		}
		l.zeros, l.bits = zeros, bits
	} else if s := l.config.Sym; (s == nil || !*s) && (l.config.ZeroPoint == nil || *l.config.ZeroPoint) {
		return wrong(l.weight, "it has codes and scales, but %s.qzeros is missing; download the checkpoint again", l.name)
	}
	if !slices.Contains([]int{2, 3, 4, 5, 6, 8}, l.bits) || l.rows*int64(l.bits)%32 != 0 {
		return wrong(l.weight, "codes have %d bits, want 2 to 6 or 8, and whole words (%s.bits is %d); "+
			"correct the configuration, or download the checkpoint again", l.bits, l.config.key, l.config.Bits)
	}
	l.midpoint = float32(int(1) << (l.bits - 1))
	l.columns = l.weight.Shape[0]
	if along {
		l.columns = l.weight.Shape[0] * 32 / int64(l.bits)
		if l.weight.Shape[0]*32%int64(l.bits) != 0 {
			return wrong(l.weight, "%d words are not a whole number of codes of %d bits; download the checkpoint again",
				l.weight.Shape[0], l.bits)
		}
	} else if l.weight.Shape[1]*32 != l.rows*int64(l.bits) {
		return wrong(l.weight, "it has shape %v, but with scales %v and %d bits a row would have %d words; "+
			"download the checkpoint again", l.weight.Shape, l.scales.Shape, l.bits, l.rows*int64(l.bits)/32)
	}
	return l.grouping(c)
}

func (l *transposedLayer) grouping(c *Checkpoint) error {
	l.group = (l.columns + l.groups - 1) / l.groups
	if g := l.config.Group; g != nil && l.config.uniform() {
		want := *g
		if want <= 0 {
			want = l.columns
		}
		if (l.columns+want-1)/want != l.groups {
			return wrong(l.scales,
				"it has %d groups, but rows of %d elements in groups of %d (%s.group_size = %d) have %d; "+
					"correct the configuration, or download the checkpoint again",
				l.groups, l.columns, want, l.config.key, *g, (l.columns+want-1)/want)
		}
		l.group = want
	}
	l.index = c.find(l.name + ".g_idx")
	return nil
}

// matrix returns a layer as a matrix.
func (l *transposedLayer) matrix(c *Checkpoint, maker string) (Weight, error) {
	m := Weight{
		Name: l.name + ".weight", DType: l.scales.DType, Parts: []safetensors.Source{l.weight, l.scales},
		Format: fmt.Sprintf("%s %d bits, groups of %d", maker, l.bits, l.group),
	}
	if l.columns > maxColumns {
		return m, wrong(l.weight, "rows of %d elements are too long", l.columns)
	}
	if l.zeros.File != nil {
		m.Parts = append(m.Parts, l.zeros)
	}
	if l.index != nil {
		m.Parts = append(m.Parts, *l.index)
	}
	g := &grid{rows: l.rows, columns: l.columns, bits: l.bits, groups: l.groups, symmetric: l.zeros.File == nil,
		declared: l.config.Sym != nil && *l.config.Sym, read: l.transposed}
	note, err := c.orderOf(g, l.index, l.group, "desc_act", l.config.DescAct)
	if err != nil {
		return m, err
	}
	m.Format += note
	m.Why, m.Read = g.fit(), g
	return m, nil
}

// zeroBias returns a layer's bias if it is all zeros. AutoGPTQ wrote one for every layer, even if the model has none.
func (c *Checkpoint) zeroBias(layer string) []Ignored {
	const most = 1 << 22
	b, ok := c.Lookup(layer + ".bias")
	if !ok || !isFloat(b.DType) || b.Size() > most {
		return nil
	}
	if c.HeadersOnly {
		c.assume(assumedBiases)
		return []Ignored{{Source: b, Reason: "a bias, assumed to be zero, as the packer wrote", Assumed: true}}
	}
	data := make([]byte, b.Size())
	if numbers.ReadAt(b, data, 0) != nil || slices.ContainsFunc(data, func(v byte) bool { return v != 0 }) {
		return nil
	}
	return []Ignored{{Source: b, Reason: "a bias that is zero, as the packer wrote for every layer"}}
}

// counted lists formats, with the number of weights if there are several formats.
func counted(kinds map[string]int) string {
	var out []string
	for format, n := range kinds {
		if len(kinds) == 1 {
			return format
		}
		out = append(out, fmt.Sprintf("%s (%d)", format, n))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
