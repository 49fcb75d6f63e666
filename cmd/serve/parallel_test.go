package serve

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/runtime/divide"
)

// --parallel takes a mode.
func TestParallelFlag(t *testing.T) {
	for _, c := range []struct {
		mode, link  string
		distributed bool
		dryRun      bool
		err         string
	}{
		{mode: ""},
		{mode: "4", distributed: true, err: `"4" is not auto, tensor or pipeline`},
		{mode: "pipeline", distributed: true},
		{mode: "tensor", distributed: true, link: "1Gbit/100us"},
		{mode: "tensor", err: "--parallel needs --distributed or --workers"},
		{link: "1Gbit", err: "--link needs --distributed or --workers"},
		{dryRun: true, err: "--dry-run needs --distributed or --workers"},
		{mode: "tensor", link: "1Gbit", dryRun: true, err: "--parallel, --link, --dry-run need --distributed or --workers"},
		{mode: "both", distributed: true, err: `"both" is not auto, tensor or pipeline`},
		{link: "fast", distributed: true, err: `"fast" is not a rate`},
	} {
		o := serveOptions{way: parallelFlags{c.mode, c.link}, distributed: c.distributed, dryRun: c.dryRun}
		err := o.checkParallel([]string{"demo"})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := (serveOptions{json: true, distributed: true}).checkParallel([]string{"demo"}); err == nil {
		t.Error("--json without --dry-run is accepted")
	}
	if err := (serveOptions{dryRun: true, distributed: true}).checkParallel(nil); err == nil {
		t.Error("--dry-run without a name is accepted")
	}
}

func TestPrintDivision(t *testing.T) {
	var out bytes.Buffer
	p := dryRunJSON{"demo", divide.Plan{Mode: divide.Pipeline, Why: "as asked for", Ranks: []divide.Rank{
		{Host: "a", Layers: [2]int{0, 3}, Weights: 5e9, Memory: 16e9},
		{Rank: 1, Host: "b", Layers: [2]int{3, 8}, Weights: 3e9},
	}, Time: divide.Estimate{Token: 0.25, Between: 0.001}}}
	if err := printDivision(&cli.App{Out: terminal.Data(&out)}, p, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"demo: pipeline over 2 ranks: as asked for", "0-2", "3-7", "5.0 GB", "16 GB",
		"250.0 ms per token, 1.0 ms of it between ranks"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
