// Package pooling reads how embeddings are pooled from a model's final hidden states: the files of
// sentence-transformers. What makes an image and what runs it both use it.
package pooling

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// Mode is a way to combine the hidden states of a text's tokens into one vector. Its value is the name in
// sentence-transformers.
type Mode string

const (
	First    Mode = "cls"
	Max      Mode = "max" // element by element
	Mean     Mode = "mean"
	MeanSqrt Mode = "mean_sqrt_len_tokens" // the sum, divided by the square root of the number of tokens
	Weighted Mode = "weightedmean"         // weighted by position, from 1
	Last     Mode = "lasttoken"
)

// poolings lists the supported modes and their keys in the configuration of sentence-transformers' Pooling module. The
// vectors of several modes are concatenated in this order.
var poolings = []struct {
	mode Mode
	key  string
}{
	{First, "pooling_mode_cls_token"},
	{Max, "pooling_mode_max_tokens"},
	{Mean, "pooling_mode_mean_tokens"},
	{MeanSqrt, "pooling_mode_mean_sqrt_len_tokens"},
	{Weighted, "pooling_mode_weightedmean_tokens"},
	{Last, "pooling_mode_lasttoken"},
}

// Modes returns the modes that can be computed.
func Modes() (modes []Mode) {
	for _, m := range poolings {
		modes = append(modes, m.mode)
	}
	return modes
}

// Files of sentence-transformers: its list of modules, and the configuration of the Pooling module.
const (
	modulesName = "modules.json"
	defaultName = "1_Pooling/config.json" // if there is no list
)

// Read returns the pooling of a model whose files read returns; nil stands for a missing one. By default it is the last
// token. An error names the file.
func Read(read func(name string) ([]byte, error)) ([]Mode, error) {
	modules, err := read(modulesName)
	if err != nil {
		return nil, err
	}
	name := defaultName
	if modules != nil {
		if name, err = configName(modules); err != nil {
			return nil, fmt.Errorf("%s: %w", modulesName, err)
		}
	}
	config, err := read(name)
	switch {
	case err != nil:
		return nil, err
	case config == nil && modules == nil:
		return []Mode{Last}, nil
	case config == nil:
		return nil, fmt.Errorf("%s, which %s names, is not in the image", name, modulesName)
	}
	modes, err := parse(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return modes, nil
}

// configName returns the name of the Pooling module's configuration. It rejects modules that would transform the
// vectors, because they are not implemented. Vectors are normalized with or without a Normalize module.
func configName(modules []byte) (name string, err error) {
	var list []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	if err := pyjson.Unmarshal(modules, &list); err != nil {
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

// parse parses the configuration of a Pooling module: one boolean for each mode up to sentence-transformers 5.1,
// later pooling_mode with a name or a list of names.
func parse(config []byte) ([]Mode, error) {
	var c map[string]json.RawMessage
	if err := pyjson.Unmarshal(config, &c); err != nil {
		return nil, err
	}
	wanted := map[Mode]bool{}
	if raw, ok := c["pooling_mode"]; ok {
		var names []Mode
		var one Mode
		if json.Unmarshal(raw, &one) == nil {
			names = []Mode{one}
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
	var modes []Mode
	for _, m := range poolings {
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
func modeOf(key string) Mode {
	for _, m := range poolings {
		if m.key == key {
			return m.mode
		}
	}
	return Mode(key)
}
