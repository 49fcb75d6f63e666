// Command grammar benchmarks structured output: typical schemas with a vocabulary of 128,256 tokens. It measures the
// cost per token (Mask and Accept) of the first and of later documents of a grammar, and the cost of compilation.
//
//	grammar [-tokenizer FILE] [-documents N] RESULTS
//
// RESULTS is the JSON file to write. FILE is a tokenizer.json whose vocabulary replaces the synthetic one.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/grammar/grammartest"
	"github.com/ingotml/ingot/tokenizer"
)

func main() {
	path := flag.String("tokenizer", "", "a tokenizer.json")
	documents := flag.Int("documents", 20, "how often each document is written under one grammar")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*path, *documents, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// grammars is how often each case is compiled. The fastest run counts; slower ones were disturbed.
const grammars = 5

// times are in microseconds.
type times struct {
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	Max float64 `json:"max_us"`
}

type result struct {
	Compile float64 `json:"compile_us"` // from the schema's text to a grammar
	Bind    float64 `json:"bind_us"`    // until the first matcher with the vocabulary
	Tokens  int     `json:"tokens"`     // in the document
	First   times   `json:"first"`      // per token of the first document: each token's minimum over several compilations
	Later   times   `json:"later"`
}

type results struct {
	Vocabulary   int               `json:"vocabulary"`
	VocabularyMS float64           `json:"vocabulary_ms"` // once per tokenizer
	First        times             `json:"first"`         // over all schemas
	All          times             `json:"all"`           // over all tokens of all documents
	Schemas      map[string]result `json:"schemas"`
}

func run(path string, documents int, out string) error {
	tokens := grammartest.Tokens(128256)
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		t, err := tokenizer.Load(data, nil)
		if err != nil {
			return err
		}
		tokens = make([][]byte, t.Size())
		for id := range tokens {
			tokens[id], _ = t.Bytes(int32(id))
		}
	}
	began := time.Now()
	v := grammar.NewVocabulary(tokens, nil)
	all := results{Vocabulary: len(tokens), VocabularyMS: float64(time.Since(began).Microseconds()) / 1000,
		Schemas: map[string]result{}}
	ids := grammartest.Longest(tokens)
	var firsts, every []time.Duration
	for _, c := range cases {
		var r result
		var later []time.Duration
		var first [][]time.Duration
		for fresh := range grammars {
			began := time.Now()
			g, err := c.compile()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			compiled := time.Now()
			if _, err = g.Matcher(v, 4096); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			compile, bind := micro(compiled.Sub(began)), micro(time.Since(compiled))
			if fresh == 0 {
				r.Compile, r.Bind = compile, bind
			}
			r.Compile, r.Bind = min(r.Compile, compile), min(r.Bind, bind)
			for n := range documents {
				took, err := write(g, v, ids(c.document))
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				every = append(every, took...)
				if n > 0 {
					later = append(later, took...)
				} else {
					first = append(first, took)
				}
			}
		}
		r.Tokens = len(first[0])
		least := first[0]
		for _, f := range first[1:] {
			for i := range f {
				least[i] = min(least[i], f[i])
			}
		}
		r.First = summary(least)
		firsts = append(firsts, least...)
		r.Later = summary(later)
		all.Schemas[c.name] = r
	}
	all.First, all.All = summary(firsts), summary(every)
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", data)
	return os.WriteFile(out, append(data, '\n'), 0o644)
}

// write feeds a document's tokens to a new matcher and returns the time of each.
func write(g *grammar.Grammar, v *grammar.Vocabulary, ids []int32) ([]time.Duration, error) {
	budget := 4096
	m, err := g.Matcher(v, budget)
	if err != nil {
		return nil, err
	}
	mask := make([]uint32, grammar.Words(v.Size()))
	took := make([]time.Duration, 0, len(ids))
	for i, id := range ids {
		began := time.Now()
		m.Mask(mask, budget-i)
		if mask[id/32]&(1<<(id%32)) == 0 {
			return nil, fmt.Errorf("token %d of the document, %q, is not allowed", i, v.Bytes(id))
		}
		if err := m.Accept(id); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	if !m.Done() {
		return nil, fmt.Errorf("the document is not complete")
	}
	return took, nil
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()/10) / 100 }

func summary(d []time.Duration) times {
	d = slices.Sorted(slices.Values(d))
	return times{P50: micro(d[len(d)/2]), P99: micro(d[len(d)*99/100]), Max: micro(d[len(d)-1])}
}
