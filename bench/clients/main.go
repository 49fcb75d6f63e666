// Command clients runs many concurrent clients against an ingot server and measures what each of them sees.
//
//	clients -ingot FILE -store DIR -image NAME [-clients 32] [-seconds 60]
//
// It starts `ingot serve` on a free port. In the first part all clients send one request after the other. Prompts begin
// with one of a few long shared prefixes, and a quarter of the requests is canceled at a random moment. In the second
// part a few clients stream, alternately alone and next to clients that read slowly. At the end the server must count
// no requests and have as many open files as before. The result goes to standard output as JSON; see [result].
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// result is the JSON output.
type result struct {
	P50     float64 `json:"p50_ms"` // latency of whole requests
	P99     float64 `json:"p99_ms"`
	Errors  int     `json:"errors"`
	Clients int     `json:"clients"`
	Seconds float64 `json:"seconds"`

	Done      int `json:"done"`
	Cancelled int `json:"cancelled"`
	Tokens    int `json:"tokens"`

	First   figures `json:"first_token_ms"`
	Token   figures `json:"next_token_ms"` // time between two pieces of a response
	Request figures `json:"request_ms"`

	CachedShare float64 `json:"cached_share"` // share of prompt tokens found in the prefix cache
	// median time between tokens next to slow readers, over the time alone
	SlowReader float64 `json:"slow_reader_over"`
	Files      [2]int  `json:"open_files"` // of the server: before, and after all connections are closed
	Left       int     `json:"left"`       // requests that the server counts at the end
	// anonymous memory of all server processes: before, halfway, at the end
	Memory   [3]int   `json:"memory_mb"`
	Messages []string `json:"messages,omitempty"` // the first errors
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench/clients:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var o options
	flag.StringVar(&o.ingot, "ingot", "bin/ingot", "the program")
	flag.StringVar(&o.store, "store", "", "folder of the store")
	flag.StringVar(&o.image, "image", "", "name of the model image")
	flag.IntVar(&o.clients, "clients", 32, "clients of the first part")
	seconds := flag.Float64("seconds", 60, "length of the first part")
	flag.Parse()
	o.length = time.Duration(*seconds * float64(time.Second))
	s, err := start(ctx, o)
	if err != nil {
		return err
	}
	defer s.stop()
	r, err := measure(ctx, s, o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
