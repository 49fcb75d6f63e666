// Command cpu measures the runtime on an image of the store, for the CPU benchmark (run.py, which also runs the peers
// and writes the table).
//
//	cpu -image NAME [-store DIR]
//
// It loads the image once and reads a [command] in JSON from each line of standard input. Each command prints one line
// of JSON. Decode and prefill go through runtime.Engine, as in `ingot run`: package models builds the graph, a token is
// sampled and detokenized. Token ids are random, so prompts are not tokenized. The first error ends the program.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
)

// command is one measurement.
type command struct {
	Op     string `json:"op"`     // a key of ops
	Math   string `json:"math"`   // "exact" (the default) or "fast"
	Depth  int    `json:"depth"`  // tokens in the sequence before the timed ones; 0 counts as 1
	Tokens int    `json:"tokens"` // tokens to decode or prefill; default 64
	Rounds int    `json:"rounds"` // of op rows; default 8

	Drafts int     `json:"drafts"` // drafts per step of op spec; default 3
	Right  float64 `json:"right"`  // acceptance rate of op spec; default 0.7
}

// ops are the measurements. Each returns a value to marshal as JSON.
var ops = map[string]func(*bench, context.Context, command) (any, error){
	"info":     (*bench).info,
	"decode":   (*bench).decode,
	"prefill":  (*bench).prefill,
	"rows":     (*bench).rows,
	"scores":   (*bench).scores,
	"skipped":  (*bench).skipped,
	"profile":  (*bench).profile,
	"accuracy": (*bench).accuracy,
	"gathered": (*bench).gathered,
	"growth":   (*bench).growth,
	"spec":     (*bench).spec,
}

func main() {
	image := flag.String("image", "", "name of the model image")
	root := flag.String("store", "", "folder of the store; empty is the user's own")
	flag.Parse()
	if err := run(*root, *image, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench/cpu:", err)
		os.Exit(1)
	}
}

func run(root, image string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	name, err := manifest.ParseName(image)
	if err != nil {
		return err
	}
	store, err := store.OpenExisting(root)
	if err != nil {
		return err
	}
	entry, err := store.Resolve(ctx, name)
	if err != nil {
		return err
	}
	e, err := engine.Find(engine.Options{})
	if err != nil {
		return fmt.Errorf("%w: run `ingot engine install`", err)
	}
	cpu, err := mlx.CPUFromEnv()
	if err != nil {
		return err
	}
	thread, err := mlx.Open(e, mlx.Options{CPU: cpu})
	if err != nil {
		return err
	}
	defer thread.Close()
	b, err := newBench(ctx, thread, cpu, store, entry)
	if err != nil {
		return err
	}
	defer b.close()
	return serve(ctx, b, in, out)
}

// serve runs commands until the input ends.
func serve(ctx context.Context, b *bench, in io.Reader, out io.Writer) error {
	encoder := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		c, err := parse(lines.Bytes())
		if err != nil {
			return err
		}
		result, err := b.do(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Op, err)
		}
		if err := encoder.Encode(result); err != nil {
			return err
		}
	}
	return lines.Err()
}

var errCommand = errors.New("bad command")

// parse reads a command and fills in the defaults.
func parse(line []byte) (command, error) {
	c := command{Tokens: 64, Rounds: 8, Drafts: 3, Right: 0.7}
	if err := json.Unmarshal(line, &c); err != nil {
		return c, fmt.Errorf("%w: %s: %w", errCommand, line, err)
	}
	if ops[c.Op] == nil {
		return c, fmt.Errorf("%w: no op %q", errCommand, c.Op)
	}
	if c.Depth < 0 || c.Tokens < 1 || c.Rounds < 1 {
		return c, fmt.Errorf("%w: %s: depth may not be negative, tokens and rounds must be positive", errCommand, line)
	}
	if c.Drafts < 1 || c.Drafts > runtime.MaxDraft || !(c.Right >= 0 && c.Right <= 1) {
		return c, fmt.Errorf("%w: %s: from 1 to %d drafts, of which a share of 0 to 1 is right", errCommand, line,
			runtime.MaxDraft)
	}
	c.Depth = max(c.Depth, 1)
	return c, nil
}

// do sets the precision and runs a command.
func (b *bench) do(ctx context.Context, c command) (any, error) {
	fast, err := mlx.ParseCPUMath(c.Math)
	if err != nil {
		return nil, err
	}
	cpu := b.cpu
	cpu.Fast = fast
	if err := b.thread.Do(ctx, func() error { return b.thread.SetCPU(cpu) }); err != nil {
		return nil, err
	}
	return ops[c.Op](b, ctx, c)
}

// newBench loads the image twice over the same mapped blobs: for the runtime, and for what it does not expose.
func newBench(ctx context.Context, t *mlx.Thread, cpu mlx.CPUOptions, store *store.Store,
	entry *store.Entry) (*bench, error) {
	load := func(ctx context.Context, o runtime.Options) (runtime.Engine, error) {
		return batch.Open(ctx, t, store, entry, o)
	}
	local, err := load(ctx, runtime.Options{})
	if err != nil {
		return nil, err
	}
	b := &bench{thread: t, cpu: cpu, engine: local, load: load}
	if err := b.loadModel(ctx, store, entry); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}
