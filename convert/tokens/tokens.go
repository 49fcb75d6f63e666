// Package tokens makes a tokenizer.json of the other files in which checkpoints have their tokenizer: vocab.json with
// merges.txt, Mistral's tekken.json, vocabularies of tiktoken, RWKV's list.
//
// Contract:
//   - The result encodes as the publisher's own code, or as the class of transformers that the checkpoint names.
//   - A damaged file is an error that names the file, the place and a remedy. A file that is not known how to read is
//     ErrUnknown, which says why.
package tokens

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/tokenizer"
)

// ErrUnknown reports tokenizer files that this package cannot read.
var ErrUnknown = errors.New("the tokenizer cannot be read")

// Names of files.
const (
	tokenizerName = "tokenizer.json"
	modelName     = "tokenizer.model"
	settingsName  = "tokenizer_config.json"
	configName    = "config.json"
	tekkenName    = "tekken.json"
	kimiName      = "tiktoken.model"
	vocabName     = "vocab.json"
	mergesName    = "merges.txt"
)

// Folder is the small files of a checkpoint by name.
type Folder map[string][]byte

// Made is the files of a tokenizer that have been made.
type Made struct {
	From      string // the file that has the vocabulary
	Replaced  bool   // the tokenizer takes the place of that file
	Tokenizer []byte // tokenizer.json
	Settings  []byte // tokenizer_config.json with what the class of the tokenizer adds; nil: nothing
}

// Reads reports whether a file is of one of the layouts and of use here only, so that a folder with a tokenizer.json
// does not need it.
func Reads(name string) bool {
	return name == tekkenName || name == kimiName || strings.HasSuffix(name, tiktokenSuffix) || isRWKV(name)
}

// Needs reports whether Make needs a file of a folder.
func Needs(name string) bool {
	return Reads(name) || slices.Contains([]string{
		tokenizerName, modelName, settingsName, configName, vocabName, mergesName, tokenizer.AddedTokens,
		tokenizer.SpecialTokensMap,
	}, name)
}

// Make makes the tokenizer of a folder. The result is nil if it needs none: it has a tokenizer.json, a tokenizer.model
// of SentencePiece, or no tokenizer at all.
func Make(f Folder) (*Made, error) {
	if _, ok := f[tokenizerName]; ok {
		return nil, nil
	}
	s, err := readSettings(f)
	if err != nil {
		return nil, err
	}
	if data, ok := f[modelName]; ok {
		if isTiktoken(data) {
			return tiktokenModel(f, s)
		}
		return nil, nil
	}
	if data, ok := f[tekkenName]; ok {
		return tekken(data, s)
	}
	if _, ok := f[kimiName]; ok {
		return kimi(f, s)
	}
	for _, name := range f.sorted() {
		switch {
		case strings.HasSuffix(name, tiktokenSuffix):
			return tiktokenFile(name, f, s)
		case isRWKV(name):
			data, err := rwkvTokenizer(f[name])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return &Made{From: name, Replaced: true, Tokenizer: data}, nil
		}
	}
	if _, ok := f[vocabName]; ok {
		return merged(f, s)
	}
	return nil, nil
}

func (f Folder) sorted() []string {
	var names []string
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// again is the remedy for a damaged file.
const again = "; download the file again"

// damaged returns an error about a file.
func damaged(name, format string, args ...any) error {
	return fmt.Errorf("%s: %s%s", name, fmt.Sprintf(format, args...), again)
}

// settings is tokenizer_config.json, and what config.json says of the tokenizer.
type settings struct {
	data      []byte
	keys      map[string]json.RawMessage
	class     string // without Fast; "" if neither file names one
	modelType string
	folder    Folder
}

func readSettings(f Folder) (*settings, error) {
	s := &settings{data: f[settingsName], keys: map[string]json.RawMessage{}, folder: f}
	if s.data != nil {
		if err := pyjson.Unmarshal(s.data, &s.keys); err != nil || s.keys == nil {
			return nil, damaged(settingsName, "it is %s, want an object", clip.Text(string(s.data), 40))
		}
	}
	var config struct {
		Type  string `json:"model_type"`
		Class any    `json:"tokenizer_class"`
	}
	_ = pyjson.Unmarshal(f[configName], &config) // package arch says what is wrong with it
	s.modelType = config.Type
	if s.class = s.text("tokenizer_class"); s.class == "" {
		s.class, _ = config.Class.(string)
	}
	s.class = strings.TrimSuffix(s.class, "Fast")
	var program struct {
		Auto []*string `json:"AutoTokenizer"`
	}
	if _ = json.Unmarshal(s.keys["auto_map"], &program); s.generic() && len(program.Auto) > 0 && program.Auto[0] != nil {
		s.class = (*program.Auto[0])[strings.LastIndexByte(*program.Auto[0], '.')+1:]
	}
	return s, nil
}

// generic reports whether the class says nothing of the tokenizer's layout.
func (s *settings) generic() bool {
	return s.class == "" || s.class == "PreTrainedTokenizer" || s.class == "TokenizersBackend"
}

// text returns a key's text; "" if it is absent or something else.
func (s *settings) text(key string) (text string) {
	_ = json.Unmarshal(s.keys[key], &text)
	return text
}

func (s *settings) flag(key string) (on bool) {
	_ = json.Unmarshal(s.keys[key], &on)
	return on
}

// pair is a key of tokenizer_config.json with a text.
type pair struct{ key, text string }

// with returns the file with the keys that it lacks, which are the defaults of the tokenizer's class; nil if it lacks
// none.
func (s *settings) with(defaults []pair) ([]byte, error) {
	var b bytes.Buffer
	body := bytes.TrimRight(s.data, " \t\r\n")
	if body = bytes.TrimSuffix(body, []byte("}")); len(s.keys) == 0 {
		body = []byte("{")
	}
	b.Write(bytes.TrimRight(body, " \t\r\n"))
	n := len(s.keys)
	for _, d := range defaults {
		if _, ok := s.keys[d.key]; ok {
			continue
		}
		if n++; n > 1 {
			b.WriteByte(',')
		}
		text, err := marshal(d.text)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n  %q: %s", d.key, bytes.TrimSpace(text))
	}
	if n == len(s.keys) {
		return nil, nil
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// marshal does not escape < and >, which every special token has.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return b.Bytes(), err
}
