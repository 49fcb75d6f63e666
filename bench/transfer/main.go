// Command transfer measures push and pull of a model image over loopback against Debian's docker-registry, next to
// crane, skopeo and oras-go's Copy.
//
//	transfer -ingot FILE -crane FILE -skopeo FILE -oras FILE -registry FILE \
//	         [-shape NAME] [-rounds N] [-only LIST] [-out FILE]
//
// The image is an ingot store with one model, which all clients read as an OCI image layout. Its blobs hold random
// bytes. In each round every client, in a different order each time, pushes to an empty registry and pulls into an
// empty folder; then the registry is stopped and removed. The whole program is timed, from start to exit. Dirty pages
// are written out between two runs (sync). The medians go to standard output and, in MB/s (10^6 bytes), to a JSON file.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
)

type bench struct {
	dir      string
	registry string
	clients  []client
	source   source
	output   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench/transfer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	programs := map[string]*string{}
	for _, name := range names {
		programs[name] = flag.String(flagName(name), "", "the program of "+name)
	}
	registry := flag.String("registry", "docker-registry", "distribution's program")
	shape := flag.String("shape", "tensors", "the image: "+strings.Join(shapeNames(), ", "))
	rounds := flag.Int("rounds", 5, "rounds")
	only := flag.String("only", "", "clients to measure, separated by commas; all")
	out := flag.String("out", "", "JSON file to write")
	work := flag.String("dir", "", "folder for the image, the registry and what is pulled; one for temporary files")
	verbose := flag.Bool("v", false, "show what the programs print")
	flag.Parse()

	dir, err := os.MkdirTemp(*work, "ingot-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, registry: *registry, output: *verbose}
	for _, name := range names {
		if *only == "" || slices.Contains(strings.Split(*only, ","), name) {
			b.clients = append(b.clients, client{name, *programs[name]})
		}
	}
	if b.source, err = makeSource(ctx, dir, *shape); err != nil {
		return err
	}
	r := newReport(*shape, b.source, *rounds)
	for i := range *rounds {
		if err := b.round(ctx, i, r); err != nil {
			return err
		}
	}
	r.print(os.Stdout)
	if *out == "" {
		return nil
	}
	return r.write(*out)
}

// round measures every client once, and the hash rate.
func (b *bench) round(ctx context.Context, i int, r *report) error {
	r.hash = append(r.hash, hashRate())
	for j := range b.clients {
		c := b.clients[(i+j)%len(b.clients)]
		push, pull, err := b.measure(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		r.add(c.name, push.passed, pull.passed)
		fmt.Fprintf(os.Stderr, "round %d: %-8s push %5.2f s (processor %5.2f s)  pull %5.2f s (processor %5.2f s)\n", i+1,
			c.name,
			push.passed.Seconds(), push.processor.Seconds(), pull.passed.Seconds(), pull.processor.Seconds())
	}
	return nil
}

// measure lets a client push to an empty registry and pull from it, and checks the results.
func (b *bench) measure(ctx context.Context, c client) (push, pull cost, err error) {
	stop, host, err := b.startRegistry(ctx)
	if err != nil {
		return push, pull, err
	}
	defer stop()
	name := host + "/bench/" + flagName(c.name) + ":v1"
	home, err := os.MkdirTemp(b.dir, "home-")
	if err != nil {
		return push, pull, err
	}
	defer os.RemoveAll(home)
	if push, err = b.time(ctx, c.push(b.source, name), home); err != nil {
		return push, pull, fmt.Errorf("push: %w", err)
	}
	if err := b.source.inRegistry(ctx, host, name); err != nil {
		return push, pull, err
	}
	if pull, err = b.time(ctx, c.pull(name, home), home); err != nil {
		return push, pull, fmt.Errorf("pull: %w", err)
	}
	return push, pull, b.source.onDisk(c.pulled(home))
}

func cores() int { return runtime.GOMAXPROCS(0) }
