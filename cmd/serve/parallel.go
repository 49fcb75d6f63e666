package serve

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx/machine"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/divide"
	"github.com/ingotml/ingot/runtime/fit"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/ranks"
	"github.com/ingotml/ingot/worker"
	"github.com/ingotml/ingot/worker/tunnel"
	"github.com/spf13/cobra"
)

// parallelFlags say how ranks divide a model.
type parallelFlags struct{ mode, link string }

func (p *parallelFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&p.mode, "parallel", "", "divide by `auto|tensor|pipeline` over ranks (default auto)")
	c.Flags().StringVar(&p.link, "link", "", "`rate[/latency]` between machines, such as 1Gbit/100us")
}

// read returns the mode and the link, nil if it is not given.
func (p parallelFlags) read() (divide.Mode, *divide.Link, error) {
	mode, err := divide.ParseMode(p.mode)
	if err != nil {
		return mode, nil, cli.Usagef("--parallel: %v", err)
	}
	if p.link == "" {
		return mode, nil, nil
	}
	link, err := divide.ParseLink(p.link)
	if err != nil {
		return mode, nil, cli.Usagef("--link: %v", err)
	}
	return mode, &link, nil
}

// args returns the flags for a model's process.
func (p parallelFlags) args() []string {
	var args []string
	if p.mode != "" {
		args = append(args, "--parallel", p.mode)
	}
	if p.link != "" {
		args = append(args, "--link", p.link)
	}
	return args
}

// plan plans how machines divide a model.
func (p parallelFlags) plan(
	st *store.Store, e *store.Entry, machines []divide.Machine, use fit.Use,
) (divide.Plan, error) {
	mode, link, err := p.read()
	if err != nil {
		return divide.Plan{}, err
	}
	config, err := processor.Files{Store: st, Image: e.Image}.Config()
	if err != nil {
		return divide.Plan{}, err
	}
	plan, err := divide.Make(divide.Input{
		Model: config, Sizes: divide.Sizes(e.Image), Machines: machines, Mode: mode, Link: link, Use: use,
	})
	if err != nil {
		return plan, fmt.Errorf("dividing %s over %d ranks: %w", e.Name, len(machines), err)
	}
	return plan, nil
}

// surveyed returns the machines of a launcher's ranks.
func surveyed(all []ranks.Machine) (machines []divide.Machine) {
	for _, m := range all {
		machines = append(machines, divide.Machine{Host: m.Host, Memory: m.Memory, Speed: float64(m.Cores)})
	}
	return machines
}

// askLimit is how long a worker may take to say what its machine is.
const askLimit = 10 * time.Second

// askWorkers returns this machine and those of the workers.
func askWorkers(ctx context.Context, addresses []string, self tunnel.Self) ([]divide.Machine, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	all, failed := make([]divide.Machine, len(addresses)+1), make([]error, len(addresses))
	all[0] = divide.Machine{Host: host, Memory: runtime.MachineMemory(), Speed: float64(machine.Cores())}
	var requests sync.WaitGroup
	for i, address := range addresses {
		requests.Go(func() {
			about, err := worker.Ask(ctx, self, address)
			if err != nil {
				failed[i] = fmt.Errorf("%w: rank %d on %s: %w", runtime.ErrRanks, i+1, address, err)
				return
			}
			all[i+1] = divide.Machine{Host: about.Host, Memory: about.Memory, Speed: float64(about.Cores)}
		})
	}
	requests.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// dryRunJSON is the output of `serve --dry-run --json`.
type dryRunJSON struct {
	Model string `json:"model"`
	divide.Plan
}

// dryRun prints how the ranks would divide models. Of a launcher's ranks only rank 0 prints.
func dryRun(ctx context.Context, a *cli.App, st *store.Store, stored []string, l ranks.Launched, o serveOptions) error {
	kv, err := o.kv.Value()
	if err != nil {
		return err
	}
	e, err := engines.Need(ctx, a)
	if err != nil {
		return err
	}
	var machines []divide.Machine
	if o.distributed {
		thread, err := engines.Open(ctx, a, o.cpu)
		if err != nil {
			return err
		}
		defer thread.Close()
		joined, err := l.Join(ctx, thread)
		if err != nil {
			return err
		}
		joined.Close()
		if err := joined.Group.Finish(); err != nil {
			return err
		}
		machines = surveyed(joined.Machines)
	} else {
		addresses, token, err := o.workers.read()
		if err != nil {
			return err
		}
		if machines, err = askWorkers(ctx, addresses, tunnelSelf(token, e)); err != nil {
			return err
		}
	}
	if l.Rank > 0 {
		return nil
	}
	for _, text := range stored {
		name, err := models.ParseName(text)
		if err != nil {
			return err
		}
		entry, err := st.Resolve(ctx, name)
		if err != nil {
			return err
		}
		plan, err := o.way.plan(st, entry, machines, fit.Use{Context: o.context, Float32s: o.float32, KV: kv})
		if err != nil {
			return err
		}
		if err := printDivision(a, dryRunJSON{text, plan}, o.json); err != nil {
			return err
		}
	}
	return nil
}

// printDivision prints a plan of `serve --dry-run`.
func printDivision(a *cli.App, p dryRunJSON, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(p)
	}
	fmt.Fprintf(a.Out, "%s: %s over %d ranks: %s\n", p.Model, p.Mode, len(p.Ranks), p.Why)
	w := cli.NewTable(a.Out)
	w.Row("RANK", "HOST", "LAYERS", "WEIGHTS", "STATE", "WORKING", "OF MEMORY", "SENDS PER TOKEN")
	for _, r := range p.Ranks {
		layers := "all"
		if p.Mode == divide.Pipeline {
			layers = fmt.Sprintf("%d-%d", r.Layers[0], r.Layers[1]-1)
		}
		w.Row(strconv.Itoa(r.Rank), r.Host, layers, cli.Size(r.Weights), cli.Size(r.State), cli.Size(r.Working),
			cli.Size(r.Memory),
			cli.Size(int64(r.Sends)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "estimated: %.1f ms per token, %.1f ms of it between ranks\n", 1000*p.Time.Token,
		1000*p.Time.Between)
	return err
}

// checkParallel returns an error for flags that need ranks.
func (o serveOptions) checkParallel(names []string) error {
	if _, _, err := o.way.read(); err != nil {
		return err
	}
	ranked := o.distributed || len(o.workers.list) > 0
	var alone []string
	for _, flag := range []struct {
		name  string
		given bool
	}{{"--parallel", o.way.mode != ""}, {"--link", o.way.link != ""}, {"--dry-run", o.dryRun}} {
		if flag.given && !ranked {
			alone = append(alone, flag.name)
		}
	}
	switch {
	case len(alone) > 0:
		need := "needs"
		if len(alone) > 1 {
			need = "need"
		}
		return cli.Usagef("%s %s --distributed or --workers", strings.Join(alone, ", "), need)
	case o.dryRun && len(names) == 0:
		return cli.Usagef("--dry-run needs a NAME")
	case o.json && !o.dryRun:
		return cli.Usagef("--json needs --dry-run")
	}
	return nil
}
