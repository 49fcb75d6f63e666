package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
)

// ErrEmbedding reports that a model cannot compute an embedding, or not the requested one.
var ErrEmbedding = errors.New("no embedding")

// poolMode is a way to combine the hidden states of a text's tokens into one vector. Its value is the name in
// sentence-transformers.
type poolMode string

const (
	poolFirst    poolMode = "cls"
	poolMax      poolMode = "max" // element by element
	poolMean     poolMode = "mean"
	poolMeanSqrt poolMode = "mean_sqrt_len_tokens" // the sum, divided by the square root of the number of tokens
	poolWeighted poolMode = "weightedmean"         // weighted by position, from 1
	poolLast     poolMode = "lasttoken"
)

// poolModes lists the supported modes and their keys in the configuration of sentence-transformers' Pooling module. The
// vectors of several modes are concatenated in this order.
var poolModes = []struct {
	mode poolMode
	key  string
}{
	{poolFirst, "pooling_mode_cls_token"},
	{poolMax, "pooling_mode_max_tokens"},
	{poolMean, "pooling_mode_mean_tokens"},
	{poolMeanSqrt, "pooling_mode_mean_sqrt_len_tokens"},
	{poolWeighted, "pooling_mode_weightedmean_tokens"},
	{poolLast, "pooling_mode_lasttoken"},
}

// pooling says how embeddings are pooled from the final hidden states.
type pooling struct {
	modes []poolMode
	err   error // why the model has no embeddings
}

// Files of sentence-transformers: its list of modules, and the configuration of the Pooling module.
const (
	modulesName    = "modules.json"
	defaultPooling = "1_Pooling/config.json" // if there is no list
)

// pooling returns the pooling that the image configures; by default it takes the last token. An invalid configuration
// fails only requests for embeddings: the model can still generate.
func (f files) pooling() pooling {
	modes, err := f.poolModes()
	if err != nil {
		return pooling{err: fmt.Errorf("%w: %w", err, ErrEmbedding)}
	}
	return pooling{modes: modes}
}

func (f files) poolModes() ([]poolMode, error) {
	b, err := f.read(manifest.KindFile, modulesName)
	if err != nil {
		return nil, err
	}
	name := defaultPooling
	if b != nil {
		if name, err = poolingName(b); err != nil {
			return nil, fmt.Errorf("%s: %w", modulesName, err)
		}
	}
	config, err := f.read(manifest.KindFile, name)
	switch {
	case err != nil:
		return nil, err
	case config == nil && b == nil:
		return []poolMode{poolLast}, nil
	case config == nil:
		return nil, fmt.Errorf("%s, which %s names, is not in the image", name, modulesName)
	}
	modes, err := parsePooling(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return modes, nil
}

// poolingName returns the name of the Pooling module's configuration. It rejects modules that would transform the
// vectors, because they are not implemented. Vectors are normalized with or without a Normalize module.
func poolingName(modules []byte) (name string, err error) {
	var list []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	if err := json.Unmarshal(modules, &list); err != nil {
		return "", err
	}
	for _, m := range list {
		switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; {
		case kind == "Transformer" || kind == "Normalize":
		case kind == "Pooling" && name == "":
			if !fs.ValidPath(m.Path) {
				return "", fmt.Errorf("%.80q is not a valid path", m.Path)
			}
			name = path.Join(m.Path, "config.json")
		default:
			return "", fmt.Errorf("module %.80q is not supported", kind)
		}
	}
	if name == "" {
		return "", errors.New("it lists no Pooling module")
	}
	return name, nil
}

// parsePooling parses the configuration of a Pooling module: one boolean for each mode up to sentence-transformers 5.1,
// later pooling_mode with a name or a list of names.
func parsePooling(config []byte) ([]poolMode, error) {
	var c map[string]json.RawMessage
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, err
	}
	wanted := map[poolMode]bool{}
	if raw, ok := c["pooling_mode"]; ok {
		var names []poolMode
		var one poolMode
		if json.Unmarshal(raw, &one) == nil {
			names = []poolMode{one}
		} else if err := json.Unmarshal(raw, &names); err != nil {
			return nil, errors.New("pooling_mode is neither a name nor a list of names")
		}
		for _, n := range names {
			wanted[n] = true
		}
	} else {
		for key, raw := range c {
			if !strings.HasPrefix(key, "pooling_mode_") {
				continue
			}
			var on bool
			if err := json.Unmarshal(raw, &on); err != nil {
				return nil, fmt.Errorf("%.80q is neither true nor false", key)
			}
			if on {
				wanted[modeOf(key)] = true
			}
		}
	}
	var modes []poolMode
	for _, m := range poolModes {
		if wanted[m.mode] {
			modes = append(modes, m.mode)
			delete(wanted, m.mode)
		}
	}
	for m := range wanted {
		return nil, fmt.Errorf("pooling mode %.80q is not supported", string(m))
	}
	if len(modes) == 0 {
		return nil, errors.New("no pooling mode is set")
	}
	return modes, nil
}

