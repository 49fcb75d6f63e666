// Package parameters has the parameters of requests: one table with their names in each API and on the command line,
// their ranges and defaults, and one struct for their values.
//
// Contract:
//   - A [Set] holds what a Modelfile, an image or a request sets. A member that is nil is not set.
//   - The table, [All] and [OfRequests], is sorted by name. It does not change.
package parameters

import (
	"math"
	"slices"
)

// Type is the type of a parameter's value.
type Type string

// The types of parameters. A Strings parameter can be given several times. For the others, the last value wins.
const (
	Int     Type = "integer"
	Float   Type = "number"
	Bool    Type = "true or false"
	Strings Type = "text"
)

// Info describes a parameter.
type Info struct {
	Name       string // in Modelfiles, and in the options of Ollama's API
	Type       Type
	Min, Max   float64 // range of a number, inclusive
	Help       string
	Deprecated bool // accepted with a warning and ignored

	Request bool // requests have it; the others are kept for other engines
	// Default is what requests have if neither they nor the image set it, as int, float64 or []string. nil: Go's zero
	// value of the request's field.
	Default   any
	OpenAI    []string // names in OpenAI's API, which differ between its requests; none: the API does not have it
	Anthropic string   // name in Anthropic's API; empty: the API does not have it
	Flag      Flag     // of the command line; no name: there is none
}

// Flag is a parameter's flag of the command line. A flag that is not given leaves the parameter as the image sets it.
type Flag struct {
	Name, Help string
	Default    int // as the help shows it
}

var unbounded = math.Inf(1)

// table lists all parameters of the language, sorted by name.
var table = []Info{
	{
		Name: "draft_num_predict", Type: Int, Min: 0, Max: 1024, Help: "draft depth in tokens per step; 0 = no drafting",
		Request: true,
	},
	{Name: "f16_kv", Type: Bool, Deprecated: true},
	{
		Name: "frequency_penalty", Type: Float, Min: -100, Max: 100, Help: "subtracted from a logit for each occurrence",
		Request: true, OpenAI: []string{"frequency_penalty"},
	},
	{Name: "logits_all", Type: Bool, Deprecated: true},
	{Name: "low_vram", Type: Bool, Deprecated: true},
	{Name: "main_gpu", Type: Int, Min: 0, Max: 1 << 16, Help: "index of the device that holds the model"},
	{
		Name: "min_p", Type: Float, Min: 0, Max: 1, Help: "drops tokens below this share of the top one; 0 = off",
		Request: true, OpenAI: []string{"min_p"},
		Flag: Flag{Name: "min-p", Help: "drop tokens below P times the top probability"},
	},
	{Name: "mirostat", Type: Int, Min: -unbounded, Max: unbounded, Deprecated: true},
	{Name: "mirostat_eta", Type: Float, Min: -unbounded, Max: unbounded, Deprecated: true},
	{Name: "mirostat_tau", Type: Float, Min: -unbounded, Max: unbounded, Deprecated: true},
	{Name: "num_batch", Type: Int, Min: 1, Max: 1 << 20, Help: "tokens per prefill step"},
	{Name: "num_ctx", Type: Int, Min: 1, Max: 1 << 30, Help: "context length in tokens", Request: true},
	{Name: "num_gpu", Type: Int, Min: -1, Max: 1 << 16, Help: "layers on the GPU; -1 = automatic"},
	{
		Name: "num_keep", Type: Int, Min: -1, Max: 1 << 30, Help: "prompt tokens kept when the context is full; -1 = all",
		Request: true,
	},
	{
		Name: "num_predict", Type: Int, Min: -2, Max: 1 << 30, Help: "maximum tokens to generate; negative = no limit",
		Request: true, OpenAI: []string{"max_tokens", "max_completion_tokens", "max_output_tokens"}, Anthropic: "max_tokens",
		Flag: Flag{Name: "max-tokens", Help: "token limit; 0 is the rest of the context"},
	},
	{Name: "num_thread", Type: Int, Min: 0, Max: 1 << 16, Help: "CPU threads; 0 = automatic"},
	{Name: "penalize_newline", Type: Bool, Deprecated: true},
	{
		Name: "presence_penalty", Type: Float, Min: -100, Max: 100, Help: "subtracted from the logit of a seen token",
		Request: true, OpenAI: []string{"presence_penalty"},
	},
	{
		Name: "repeat_last_n", Type: Int, Min: -1, Max: 1 << 30, Help: "tokens that penalties consider; 0 = none, -1 = all",
		Request: true, Default: 64,
	},
	{
		Name: "repeat_penalty", Type: Float, Min: 0, Max: 100, Help: "divides the logit of a seen token; 1 = off",
		Request: true, Default: 1.0, OpenAI: []string{"repetition_penalty"},
	},
	{
		Name: "seed", Type: Int, Min: -unbounded, Max: unbounded, Help: "seed of the random numbers; negative = random",
		Request: true, OpenAI: []string{"seed"},
		Flag: Flag{Name: "seed", Help: "seed of the random numbers; negative is random", Default: -1},
	},
	{
		Name: "stop", Type: Strings, Help: "text at which generation stops (repeatable)",
		Request: true, OpenAI: []string{"stop"}, Anthropic: "stop_sequences",
		Flag: Flag{Name: "stop", Help: "stop before this `text` (repeatable)"},
	},
	{
		Name: "temperature", Type: Float, Min: 0, Max: 100, Help: "sampling temperature; 0 = always the most likely token",
		Request: true, Default: 0.8, OpenAI: []string{"temperature"}, Anthropic: "temperature",
		Flag: Flag{Name: "temperature", Help: "sampling temperature; 0 picks the most likely token"},
	},
	{
		Name: "top_k", Type: Int, Min: -1, Max: 1 << 30, Help: "samples from this many top tokens; 0 or less = all",
		Request: true, Default: 40, OpenAI: []string{"top_k"}, Anthropic: "top_k",
		Flag: Flag{Name: "top-k", Help: "sample from the K most likely tokens; 0 is off"},
	},
	{
		Name: "top_p", Type: Float, Min: 0, Max: 1, Help: "samples from tokens of this total probability; 1 = all",
		Request: true, Default: 0.9, OpenAI: []string{"top_p"}, Anthropic: "top_p",
		Flag: Flag{Name: "top-p", Help: "sample from the top tokens of total probability P"},
	},
	{
		Name: "typical_p", Type: Float, Min: 0, Max: 1, Help: "samples from tokens of typical probability; 1 = off",
		Request: true,
	},
	{Name: "use_mlock", Type: Bool, Deprecated: true},
	{Name: "use_mmap", Type: Bool, Help: "memory-map the model's file"},
	{Name: "vocab_only", Type: Bool, Deprecated: true},
}

