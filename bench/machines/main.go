// Command machines compares ranks that divide a model with one rank. Each rank is a process with one thread on a
// processor of its own, as a stand-in for a machine. The engine's TCP ring connects them, or MPI.
//
//	machines -image NAME [-store DIR] [-ranks 2] [-backends ring,mpi] [-prefill 512] [-decode 64] [-out FILE]
//
// One rank with one thread, one rank with as many threads as there are ranks, and the ranks of each backend take turns.
// The command prints a line of JSON for each backend, a [result], and writes their list to FILE.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// options are the flags.
type options struct {
	store, image, shape string
	ranks               int
	backends, out       string
	mpirun              string
	prefill, decode     int
	rounds              int
	role                string // of this process: one of those below
}

// The roles of processes that this program starts. A rank of a backend has the backend's name.
const (
	roleSingle = "single"
	ring       = "ring"
	mpi        = "mpi"
)

// measurement is what a process measures. Durations are in seconds.
type measurement struct {
	Prefill float64 `json:"prefill"`
	Decode  float64 `json:"decode"`  // of all tokens
	Inside  float64 `json:"inside"`  // of decode: in kernels and in communication
	Between float64 `json:"between"` // of decode: in communication
	RSS     int64   `json:"rss"`     // bytes after the run, as of an idle model
	Weights int64   `json:"weights"` // bytes of the rank's tensors
}

// result compares ranks with one rank on one thread.
type result struct {
	Ranks          int     `json:"ranks"`
	Backend        string  `json:"backend"`
	Shape          string  `json:"shape"`
	PrefillRatio   float64 `json:"prefill_ratio"`         // speed-up
	DecodeRatio    float64 `json:"decode_ratio"`          // speed-up
	ThreadsRatio   float64 `json:"threads_ratio"`         // speed-up in decode of threads of one rank
	ThreadsPrefill float64 `json:"threads_prefill_ratio"` // in prefill
	RSSRatio       float64 `json:"rss_ratio"`             // of the largest rank
	WeightsRatio   float64 `json:"weights_ratio"`         // bytes of the largest rank's tensors
	OutsideShare   float64 `json:"outside_share"`         // of a token's time: neither kernels nor communication
	BetweenShare   float64 `json:"between_share"`         // of a token's time: communication, with the wait for others
}

func main() {
	var o options
	flag.StringVar(&o.store, "store", "", "folder of the store; empty is the user's own")
	flag.StringVar(&o.image, "image", "", "name of the model image")
	flag.StringVar(&o.shape, "shape", "", "name of the model in the results; empty is the image's")
	flag.IntVar(&o.ranks, "ranks", 2, "number of ranks")
	flag.StringVar(&o.backends, "backends", ring, "backends that connect the ranks: ring, mpi")
	flag.StringVar(&o.mpirun, "mpirun", "mpirun", "Open MPI's program")
	flag.StringVar(&o.out, "out", "", "file for the list of results")
	flag.IntVar(&o.prefill, "prefill", 512, "tokens of the prompt")
	flag.IntVar(&o.decode, "decode", 64, "tokens to decode")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds, of which the fastest count")
	flag.StringVar(&o.role, "role", "", "what this process is, for this program's own use")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench/machines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.role != "" {
		return measure(ctx, o, func(m measurement) error { return json.NewEncoder(os.Stdout).Encode(m) })
	}
	backends := strings.Split(o.backends, ",")
	if slices.ContainsFunc(backends, func(b string) bool { return b != ring && b != mpi }) {
		return fmt.Errorf("-backends %s: want ring or mpi", o.backends)
	}
	var one, threads measurement
	ranks := make([][]measurement, len(backends))
	for range o.rounds {
		a, err := o.process(ctx, 1)
		if err != nil {
			return err
		}
		b, err := o.process(ctx, o.ranks)
		if err != nil {
			return err
		}
		one, threads = one.best(a), threads.best(b)
		for i, backend := range backends {
			c, err := o.group(ctx, backend)
			if err != nil {
				return fmt.Errorf("%s: %w", backend, err)
			}
			if ranks[i] == nil {
				ranks[i] = c
			}
			for rank := range c {
				ranks[i][rank] = ranks[i][rank].best(c[rank])
			}
		}
	}
	var results []result
	for i, backend := range backends {
		results = append(results, o.compare(backend, one, threads, ranks[i]))
		if err := json.NewEncoder(os.Stdout).Encode(results[i]); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	b, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, append(b, '\n'), 0o644)
}

// compare compares ranks with one on one thread.
func (o options) compare(backend string, one, threads measurement, ranks []measurement) result {
	r := result{
		Ranks: o.ranks, Backend: backend, Shape: o.shape,
		ThreadsRatio: one.Decode / threads.Decode, ThreadsPrefill: one.Prefill / threads.Prefill,
	}
	if r.Shape == "" {
		r.Shape = o.image
	}
	var slowest measurement
	for _, m := range ranks {
		slowest.Prefill, slowest.Decode = max(slowest.Prefill, m.Prefill), max(slowest.Decode, m.Decode)
		r.RSSRatio = max(r.RSSRatio, float64(m.RSS)/float64(one.RSS))
		r.WeightsRatio = max(r.WeightsRatio, float64(m.Weights)/float64(one.Weights))
		r.OutsideShare = max(r.OutsideShare, 1-m.Inside/m.Decode)
		r.BetweenShare = max(r.BetweenShare, m.Between/m.Decode)
	}
	r.PrefillRatio, r.DecodeRatio = one.Prefill/slowest.Prefill, one.Decode/slowest.Decode
	return r
}

// best returns the faster of two measurements, prefill and decode by themselves.
func (m measurement) best(n measurement) measurement {
	if m.Decode == 0 {
		return n
	}
	prefill := math.Min(m.Prefill, n.Prefill)
	if n.Decode < m.Decode {
		m = n
	}
	m.Prefill = prefill
	return m
}

// decode reads the measurement that a process has printed.
func decode(out *bytes.Buffer) (m measurement, err error) {
	if out.Len() == 0 {
		return m, errors.New("it printed no measurement")
	}
	return m, json.Unmarshal(out.Bytes(), &m)
}