// modeOf returns the mode that a key turns on. For an unknown key, it returns the key.
func modeOf(key string) poolMode {
	for _, m := range poolModes {
		if m.key == key {
			return m.mode
		}
	}
	return poolMode(key)
}

// poolState computes a text's embedding from the hidden states of its tokens, in order. It sums in float64.
type poolState struct {
	modes    []poolMode
	rows     int
	first    []float32
	last     []float32
	max      []float32
	sum      []float64
	weighted []float64
}

func (p *poolState) has(m poolMode) bool { return slices.Contains(p.modes, m) }

// needsAllRows reports whether the embedding depends on other tokens than the last one. p may be nil.
func (p *poolState) needsAllRows() bool {
	return p != nil && slices.ContainsFunc(p.modes, func(m poolMode) bool { return m != poolLast })
}

// reset discards all rows. p may be nil.
func (p *poolState) reset() {
	if p != nil {
		*p = poolState{modes: p.modes}
	}
}

// add adds the next rows [n, width]. If needsAllRows is false, rows before the last one may be left out.
func (p *poolState) add(rows []float32, width int) {
	for row := range slices.Chunk(rows, width) {
		p.rows++
		if p.rows == 1 && p.has(poolFirst) {
			p.first = slices.Clone(row)
		}
		if p.has(poolMax) {
			if p.max == nil {
				p.max = slices.Clone(row)
			}
			for i, v := range row {
				p.max[i] = max(p.max[i], v)
			}
		}
		if p.has(poolMean) || p.has(poolMeanSqrt) {
			p.sum = addRow(p.sum, row, 1)
		}
		if p.has(poolWeighted) {
			p.weighted = addRow(p.weighted, row, float64(p.rows))
		}
	}
	p.last = slices.Clone(rows[len(rows)-width:])
}

func addRow(sum []float64, row []float32, weight float64) []float64 {
	if sum == nil {
		sum = make([]float64, len(row))
	}
	for i, v := range row {
		sum[i] += weight * float64(v)
	}
	return sum
}

// vector returns the embedding: the first elements of the concatenated modes, normalized. 0 dimensions means all
// elements.
func (p *poolState) vector(dimensions int) ([]float32, error) {
	var out []float64
	plain := func(row []float32) {
		for _, v := range row {
			out = append(out, float64(v))
		}
	}
	scaled := func(row []float64, by float64) {
		for _, v := range row {
			out = append(out, v*by)
		}
	}
	n := float64(p.rows)
	for _, m := range p.modes {
		switch m {
		case poolFirst:
			plain(p.first)
		case poolMax:
			plain(p.max)
		case poolMean:
			scaled(p.sum, 1/n)
		case poolMeanSqrt:
			scaled(p.sum, 1/math.Sqrt(n))
		case poolWeighted:
			scaled(p.weighted, 2/(n*(n+1)))
		case poolLast:
			plain(p.last)
		}
	}
	if dimensions > 0 {
		out = out[:dimensions]
	}
	var squares float64
	for _, v := range out {
		squares += v * v
	}
	if math.IsNaN(squares) || math.IsInf(squares, 0) {
		return nil, fmt.Errorf("the hidden states are not finite: %w", ErrImage)
	}
	by := 1 / max(math.Sqrt(squares), 1e-12)
	vector := make([]float32, len(out))
	for i, v := range out {
		vector[i] = float32(v * by)
	}
	return vector, nil
}
