// Command machines compares ranks that divide a model with one rank. Each rank is a process with one thread on a
// processor of its own, as a stand-in for a machine, and the engine's TCP ring connects them.
//
//	machines -image NAME [-store DIR] [-ranks 2] [-prefill 512] [-decode 64]
//
// One rank with one thread, one rank with as many threads as there are ranks, and the ranks take turns. The command
// prints one line of JSON: a [result].
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// options are the flags.
type options struct {
	store, image     string
	ranks            int
	prefill, decode  int
	rounds           int
	ringRank, single bool // this process is a rank, or the only one
}

// measurement is what a process measures. Durations are in seconds.
type measurement struct {
	Prefill float64 `json:"prefill"`
	Decode  float64 `json:"decode"`  // of all tokens
	Inside  float64 `json:"inside"`  // of decode: in kernels and in communication
	Between float64 `json:"between"` // of decode: in communication
	RSS     int64   `json:"rss"`     // bytes after the run
	Weights int64   `json:"weights"` // bytes of the rank's tensors
}

// result compares ranks with one rank on one thread.
type result struct {
	Ranks        int     `json:"ranks"`
	Backend      string  `json:"backend"`
	Shape        string  `json:"shape"`
	PrefillRatio float64 `json:"prefill_ratio"` // speed-up
	DecodeRatio  float64 `json:"decode_ratio"`  // speed-up
	ThreadsRatio float64 `json:"threads_ratio"` // speed-up in decode of threads of one rank
	RSSRatio     float64 `json:"rss_ratio"`     // of the largest rank
	OutsideShare float64 `json:"outside_share"` // of a token's time: neither kernels nor communication
	Between      float64 `json:"between_share"` // of a token's time: communication, with the wait for other ranks
}

func main() {
	var o options
	flag.StringVar(&o.store, "store", "", "folder of the store; empty is the user's own")
	flag.StringVar(&o.image, "image", "", "name of the model image")
	flag.IntVar(&o.ranks, "ranks", 2, "number of ranks")
	flag.IntVar(&o.prefill, "prefill", 512, "tokens of the prompt")
	flag.IntVar(&o.decode, "decode", 64, "tokens to decode")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds, of which the fastest count")
	flag.BoolVar(&o.ringRank, "rank", false, "be a rank, for this program's own use")
	flag.BoolVar(&o.single, "single", false, "be the only rank, for this program's own use")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench/machines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.ringRank || o.single {
		m, err := measure(ctx, o)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(m)
	}
	var one, threads measurement
	ranks := make([]measurement, o.ranks)
	for range o.rounds {
		a, err := o.processes(ctx, 1, 1)
		if err != nil {
			return err
		}
		b, err := o.processes(ctx, 1, o.ranks)
		if err != nil {
			return err
		}
		c, err := o.processes(ctx, o.ranks, 1)
		if err != nil {
			return err
		}
		one, threads = one.best(a[0]), threads.best(b[0])
		for i := range ranks {
			ranks[i] = ranks[i].best(c[i])
		}
	}
	r := result{Ranks: o.ranks, Backend: "ring", Shape: o.image, ThreadsRatio: one.Decode / threads.Decode}
	var slowest measurement
	for _, m := range ranks {
		slowest.Prefill, slowest.Decode = max(slowest.Prefill, m.Prefill), max(slowest.Decode, m.Decode)
		r.RSSRatio = max(r.RSSRatio, float64(m.RSS)/float64(one.RSS))
		r.OutsideShare = max(r.OutsideShare, 1-m.Inside/m.Decode)
		r.Between = max(r.Between, m.Between/m.Decode)
	}
	r.PrefillRatio, r.DecodeRatio = one.Prefill/slowest.Prefill, one.Decode/slowest.Decode
	return json.NewEncoder(os.Stdout).Encode(r)
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

// processes measures ranks with so many threads each, on processors of their own.
func (o options) processes(ctx context.Context, ranks, threads int) ([]measurement, error) {
	dir, err := os.MkdirTemp("", "ingot-machines-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	hosts, err := freePorts(ranks)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "hosts.json")
	if err := os.WriteFile(file, hosts, 0o600); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop() // one that failed leaves others waiting
	commands, outs := make([]*exec.Cmd, ranks), make([]bytes.Buffer, ranks)
	for rank := range commands {
		role := "-rank"
		if ranks == 1 {
			role = "-single"
		}
		c := exec.CommandContext(ctx, "taskset", "-c", fmt.Sprintf("%d-%d", rank*threads, (rank+1)*threads-1), os.Args[0],
			role, "-store", o.store, "-image", o.image, "-prefill", fmt.Sprint(o.prefill), "-decode", fmt.Sprint(o.decode))
		c.Env = append(os.Environ(), "MLX_HOSTFILE="+file, fmt.Sprint("MLX_RANK=", rank),
			fmt.Sprint("INGOT_CPU_THREADS=", threads))
		c.Stdout, c.Stderr = &outs[rank], os.Stderr
		if err := c.Start(); err != nil {
			return nil, err
		}
		commands[rank] = c
	}
	all, failed := make([]measurement, ranks), error(nil)
	for rank, c := range commands {
		err := c.Wait()
		if err == nil {
			err = json.Unmarshal(outs[rank].Bytes(), &all[rank])
		}
		if err != nil {
			stop()
			failed = cmp.Or(failed, fmt.Errorf("rank %d of %d: %w", rank, ranks, err))
		}
	}
	return all, failed
}

// freePorts returns a file of hosts for the ring.
func freePorts(n int) ([]byte, error) {
	var hosts []string
	for range n {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, fmt.Sprintf("[%q]", l.Addr()))
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	return []byte("[" + strings.Join(hosts, ",") + "]"), nil
}

var errNoRSS = errors.New("no resident set size in /proc/self/status")
