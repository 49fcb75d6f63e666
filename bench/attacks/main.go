// Command attacks measures what attackers of mixed kinds do to honest clients of a server.
//
//	attacks -ingot FILE [-rounds N] [-clients N] [-attackers N] [-kinds LIST] [-out FILE] MODEL-FOLDER
//
// Each round starts a server twice: for honest clients alone, and for the same clients with attackers, who begin before
// them. It prints the time to the first token of both, their ratio, and the memory of the server and its models before,
// during and after. The attacks are those of servertest/attacks. A run fails if a process ends, if a stream is not
// complete, or if the processes together need more memory than -memory; the server is then killed. Linux only.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/ingotml/ingot/server/servertest/attacks"
)

type bench struct {
	ingot, dir string
	limit      int64
	honest     attacks.Honest
	attackers  int
	kinds      []string
	victim     bool // there is a model with a long token
	settle     time.Duration
}

// half is the result of the honest clients of a run, in milliseconds and MiB.
type half struct {
	P50, P99                    float64
	Busy, Failed                int
	Before, Peak, Last, Settled int64 // memory
	Attacks                     map[string]int64
	Died                        string `json:",omitempty"`
}

type round struct {
	Alone, Attacked half
	Ratio           float64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench/attacks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	b := &bench{honest: attacks.Honest{Each: 3, Tokens: 30}}
	flag.StringVar(&b.ingot, "ingot", "bin/ingot", "the program")
	rounds := flag.Int("rounds", 3, "rounds")
	flag.IntVar(&b.honest.Clients, "clients", 200, "honest clients")
	flag.IntVar(&b.attackers, "attackers", 50, "attackers")
	kinds := flag.String("kinds", "", "kinds of attacks, separated by commas; all")
	memory := flag.Int64("memory", 2048, "MiB that all processes may need")
	flag.DurationVar(&b.settle, "settle", 2*time.Minute, "time for memory to return")
	out := flag.String("out", "", "JSON file to write")
	target := flag.String("target", "", "what the attackers' process gets; not for users")
	flag.Parse()
	if *target != "" {
		return beAttackers(*target)
	}
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	b.limit = *memory << 20
	var err error
	if b.kinds, err = attacks.Kinds(*kinds); err != nil {
		return err
	}
	if b.ingot, err = filepath.Abs(b.ingot); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "ingot-attacks-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := b.create(ctx, flag.Arg(0)); err != nil {
		return err
	}
	var list []round
	for i := range *rounds {
		var r round
		if r.Alone, err = b.half(ctx, false); err == nil {
			r.Attacked, err = b.half(ctx, true)
		}
		if err != nil {
			return err
		}
		r.Ratio = r.Attacked.P99 / r.Alone.P99
		r.print(i + 1)
		list = append(list, r)
	}
	return report(list, *out)
}

func (r round) print(n int) {
	fmt.Printf("round %d: first token, median and p99: alone %.0f and %.0f ms, attacked %.0f and %.0f ms: p99 %.2f times"+
		"\n", n, r.Alone.P50, r.Alone.P99, r.Attacked.P50, r.Attacked.P99, r.Ratio)
	for _, h := range []struct {
		name string
		half
	}{{"alone:", r.Alone}, {"attacked:", r.Attacked}} {
		fmt.Printf("  %-9s memory %d MiB before, peak %d, at the end %d, later %d; told to come again %d, failed %d %s\n",
			h.name, h.Before, h.Peak, h.Last, h.Settled, h.Busy, h.Failed, h.Died)
	}
	fmt.Printf("  attacks: %v\n", r.Attacked.Attacks)
}

// report prints the median of the ratios and what failed.
func report(list []round, out string) error {
	slices.SortFunc(list, func(a, b round) int { return cmp.Compare(a.Ratio, b.Ratio) })
	median := list[len(list)/2]
	fmt.Printf("median: p99 of the first token %.0f ms alone, %.0f ms attacked: %.2f times (of %d rounds: %.2f to %.2f)\n",
		median.Alone.P99, median.Attacked.P99, median.Ratio, len(list), list[0].Ratio, list[len(list)-1].Ratio)
	var err error
	for _, r := range list {
		for _, h := range []half{r.Alone, r.Attacked} {
			if h.Failed > 0 || h.Died != "" {
				err = errors.Join(err, fmt.Errorf("%d streams failed %s", h.Failed, h.Died))
			}
		}
	}
	if out == "" {
		return err
	}
	text, e := json.MarshalIndent(list, "", "\t")
	if e == nil {
		e = os.WriteFile(out, append(text, '\n'), 0o600)
	}
	return errors.Join(err, e)
}

// half runs a server for honest clients, with or without attackers.
func (b *bench) half(ctx context.Context, attacked bool) (h half, err error) {
	s, err := b.start(ctx)
	if err != nil {
		return h, err
	}
	defer s.stop()
	to := attacks.Target{Address: s.address, Model: model}
	if b.victim {
		to.Victim, to.Long = victim, longID
	}
	warm := attacks.Honest{Clients: 1, Each: 1, Tokens: 1}.Run(ctx, to)
	if len(warm.Failed) > 0 {
		return h, fmt.Errorf("the first request: %w", warm.Failed[0])
	}
	h.Before = s.memory() >> 20
	models := s.children()

	end := func() (map[string]int64, error) { return nil, nil }
	if attacked {
		if end, err = b.attack(ctx, to); err != nil {
			return h, err
		}
		select {
		case <-time.After(3 * time.Second):
		case <-ctx.Done():
		}
	}
	r := b.honest.Run(ctx, to)
	if h.Attacks, err = end(); err != nil {
		return h, err
	}
	h.P50, h.P99 = milliseconds(r.Quantile(0.5)), milliseconds(r.Quantile(0.99))
	h.Busy, h.Failed = r.Busy, len(r.Failed)
	if h.Failed > 0 {
		h.Died = fmt.Sprintf("(the first: %v)", r.Failed[0])
	}
	h.Last = s.memory() >> 20
	for end := time.Now().Add(b.settle); ; time.Sleep(time.Second) {
		if h.Settled = s.memory() >> 20; h.Settled < 2*h.Before || time.Now().After(end) {
			break
		}
	}
	h.Peak = s.peak() >> 20
	if why := s.died(models); why != "" {
		h.Died += " " + why
	}
	return h, ctx.Err()
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
