// Command cpu measures the whole runtime on an image of the store, for the CPU benchmark (run.py, which also runs the
// peers and makes the table).
//
//	cpu -image NAME [-store DIR]
//
// It loads the image once and then obeys standard input: a [command] in JSON on each line gives one line of JSON. Decode
// and prefill go through runtime.Engine, as `ingot run` does: the graph is built by package models, a token is sampled,
// and its text is made. Token ids are random, so that there is no tokenizer before a prompt. The first error ends it.
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
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/engine"
	"github.com/ingotml/ingot/runtime"
)

// command is what to measure.
type command struct {
	Op     string `json:"op"`     // see ops
	Math   string `json:"math"`   // "exact" (also when empty) or "fast"
	Depth  int    `json:"depth"`  // tokens that a sequence holds before what is timed; 0 counts as 1
	Tokens int    `json:"tokens"` // decoded or prefilled; 0 is 64
	Rounds int    `json:"rounds"` // of op rows; 0 is 8

	Streams int `json:"streams"` // of op streams

	Drafts int     `json:"drafts"` // of op spec, in a step; without it 3
	Right  float64 `json:"right"`  // of op spec: the share of drafts that are right; without it 0.7
}

// ops are the measurements; each gives a value for JSON.
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
	"streams":  (*bench).streams,
	"wait":     (*bench).wait,
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
	store, err := manifest.OpenExisting(root)
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

// serve obeys commands until the input ends.
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

// parse reads a command and fills in what it leaves open.
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
		return c, fmt.Errorf("%w: %s: from 1 to %d drafts, of which a share of 0 to 1 is right", errCommand, line, runtime.MaxDraft)
	}
	c.Depth = max(c.Depth, 1)
	return c, nil
}

// do sets the precision and measures.
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

// newBench loads the image twice over the same mapped blobs: for the runtime, and for what it does not offer yet.
func newBench(ctx context.Context, t *mlx.Thread, cpu mlx.CPUOptions, store *manifest.Store, entry *manifest.Entry) (*bench, error) {
	load := func(ctx context.Context, o runtime.Options) (runtime.Engine, error) {
		return runtime.Load(ctx, t, store, entry, o)
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
