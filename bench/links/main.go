// Command links compares the cost model of package runtime/divide with ranks between which it delays and slows down the
// bytes.
//
//	links -image NAME [-store DIR] [-ranks 2] [-link 1Gbit/1ms,100Mbit/1ms]
//
// Ranks are processes with one thread that the engine's TCP ring connects, through relays of this process. Each rank's
// file of hosts has the address of a relay in place of the next rank's. The first run has no relays. From it and the
// model follows what sums and tokens should take over a link; the command prints that beside what they take.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/internal/loopback"
	"github.com/ingotml/ingot/runtime/divide"
)

type options struct {
	store, image string
	ranks        int
	decode       int
	links        string
	rank         bool // this process is a rank
}

// measurement is what rank 0 measures, in seconds.
type measurement struct {
	Sums     map[int]float64 `json:"sums"`     // by bytes
	Message  float64         `json:"message"`  // of 8 KB to the next rank and back
	Tensor   float64         `json:"tensor"`   // for a token, with parts of tensors
	Kernels  float64         `json:"kernels"`  // of it: in nodes that are not between ranks
	Between  float64         `json:"between"`  // of it: between ranks, with the wait for them
	Pipeline float64         `json:"pipeline"` // for a token, with layers
	// Predicted time between ranks over the link, without what a message costs on one machine.
	TensorLink, PipelineLink float64
}

func main() {
	var o options
	flag.StringVar(&o.store, "store", "", "folder of the store; empty is the user's own")
	flag.StringVar(&o.image, "image", "", "name of the model image")
	flag.IntVar(&o.ranks, "ranks", 2, "number of ranks")
	flag.IntVar(&o.decode, "decode", 24, "tokens to decode")
	flag.StringVar(&o.links, "link", "10Gbit/500us,1Gbit/500us,1Gbit/2ms,100Mbit/1ms", "rates and latencies")
	flag.BoolVar(&o.rank, "rank", false, "be a rank, for this program's own use")
	flag.Parse()
	err := run(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/links:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.rank {
		m, err := measure(ctx, o)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(m)
	}
	base, err := o.processes(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Printf("%d ranks, no link: a token takes %.2f ms with parts (%.2f in kernels, %.2f between ranks), "+
		"%.2f ms in a pipeline; a message there and back %.0f us\n", o.ranks, 1e3*base.Tensor, 1e3*base.Kernels,
		1e3*base.Between, 1e3*base.Pipeline, 1e6*base.Message)
	fmt.Println("| Link | | Measured | Model |\n|---|---|---|---|")
	for _, bytes := range sizes {
		fmt.Printf("| none | sum of %d KB | %.2f ms | |\n", bytes>>10, 1e3*base.Sums[bytes])
	}
	for _, text := range strings.Split(o.links, ",") {
		link, err := divide.ParseLink(text)
		if err != nil {
			return err
		}
		m, err := o.processes(ctx, &link)
		if err != nil {
			return err
		}
		for _, bytes := range sizes {
			want := base.Sums[bytes] + link.SumOver(o.ranks, float64(bytes), float64(bytes))
			fmt.Printf("| %s | sum of %d KB | %.2f ms | %.2f ms |\n", text, bytes>>10, 1e3*m.Sums[bytes], 1e3*want)
		}
		fmt.Printf("| %s | token, parts | %.1f ms | %.1f ms |\n", text, 1e3*m.Tensor, 1e3*(base.Tensor+m.TensorLink))
		fmt.Printf("| %s | token, pipeline | %.1f ms | %.1f ms |\n", text, 1e3*m.Pipeline, 1e3*(base.Pipeline+m.PipelineLink))
	}
	return nil
}

// processes measures ranks with a link between them; nil: without.
func (o options) processes(ctx context.Context, link *divide.Link) (m measurement, err error) {
	dir, err := os.MkdirTemp("", "ingot-links-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends relays, and ranks that wait for one that failed
	own, err := loopback.ReserveAll(o.ranks)
	if err != nil {
		return m, err
	}
	defer own.Close()
	commands, outs := make([]*exec.Cmd, o.ranks), make([]bytes.Buffer, o.ranks)
	text := ""
	if link != nil {
		text = fmt.Sprintf("%fMbit/%fs", link.Bandwidth*8/1e6, link.Latency)
	}
	for rank := range commands {
		hosts := make([]string, o.ranks)
		for i, port := range own {
			hosts[i] = port.Addr()
		}
		if next := (rank + 1) % o.ranks; link != nil {
			if hosts[next], err = relay(ctx, own[next].Addr(), *link); err != nil {
				return m, err
			}
		}
		file := filepath.Join(dir, fmt.Sprintf("%d.json", rank))
		if err := os.WriteFile(file, loopback.Hosts(hosts...), 0o600); err != nil {
			return m, err
		}
		c := exec.CommandContext(ctx, os.Args[0], "-rank", "-store", o.store, "-image", o.image, "-ranks",
			fmt.Sprint(o.ranks), "-decode", fmt.Sprint(o.decode), "-link", text)
		c.Env = append(os.Environ(), "MLX_HOSTFILE="+file, fmt.Sprint("MLX_RANK=", rank), "INGOT_CPU_THREADS=1")
		c.Stdout, c.Stderr = &outs[rank], os.Stderr
		if err := c.Start(); err != nil {
			return m, err
		}
		commands[rank] = c
	}
	for rank, c := range commands {
		if err := c.Wait(); err != nil {
			return m, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return m, json.Unmarshal(outs[0].Bytes(), &m)
}