// extensions lists what only requests have, sorted by name. A Modelfile does not know these names, and their types are
// those of the requests. The command line has its own options for their flags.
var extensions = []Info{
	{
		Name: "deadline_ms", Type: Int, Help: "time for the whole response, else an error; 0 = no limit",
		Request: true, OpenAI: []string{"deadline_ms"}, Anthropic: "deadline_ms",
	},
	{
		Name: "draft", Type: "tokens per step, auto or off", Help: "draft depth", Request: true, Flag: Flag{Name: "draft"},
	},
	{
		Name: "ignore_eos", Type: Bool, Help: "continues after an end-of-sequence token", Request: true,
		OpenAI: []string{"ignore_eos"}, Flag: Flag{Name: "ignore-eos"},
	},
	{
		Name: "logit_bias", Type: "numbers by token id", Help: "added to the logits of these tokens", Request: true,
		OpenAI: []string{"logit_bias"},
	},
	{
		Name: "priority", Type: Int, Help: "order among requests: a level counts as 10 s of waiting; -100 to 100",
		Request: true, OpenAI: []string{"priority"}, Anthropic: "priority",
	},
}

// API is an API whose requests name parameters.
type API int

// The APIs. The names of Ollama's options are those of Modelfiles.
const (
	Ollama API = iota
	OpenAI
	Anthropic
)

// Names returns a parameter's names in an API, or none.
func (p Info) Names(a API) []string {
	switch {
	case a == Ollama && p.Request:
		return []string{p.Name}
	case a == OpenAI:
		return p.OpenAI
	case a == Anthropic && p.Anthropic != "":
		return []string{p.Anthropic}
	}
	return nil
}

// All returns all parameters of the language, sorted by name.
func All() []Info { return slices.Clone(table) }

// OfRequests returns what requests can set: parameters of the language, then those that only requests have.
func OfRequests() []Info {
	all := slices.Concat(table, extensions)
	return slices.DeleteFunc(all, func(p Info) bool { return !p.Request })
}

// Lookup finds a parameter by its name.
func Lookup(name string) (Info, bool) {
	for _, p := range table {
		if p.Name == name {
			return p, true
		}
	}
	return Info{}, false
}
