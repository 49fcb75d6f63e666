package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/audit"
	"github.com/spf13/cobra"
)

type checkOptions struct {
	audit    audit.Options
	repair   bool
	json     bool
	transfer transfer.Flags
}

func checkCommand(a *cli.App) *cobra.Command {
	var o checkOptions
	c := &cobra.Command{
		Use:   "check REGISTRY/NAME",
		Short: "Check that a registry has everything of a model, and repair it",
		Long: `Check that a registry has every blob and manifest of a model, with its size, and those of its signatures
and other attached artifacts. --digests downloads and hashes every blob. The registry itself is asked, not
its mirrors. Each problem is a line, and the exit code is 1.

--repair sends what is missing or damaged again, if the store has it, and asks the registry once more. The
exit code is 1 if problems remain.`,
		Example: `  ingot check registry.example.com/team/mymodel:v1
  ingot check registry.example.com/team/mymodel:v1 --digests --repair`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return check(c.Context(), a, args[0], o) },
	}
	f := c.Flags()
	f.BoolVar(&o.audit.Digests, "digests", false, "download every blob and hash it")
	f.BoolVar(&o.repair, "repair", false, "send what is missing or damaged from the store")
	f.BoolVar(&o.audit.NoReferrers, "no-referrers", false, "leave out signatures and other artifacts")
	f.BoolVar(&o.json, "json", false, "print JSON, with progress as JSON lines")
	o.transfer.Add(c)
	return c
}

func check(ctx context.Context, a *cli.App, arg string, o checkOptions) error {
	name, err := parseRemote(arg)
	switch {
	case err != nil:
		return err
	case name.IsLocal():
		return cli.Usagef("%s names no registry; `ingot fsck` checks the store, and `ingot verify %[1]s` a model in it", arg)
	}
	if o.repair {
		o.audit.Repair, err = store.OpenExisting("", store.Command(a.Command))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("--repair sends what the store has, and there is no store: %w", err)
		}
		if err != nil {
			return err
		}
	}
	bar := transfer.NewProgress(a, "check", o.json)
	defer bar.End()
	client, err := transfer.NewClient(a, &o.transfer, bar.Set)
	if err != nil {
		return err
	}
	report, err := audit.Run(ctx, client, name, o.audit)
	bar.End()
	if err != nil {
		return err
	}
	if o.json {
		err = a.PrintJSON(newCheckJSON(report))
	} else {
		err = printCheck(a, report)
	}
	if err == nil && !report.OK() {
		err = cli.ErrFailed
	}
	return err
}

// checkJSON is the result of a check.
type checkJSON struct {
	OK        bool               `json:"ok"`
	Name      string             `json:"name"`
	Digest    string             `json:"digest"`
	Manifests int                `json:"manifests"`
	Blobs     int                `json:"blobs"`
	Bytes     int64              `json:"bytes"`
	Problems  []checkProblemJSON `json:"problems"`
}

type checkProblemJSON struct {
	Kind     string `json:"kind"`
	What     string `json:"what"` // blob or manifest
	Digest   string `json:"digest"`
	Name     string `json:"name,omitempty"`
	Bytes    int64  `json:"bytes"`
	Detail   string `json:"detail"`
	Repaired bool   `json:"repaired"`
	Repair   string `json:"repair,omitempty"`
}

func newCheckJSON(r *audit.Report) checkJSON {
	j := checkJSON{r.OK(), r.Name.String(), r.Digest.String(), r.Manifests, r.Blobs, r.Bytes, []checkProblemJSON{}}
	for _, p := range r.Problems {
		j.Problems = append(j.Problems, checkProblemJSON{string(p.Kind), p.What(), p.Digest.String(), p.Name(), p.Size,
			p.Detail, p.Repaired, p.Repair})
	}
	return j
}

func printCheck(a *cli.App, r *audit.Report) error {
	left := 0
	for _, p := range r.Problems {
		what := fmt.Sprintf("%s %s (%s)", p.What(), p.Digest, cli.Size(p.Size))
		if p.Name() != "" {
			what = fmt.Sprintf("%s %s (%s, %s)", p.What(), p.Digest, p.Name(), cli.Size(p.Size))
		}
		text := fmt.Sprintf("%s: %s: %s", p.Kind, what, p.Detail)
		if p.Repair != "" {
			text += "; " + p.Repair
		}
		if !p.Repaired {
			left++
		}
		if err := a.PrintLine(text); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("%s@%s: %d manifests, %d blobs, %s: ", r.Name, r.Digest, r.Manifests, r.Blobs, cli.Size(r.Bytes))
	switch {
	case len(r.Problems) == 0:
		text += "no problems"
	case left == 0:
		text += fmt.Sprintf("%d problems, all repaired", len(r.Problems))
	default:
		text += fmt.Sprintf("%d problems, %d not repaired", len(r.Problems), left)
	}
	return a.PrintLine(text)
}
